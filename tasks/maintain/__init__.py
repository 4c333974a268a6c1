"""Upkeep of a warehouse."""

from tasks.maintain.backup import backup, restore
from tasks.maintain.compact import tidy
from tasks.maintain.disk import disk_use
from tasks.maintain.file_lists import Damaged, file_list, hash_of, is_inside, read_file_list
from tasks.maintain.removal import Choice, chosen, remove
from tasks.maintain.run_history import latest_runs, run_cost, spent, total_cost_usd
from tasks.maintain.spend import store_spend

__all__ = [
    "Choice",
    "Damaged",
    "backup",
    "chosen",
    "disk_use",
    "file_list",
    "hash_of",
    "is_inside",
    "latest_runs",
    "read_file_list",
    "remove",
    "restore",
    "run_cost",
    "spent",
    "store_spend",
    "tidy",
    "total_cost_usd",
]
