"""The report: the warehouse as a static site, from the leaderboard down to each verdict."""
