"""Certificates: figures that others can recheck, in one file without texts."""
