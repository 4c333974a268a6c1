"""Settings as types."""
