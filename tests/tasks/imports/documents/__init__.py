"""Documents of all kinds turned into Markdown."""
