"""The formats of other harnesses, one module each; `known.py` says which a file is in."""
