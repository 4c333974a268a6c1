"""Calls: one by one, and in provider batches."""
