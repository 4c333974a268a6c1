"""Intervals, comparisons, agreement and control limits: NumPy on values per task."""
