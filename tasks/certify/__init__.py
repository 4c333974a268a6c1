"""Certificates: figures that others can recompute, in one file without texts."""
