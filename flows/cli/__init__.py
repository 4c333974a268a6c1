"""The command `prbench`."""
