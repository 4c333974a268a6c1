"""The hard subset: of each field the tasks that the panel's models found hardest, and how surely they are."""

from tasks.hard_subset.select import select_hard
from tasks.hard_subset.selection_scores import scores_on

__all__ = ["scores_on", "select_hard"]
