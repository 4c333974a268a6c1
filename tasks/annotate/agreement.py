"""How far annotations agree with the labels of the data set, and annotators with each other."""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import combinations, groupby
from operator import itemgetter
from typing import Any

import numpy as np

import sql
from tasks.annotate.annotate import RELEASED
from tasks.config import Job
from tasks.rules.identity import digest
from tasks.rules.statistics.labels import MEASURES, LabelAgreement, label_agreement
from tasks.run import StageReport
from warehouse import Reader, Warehouse

Labels = Mapping[str, frozenset[str]]
"""Task -> its labels of one kind."""
Row = dict[str, Any]
_COMPARISON = itemgetter("benchmark", "dataset_revision", "kind", "annotator", "compared_with")
_FIGURES = [f"{name}{end}" for name in MEASURES for end in ("", "_ci_low", "_ci_high")]


def measure_annotations(job: Job) -> StageReport:
    """Measure the agreement where labels have changed since the last time, and publish it."""
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        rows = list(_stale(reader))
    if rows:
        warehouse.write("annotation_agreement", rows)
        warehouse.publish()
    n_pairs = len({row["basis"] for row in rows})
    return StageReport("agreement", rows=len(rows), notes=[f"{n_pairs} comparisons of labels measured"])


def has_unmeasured(reader: Reader) -> bool:
    """Whether labels have changed since their agreement was measured."""
    return any(True for _ in _stale(reader))


def _stale(reader: Reader) -> Iterator[Row]:
    stored: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
    for row in reader.rows("from annotation_agreement"):
        stored[_COMPARISON(row)][row["label"]] = row["basis"]
    for key, given, expected in _pairs(reader):
        yield from _new(key, given, expected, stored)


def _pairs(reader: Reader) -> Iterator[tuple[Row, Labels, Labels]]:
    """What is compared: the key of a comparison, and the labels of its two sources."""
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
            yield {**key, "compared_with": other}, given, expected


def _new(key: Row, given: Labels, expected: Labels, stored: Mapping[tuple[str, ...], dict[str, str]]) -> list[Row]:
    """The rows of a comparison if its labels are others than those that were measured.

    A label that neither side uses any more has a row as well, which replaces the one that is stored.
    """
    tasks = sorted(given.keys() & expected.keys())
    basis = digest("labels", *key.values(), [[task, sorted(given[task]), sorted(expected[task])] for task in tasks])
    before = stored.get(_COMPARISON(key), {})
    if set(before.values()) == {basis} or not (tasks or before):
        return []
    labels = sorted({label for task in tasks for label in given[task] | expected[task]})
    flags, other_flags = (
        np.array([[label in of[task] for label in labels] for task in tasks]) for of in (given, expected)
    )
    measured = {each.label: each for each in (label_agreement(flags, other_flags, labels) if tasks else ())}
    return [
        {
            **key,
            "agreement_id": digest("label agreement", *key.values(), label),
            "label": label,
            "n_tasks": len(tasks),
            **_figures(measured.get(label)),
            "basis": basis,
            "created_at": datetime.now(UTC),
        }
        for label in (*measured, *sorted(before.keys() - measured.keys()))
    ]


def _figures(agreement: LabelAgreement | None) -> Row:
    """The columns of what was measured; None: the label is used by nobody."""
    if agreement is None:
        return {"n_annotated": 0, "n_compared_with": 0, "n_both": 0} | dict.fromkeys(_FIGURES)
    figures: Row = {}
    for name in MEASURES:
        low, high = agreement.intervals[name]
        figures |= {name: agreement.values[name], f"{name}_ci_low": low, f"{name}_ci_high": high}
    return {
        "n_annotated": agreement.n_given, "n_compared_with": agreement.n_expected, "n_both": agreement.n_both,
        **{name: None if math.isnan(value) else value for name, value in figures.items()},
    }  # fmt: skip
