"""Drill-down: from a list of tasks to one verdict, from data that the pages load when it is asked for."""
