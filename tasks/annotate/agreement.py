"""How far annotations agree with the labels of the data set, and annotators with each other."""

import math
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import combinations, groupby
from operator import itemgetter
from typing import Any

import numpy as np

import sql
from tasks.config import Job
from tasks.rules.identity import digest
from tasks.rules.statistics.labels import MEASURES, LabelAgreement, label_agreement
from tasks.run import StageReport
from warehouse import Reader, Warehouse

RELEASED = "released"
"""What the data set's own labels are compared under."""
Labels = Mapping[str, frozenset[str]]
"""Task -> its labels of one kind."""
Row = dict[str, Any]


def measure_annotations(job: Job) -> StageReport:
    """Measure the agreement where labels have changed since the last time, and publish it."""
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        stored = {row["basis"] for row in reader.rows("select distinct basis from annotation_agreement")}
        rows = [row for row in _rows(reader) if row["basis"] not in stored]
    if rows:
        warehouse.write("annotation_agreement", rows)
        warehouse.publish()
    n_pairs = len({row["basis"] for row in rows})
    return StageReport("agreement", rows=len(rows), notes=[f"{n_pairs} comparisons of labels measured"])


def _rows(reader: Reader) -> Iterator[Row]:
    """The rows of each two sources of labels that have tasks in common."""
    found = reader.rows(sql.read("questions/analyses/labels_by_source"))
    for (benchmark, revision, kind), of_kind in groupby(found, key=itemgetter("benchmark", "dataset_revision", "kind")):
        by_source = {
            source: {row["task_id"]: frozenset(row["labels"]) for row in rows}
            for source, rows in groupby(of_kind, key=lambda row: row["source"])
        }
        released = by_source.pop(RELEASED, {})
        pairs = [(name, RELEASED, labels, released) for name, labels in by_source.items()]
        pairs += [(a, b, by_source[a], by_source[b]) for a, b in combinations(by_source, 2)]
        for annotator, other, given, expected in pairs:
            key = {"benchmark": benchmark, "dataset_revision": revision, "kind": kind, "annotator": annotator}
            yield from _compared({**key, "compared_with": other}, given, expected)


def _compared(key: Row, given: Labels, expected: Labels) -> Iterator[Row]:
    tasks = sorted(given.keys() & expected.keys())
    if not tasks:
        return
    basis = digest("labels", *key.values(), [[task, sorted(given[task]), sorted(expected[task])] for task in tasks])
    labels = sorted({label for task in tasks for label in given[task] | expected[task]})
    flags, other_flags = (
        np.array([[label in of[task] for label in labels] for task in tasks]) for of in (given, expected)
    )
    for each in label_agreement(flags, other_flags, labels):
        yield {
            **key,
            "agreement_id": digest("label agreement", *key.values(), each.label),
            "label": each.label,
            "n_tasks": len(tasks),
            "n_annotated": each.n_given,
            "n_compared_with": each.n_expected,
            "n_both": each.n_both,
            **_figures(each),
            "basis": basis,
            "created_at": datetime.now(UTC),
        }


def _figures(agreement: LabelAgreement) -> Row:
    figures: Row = {}
    for name in MEASURES:
        low, high = agreement.intervals[name]
        figures |= {name: agreement.values[name], f"{name}_ci_low": low, f"{name}_ci_high": high}
    return {name: None if math.isnan(value) else value for name, value in figures.items()}
