"""Agreement of labels, against scikit-learn, and with too few tasks for an interval."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import jaccard_score, precision_recall_fscore_support

from tasks.rules.statistics.agreement import (
    MACRO,
    MICRO,
    TASKS,
    LabelMeasure,
    label_agreement,
)

LABELS = ["a", "b", "c", "d"]
AVERAGES = {MICRO: "micro", MACRO: "macro", TASKS: "samples"}
LABEL_SETS = st.sets(st.integers(0, len(LABELS) - 1), min_size=1, max_size=3)


def flags(*label_sets: set[int]) -> Any:
    rows = np.zeros((len(label_sets), len(LABELS)), dtype=bool)
    for row, labels in zip(rows, label_sets, strict=True):
        row[list(labels)] = True
    return rows


def values_of(measures: dict[str, LabelMeasure]) -> list[float]:
    return [measure.value for measure in measures.values()]


@settings(max_examples=25)
@given(st.lists(st.tuples(LABEL_SETS, LABEL_SETS), min_size=1, max_size=12))
def test_measures_and_averages_are_those_of_scikit_learn(tasks):
    annotated_sets, expected_sets = zip(*tasks, strict=True)
    annotated = flags(*annotated_sets)
    expected = flags(*expected_sets)
    columns = np.flatnonzero(annotated.any(axis=0) | expected.any(axis=0))
    # scikit-learn treats a single label as another kind of data.
    assume(len(columns) > 1)

    result = label_agreement(annotated, expected, LABELS)

    arrays = (expected[:, columns], annotated[:, columns])
    assert set(result) == {*AVERAGES, *(LABELS[column] for column in columns)}
    for name, average in AVERAGES.items():
        precision, recall, f1, _ = precision_recall_fscore_support(
            *arrays, average=average, zero_division=np.nan
        )
        jaccard = jaccard_score(*arrays, average=average)
        values = [precision, recall, f1, jaccard]
        assert values_of(result[name]) == pytest.approx(values, nan_ok=True)
    scores = precision_recall_fscore_support(
        *arrays, average=None, zero_division=np.nan
    )
    for index, column in enumerate(columns):
        values = values_of(result[LABELS[column]])[:3]
        assert values == pytest.approx(
            [score[index] for score in scores[:3]], nan_ok=True
        )


@pytest.fixture
def few_changes() -> dict[str, dict[str, LabelMeasure]]:
    """The agreement on sixty tasks, of which four have another label than expected."""
    expected = flags(*[{0}] * 30, *[{1}] * 30)
    annotated = flags(*[{2}] * 4, *[{0}] * 26, *[{1}] * 30)
    return label_agreement(annotated, expected, LABELS)


def test_a_measure_that_only_few_tasks_can_change_has_no_interval(few_changes):
    recall = few_changes["a"]["recall"]
    macro_f1 = few_changes[MACRO]["f1"]

    assert recall.value == pytest.approx(26 / 30)
    assert np.isnan([recall.ci_low, recall.ci_high]).all()
    assert np.isnan([macro_f1.ci_low, macro_f1.ci_high]).all()


def test_n_labels_are_given_ones_for_precision_expected_for_recall_else_both(
    few_changes,
):
    assert few_changes["c"]["precision"].n_labels == 4
    assert few_changes["a"]["recall"].n_labels == 30
    assert few_changes["c"]["f1"].n_labels == 0
