"""The hard subset: of each field the tasks that the panel's models found hardest, and how surely they are."""

from tasks.hard_subset.select import select_hard

__all__ = ["select_hard"]
