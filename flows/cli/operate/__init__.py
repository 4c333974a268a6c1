"""Commands that keep an installation running."""
