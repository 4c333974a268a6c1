"""Stopping: tasks in random order, block by block, until every comparison is settled.

This is what other folders use. The statistical rules are in `tasks/rules/stopping.py`.
"""

from tasks.stopping.comparisons import (
    EARLIER,
    NO_COMPARISONS,
    JobComparisons,
    Progress,
    comparisons_of,
)
from tasks.stopping.looks import (
    conclude,
    in_order,
    is_unfinished,
    last_looks,
    look_at,
    next_block_of_job,
)

__all__ = [
    "EARLIER",
    "NO_COMPARISONS",
    "JobComparisons",
    "Progress",
    "comparisons_of",
    "conclude",
    "in_order",
    "is_unfinished",
    "last_looks",
    "look_at",
    "next_block_of_job",
]
