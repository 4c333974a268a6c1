"""Upkeep of a warehouse: backup, compaction, removal, disk, spend and run history."""
