"""The rendering of a report: tables, pages, files."""
