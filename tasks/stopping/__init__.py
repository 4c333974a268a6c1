"""Stopping: tasks in random order, block by block, until every comparison is settled.

What other folders use; the rules are in `tasks/rules/stopping.py`.
"""

from tasks.stopping.comparisons import NO_COMPARISONS, JobComparisons, comparisons_of
from tasks.stopping.looks import conclude, has_open_block, last_looks, look_at, upcoming_block

__all__ = [
    "NO_COMPARISONS",
    "JobComparisons",
    "comparisons_of",
    "conclude",
    "has_open_block",
    "last_looks",
    "look_at",
    "upcoming_block",
]
