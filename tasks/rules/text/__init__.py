"""Rules about text: what can be shown, stored and read as JSON, and what is secret."""
