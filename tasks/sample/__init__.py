"""The stage that samples responses."""
