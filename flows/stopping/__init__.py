"""Runs that stop when their comparisons are settled: blocks of tasks, and a look after each."""
