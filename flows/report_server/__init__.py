"""The report on localhost: its files, and the pages that are made when they are opened."""
