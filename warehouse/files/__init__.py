"""Files on disk: written atomically, locked, checked for damage."""
