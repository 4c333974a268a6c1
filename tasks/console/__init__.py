"""Text for terminals and logs."""
