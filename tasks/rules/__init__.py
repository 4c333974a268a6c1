"""Pure rules: standard library and NumPy only."""
