"""The report on localhost: its files, and the pages that are rendered when they are opened."""
