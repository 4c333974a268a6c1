"""The plan of a run: its calls and their cost."""
