"""Agreement of labels, against scikit-learn, and where there are too few tasks for an interval."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from sklearn.metrics import jaccard_score, precision_recall_fscore_support

from tasks.rules.statistics.agreement import MACRO, MEASURES, MICRO, TASKS, LabelAgreement, label_agreement

LABELS = ["a", "b", "c", "d"]
AVERAGES = {MICRO: "micro", MACRO: "macro", TASKS: "samples"}


def flags(named: list[set[int]]) -> Any:
    return np.array([[index in labels for index in range(len(LABELS))] for labels in named])


def by_label(result: list[LabelAgreement]) -> dict[str, LabelAgreement]:
    return {each.label: each for each in result}


label_sets = st.sets(st.integers(0, len(LABELS) - 1), min_size=1, max_size=3)


@settings(max_examples=25)
@given(st.lists(st.tuples(label_sets, label_sets), min_size=1, max_size=12))
def test_measures_and_averages_are_those_of_scikit_learn(tasks: list[tuple[set[int], set[int]]]) -> None:
    named, expected = flags([each for each, _ in tasks]), flags([other for _, other in tasks])
    used = np.flatnonzero(named.any(axis=0) | expected.any(axis=0))
    assume(len(used) > 1)  # scikit-learn takes one label alone for something else
    result = by_label(label_agreement(named, expected, LABELS))

    assert set(result) == {LABELS[index] for index in used} | set(AVERAGES)
    for name, average in AVERAGES.items():
        wanted = precision_recall_fscore_support(
            expected[:, used], named[:, used], average=average, zero_division=np.nan
        )[:3]
        shared = jaccard_score(expected[:, used], named[:, used], average=average)
        values = result[name].values
        assert [values[measure] for measure in MEASURES] == pytest.approx([*wanted, shared], nan_ok=True)
    each = precision_recall_fscore_support(expected[:, used], named[:, used], average=None, zero_division=np.nan)
    for index, column in enumerate(used):
        values = result[LABELS[column]].values
        wanted = [float(measure[index]) for measure in each[:3]]
        assert [values[name] for name in MEASURES[:3]] == pytest.approx(wanted, nan_ok=True)


def test_an_interval_holds_its_figure_and_shrinks_with_more_tasks() -> None:
    generator = np.random.default_rng(7)
    widths = []
    for n_tasks in (40, 400):
        expected = flags([{int(index)} for index in generator.integers(0, 4, n_tasks)])
        named = np.where(generator.random((n_tasks, 1)) < 0.7, expected, np.roll(expected, 1, axis=1))
        result = by_label(label_agreement(named, expected, LABELS))
        for each in result.values():
            for name in MEASURES:
                low, high = each.intervals[name]
                assert math.isnan(low) or low <= each.values[name] <= high
        low, high = result[MICRO].intervals["f1"]
        widths.append(high - low)
    assert widths[1] < 0.5 * widths[0]


def test_a_figure_that_hardly_any_task_could_change_has_no_interval() -> None:
    expected = flags([{0}] * 30 + [{1}] * 30)
    named = expected.copy()
    named[:4] = flags([{2}] * 4)
    result = by_label(label_agreement(named, expected, LABELS))

    assert result["a"].values["recall"] == pytest.approx(26 / 30)
    assert np.isnan(result["a"].intervals["recall"]).all()
    assert np.isnan(result[MACRO].intervals["f1"]).all()
    assert (result["a"].n_given, result["a"].n_expected, result["a"].n_both) == (26, 30, 26)


@pytest.mark.long
@pytest.mark.parametrize("n_tasks", [40, 150])
def test_intervals_cover_what_they_estimate(n_tasks: int) -> None:
    """With the truth from a very large sample of the same kind; 600 replications, standard error 0.9 points."""

    def sample(generator: np.random.Generator, size: int) -> tuple[Any, Any]:
        expected = flags([set(map(int, generator.choice(4, 1 + int(generator.random() < 0.3), False)))
                          for _ in range(size)])  # fmt: skip
        noise = generator.random(expected.shape) < 0.12
        named = expected ^ noise
        named[~named.any(axis=1), 0] = True
        return named, expected

    truth = by_label(label_agreement(*sample(np.random.default_rng(0), 200_000)[:2], LABELS)) if n_tasks else {}
    covered = dict.fromkeys(((MICRO, "f1"), (TASKS, "jaccard"), (MACRO, "precision"), ("b", "recall")), 0)
    seen = dict.fromkeys(covered, 0)
    for seed in range(600):
        result = by_label(label_agreement(*sample(np.random.default_rng(seed + 1), n_tasks), LABELS))
        for label, measure in covered:
            low, high = result[label].intervals[measure]
            if not math.isnan(low):
                seen[label, measure] += 1
                covered[label, measure] += low <= truth[label].values[measure] <= high
    for key, count in covered.items():
        assert seen[key] > 400
        assert 0.925 < count / seen[key] < 0.995, key
