"""Compare: two models, judges, templates, runs, vintages or revisions, paired by task.

A question (`model_run.py`) becomes pairs of model runs that differ only in what is compared (`names.py`, `pairs.py`),
these become differences with what can be said about them (`differences.py`), as a table (`table.py`) and in words
(`sentences.py`), and a difference is taken apart into the criteria that flipped (`flips.py`). Which names there are to
choose from is in `comparable.py`.
"""

from tasks.compare.asking import question_of
from tasks.compare.comparable import comparable
from tasks.compare.conditions import Changes, ConditionsAnswer, ConditionTable, conditions
from tasks.compare.differences import Answer, Difference, compare, short
from tasks.compare.flips import Flip, Flips, flips_of, with_explanations
from tasks.compare.leaderboard import EVERY, OFFICIAL_HARD, Choice, leaderboard
from tasks.compare.model_run import KINDS, Kind, ModelRun, Pair, Question, Side
from tasks.compare.people import against_people
from tasks.compare.sentences import decision, figure, notes_on, p_value, sentence, small_note, where_in
from tasks.compare.table import INTERVAL, DifferenceTable, table_of

__all__ = [
    "EVERY",
    "INTERVAL",
    "KINDS",
    "OFFICIAL_HARD",
    "Answer",
    "Changes",
    "Choice",
    "ConditionTable",
    "ConditionsAnswer",
    "Difference",
    "DifferenceTable",
    "Flip",
    "Flips",
    "Kind",
    "ModelRun",
    "Pair",
    "Question",
    "Side",
    "against_people",
    "comparable",
    "compare",
    "conditions",
    "decision",
    "figure",
    "flips_of",
    "leaderboard",
    "notes_on",
    "p_value",
    "question_of",
    "sentence",
    "short",
    "small_note",
    "table_of",
    "where_in",
    "with_explanations",
]
