"""Upkeep of a warehouse."""

from tasks.maintain.backup import backup, restore
from tasks.maintain.spending import latest_runs, run_cost, spent, store_spend, total_cost_usd
from tasks.maintain.upkeep import Choice, chosen, disk_use, remove, tidy

__all__ = [
    "Choice", "backup", "chosen", "disk_use", "latest_runs", "remove", "restore", "run_cost", "spent", "store_spend",
    "tidy", "total_cost_usd",
]  # fmt: skip
