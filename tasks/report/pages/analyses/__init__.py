"""Pages on what analyses found, each in the navigation where there is something to show."""
