"""Compare: two models, judges, templates, runs, vintages or revisions, paired by task.

A comparison becomes pairs of model runs that differ only in what is compared (`pairs.py`). These become differences
with intervals and tests (`differences.py`), in words and as rows, with the criteria that flipped (`rows.py`).
"""
