"""How it is written: tables, pages, files."""
