"""Drawing: rows in, charts out."""
