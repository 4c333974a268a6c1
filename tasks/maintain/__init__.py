"""Upkeep of a warehouse."""

from tasks.maintain.backup import backup, restore
from tasks.maintain.file_lists import Damaged, file_list, hash_of, is_inside, read_file_list
from tasks.maintain.spending import latest_runs, run_cost, spent, store_spend, total_cost_usd
from tasks.maintain.upkeep import Choice, chosen, disk_use, remove, tidy

__all__ = [
    "Choice", "Damaged", "backup", "chosen", "disk_use", "file_list", "hash_of", "is_inside", "latest_runs",
    "read_file_list", "remove", "restore", "run_cost", "spent", "store_spend", "tidy", "total_cost_usd",
]  # fmt: skip
