"""The pages of analyses, each there only where there is something to show."""
