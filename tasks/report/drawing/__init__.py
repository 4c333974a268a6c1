"""The functions that draw charts from rows."""
