"""Stopping: tasks in random order, block by block, until every comparison is settled.

What is compared and which work is left out is in `tasks/run/stopped_work.py`, since every stage asks that; the rules
are in `tasks/rules/stopping.py`.
"""

from tasks.stopping.blocks import Block, next_block
from tasks.stopping.looks import describe, looks_after, unfinished_looks
from tasks.stopping.scores import has_scores, store_scores

__all__ = ["Block", "describe", "has_scores", "looks_after", "next_block", "store_scores", "unfinished_looks"]
