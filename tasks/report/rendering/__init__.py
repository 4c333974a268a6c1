"""The rendering of a report: figures, notices, the ranking, pages and files."""
