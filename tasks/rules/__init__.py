"""Pure rules: standard library, NumPy and the special functions of SciPy only."""
