"""Agreement of labels, against scikit-learn, and with too few tasks for an interval."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import jaccard_score, precision_recall_fscore_support

from tasks.rules.statistics.agreement import MACRO, MICRO, TASKS, label_agreement

LABELS = [*"abcd"]
AVERAGES = {
    MICRO: "micro",
    MACRO: "macro",
    TASKS: "samples",
}


def flags(named: list[set[int]]) -> Any:
    return np.array([[index in labels for index in range(len(LABELS))] for labels in named])


label_sets = st.sets(st.integers(0, len(LABELS) - 1), min_size=1, max_size=3)


@settings(max_examples=25)
@given(st.lists(st.tuples(label_sets, label_sets), min_size=1, max_size=12))
def test_measures_and_averages_are_those_of_scikit_learn(
    tasks: list[tuple[set[int], set[int]]],
) -> None:
    named = flags([each for each, _ in tasks])
    expected = flags([other for _, other in tasks])
    used = np.flatnonzero(named.any(axis=0) | expected.any(axis=0))
    assume(len(used) > 1)  # scikit-learn treats a single label as another kind of data
    result = label_agreement(named, expected, LABELS)
    both = (expected[:, used], named[:, used])

    assert {LABELS[index] for index in used} | set(AVERAGES) == set(result)
    for name, average in AVERAGES.items():
        wanted = precision_recall_fscore_support(*both, average=average, zero_division=np.nan)[:3]
        shared = jaccard_score(*both, average=average)
        assert pytest.approx([*wanted, shared], nan_ok=True) == [
            value for value, *_ in result[name].values()
        ]
    each = precision_recall_fscore_support(*both, average=None, zero_division=np.nan)
    for index, column in enumerate(used):
        values = [value for value, *_ in result[LABELS[column]].values()]
        wanted = [float(measure[index]) for measure in each[:3]]
        assert pytest.approx(wanted, nan_ok=True) == values[:3]


def test_a_figure_that_hardly_any_task_could_change_has_no_interval() -> None:
    expected = flags([{0}] * 30 + [{1}] * 30)
    named = expected.copy()
    named[:4] = flags([{2}] * 4)
    result = label_agreement(named, expected, LABELS)

    value, *ends, _ = result["a"]["recall"]
    assert value == pytest.approx(26 / 30)
    assert np.isnan([*ends, *result[MACRO]["f1"][1:3]]).all()
    assert tuple(result["a"][name][3] for name in ("precision", "recall", "f1")) == (26, 30, 26)
