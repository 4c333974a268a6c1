"""The drill-down from the list of tasks to each verdict; its pages load data when they need it."""
