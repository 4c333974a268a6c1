"""Report: the warehouse as a static site, from the leaderboard down to one verdict."""
