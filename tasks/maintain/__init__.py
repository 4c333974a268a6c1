"""Upkeep of a warehouse."""
