"""Rules for text: display, storage, JSON and secrets."""
