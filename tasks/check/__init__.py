"""The checks after each stage."""
