"""Compare: two models, judges, templates, runs, vintages or revisions, paired by task.

A question (`model_run.py`) becomes pairs of model runs that differ only in what is compared (`names.py`, `pairs.py`),
these become differences with what can be said about them (`differences.py`), and a difference is taken apart into the
criteria that flipped (`flips.py`).
"""

from tasks.compare.differences import ALPHA, Answer, Difference, compare, short
from tasks.compare.flips import Flip, Flips, flips_of, with_explanations
from tasks.compare.model_run import KINDS, Kind, ModelRun, Pair, Question, Side

__all__ = [
    "ALPHA",
    "KINDS",
    "Answer",
    "Difference",
    "Flip",
    "Flips",
    "Kind",
    "ModelRun",
    "Pair",
    "Question",
    "Side",
    "compare",
    "flips_of",
    "short",
    "with_explanations",
]  # fmt: skip
