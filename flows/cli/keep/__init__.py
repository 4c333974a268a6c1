"""Commands that bring data in, take it out, or save it."""
