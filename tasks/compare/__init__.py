"""Compare: two models, judges, templates, runs, vintages or revisions, paired by task.

A question becomes pairs of model runs that differ only in what is compared (`pairs.py`), these become differences with
what can be said about them (`differences.py`), in words and as rows, with the criteria that flipped (`rows.py`).
"""
