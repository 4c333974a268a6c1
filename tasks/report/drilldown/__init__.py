"""Drill-down: from a list of tasks to one verdict; the pages load data when they need it."""
