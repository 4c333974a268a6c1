"""The published DuckDB file."""
