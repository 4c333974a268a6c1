"""Compare: two models, judges, templates, runs, vintages or revisions, paired by task.

A question (`model_run.py`) becomes pairs of model runs that differ only in what is compared (`names.py`, `pairs.py`),
these become differences with what can be said about them (`differences.py`), and a difference is taken apart into the
criteria that flipped (`flips.py`).
"""

from tasks.compare.asking import question_of
from tasks.compare.differences import ALPHA, Answer, Difference, compare, short
from tasks.compare.flips import Flip, Flips, flips_of, with_explanations
from tasks.compare.leaderboard import EVERY, OFFICIAL_HARD, Choice, leaderboard
from tasks.compare.model_run import KINDS, Kind, ModelRun, Pair, Question, Side
from tasks.compare.pairs import model_runs
from tasks.compare.people import against_people
from tasks.compare.sentences import (
    CONTEXT,
    counted,
    distinguishing,
    figure,
    n_unequal,
    notes_on,
    on_both,
    p_value,
    sentence,
    where_in,
)

__all__ = [
    "ALPHA",
    "CONTEXT",
    "EVERY",
    "KINDS",
    "OFFICIAL_HARD",
    "Answer",
    "Choice",
    "Difference",
    "Flip",
    "Flips",
    "Kind",
    "ModelRun",
    "Pair",
    "Question",
    "Side",
    "against_people",
    "compare",
    "counted",
    "distinguishing",
    "figure",
    "flips_of",
    "leaderboard",
    "model_runs",
    "n_unequal",
    "notes_on",
    "on_both",
    "p_value",
    "question_of",
    "sentence",
    "short",
    "where_in",
    "with_explanations",
]
