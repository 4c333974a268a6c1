"""The ledger: each finished call, on disk before it counts."""
