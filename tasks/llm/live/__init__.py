"""Calls made one by one, while a run waits for their answers."""
