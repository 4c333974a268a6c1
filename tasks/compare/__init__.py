"""Comparison of two models, judges, templates, runs, vintages or revisions, paired by task.

`pairs.py` finds pairs of model runs that differ only in the compared property. `differences.py`
computes their differences with intervals and tests, and turns them into sentences and rows, with
the flipped criteria.
"""
