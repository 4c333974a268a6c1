"""The hard subset: of each field the tasks that the panel's models found hardest, and how surely they are."""

from tasks.hard_subset.select import has_new_selection, select_hard
from tasks.hard_subset.selection_scores import scores_on

__all__ = ["has_new_selection", "scores_on", "select_hard"]
