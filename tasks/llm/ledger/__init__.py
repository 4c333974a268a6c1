"""The ledger: each finished call is on disk before it counts."""
