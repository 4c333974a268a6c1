"""Compare: two models, judges, templates, runs, vintages or revisions, paired by task.

A question becomes pairs of model runs that differ only in what is compared (`pairs.py`), these become differences with
what can be said about them, taken apart into the criteria that flipped (`differences.py`), in words and as a table
(`sentences.py`).
"""

from tasks.compare.conditions import Changes, ConditionsAnswer, ConditionTable, conditions
from tasks.compare.differences import Answer, Difference, Flip, Flips, compare, flips_of, short, with_explanations
from tasks.compare.leaderboard import EVERY, OFFICIAL_HARD, Choice, leaderboard
from tasks.compare.pairs import Kind, Question, Side, comparable, question_of
from tasks.compare.people import against_people
from tasks.compare.sentences import (
    INTERVAL,
    decision,
    figure,
    notes_on,
    p_value,
    sentence,
    small_note,
    table_of,
    where_in,
)

__all__ = [
    "EVERY", "INTERVAL", "OFFICIAL_HARD", "Answer", "Changes", "Choice", "ConditionTable",
    "ConditionsAnswer", "Difference", "Flip", "Flips", "Kind", "Question",
    "Side", "against_people", "comparable", "compare", "conditions", "decision", "figure", "flips_of",
    "leaderboard", "notes_on", "p_value", "question_of", "sentence", "short", "small_note", "table_of",
    "where_in", "with_explanations",
]  # fmt: skip
