"""Rank correlations of length and score, against SciPy's on the scores of an independent checker."""

import math
import warnings
from collections import defaultdict
from collections.abc import Iterable
from itertools import product
from statistics import NormalDist
from typing import Any

import pytest
from scipy import stats

from tests.kit import Rows, differing
from tests.tasks.certify.checker import ALL, Figures
from warehouse import Reader

_KEY = ("judge", "grading", "judge_trial", "vintage", "model", "score_name", "measure")
MEASURES = ("chars_alnum", "completion_tokens")
Key = tuple[Any, ...]
"""Task set, judge, vintage, model (None for the models of the task set), score, measure."""


def mean(values: Iterable[float]) -> float:
    """A mean in which ties are ties."""
    listed = list(values)
    return round(math.fsum(listed) / len(listed), 12)


@pytest.fixture(scope="module")
def correlations(reader: Reader) -> dict[Key, dict[str, Any]]:
    rows = reader.rows("from length_correlations")
    result = {
        ((each["split"], each["is_own_hard"]), *(each[name] for name in _KEY)): each for each in rows
    }  # fmt: skip
    assert len(rows) == len(result)
    assert [] == [each for each in rows if (each["level"] == "models") != (each["model"] is None)]
    return result


@pytest.fixture(scope="module")
def wanted(world: Rows, figures: Figures) -> dict[Key, list[tuple[float, float]]]:
    """(score, length) of what is correlated: tasks of a model with the trials that count, and models."""
    responses = {(each["task_id"], each["model"], each["vintage"], each["trial"]): each for each in world["responses"]}
    result: dict[Key, list[tuple[float, float]]] = defaultdict(list)
    for run, task_set, score, measure in product(figures.runs, figures.sets, figures.scores, MEASURES):
        model, _, vintage, judge, _, _, *asked = run
        scores, known = [], []
        for task, trials in figures.of_tasks(run, task_set, ALL, score)[0].items():
            lengths = [of for trial in trials if (of := responses[task, model, vintage, trial][measure]) is not None]
            scores += [mean(trials.values())] if trials else []
            known += [(mean(trials.values()), mean(lengths))] if lengths else []
        if known:
            result[task_set, judge, *asked, vintage, model, score, measure] = known
            of_model = mean(scores), mean(length for _, length in known)
            result[task_set, judge, *asked, vintage, None, score, measure].append(of_model)
    return result


def spearman(pairs: list[tuple[float, float]]) -> float | None:
    """The rank correlation; ties are found in rounded values."""
    scores, lengths = zip(*pairs, strict=True)
    if len(set(scores)) == 1 or len(set(lengths)) == 1:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranks = [[sorted(set(values)).index(value) for value in values] for values in (scores, lengths)]
        return float(stats.spearmanr(*ranks).statistic)


def test_the_correlation_is_that_of_scipy(
    wanted: dict[Key, list[tuple[float, float]]], correlations: dict[Key, dict[str, Any]]
) -> None:
    expected = {key: {"n": len(pairs), "rank_correlation": spearman(pairs)} for key, pairs in wanted.items()}

    assert expected.keys() == correlations.keys()
    assert [] == differing(expected, correlations)


def test_a_correlation_has_fishers_interval_from_ten_on_none_below(correlations: dict[Key, dict[str, Any]]) -> None:
    assert {True, False} == {result["ci_low"] is None for result in correlations.values()}
    for result in correlations.values():
        rho, n = result["rank_correlation"], result["n"]
        assert (n < 50) == result["is_small"]
        if rho is None or n < 10 or abs(rho) > 1 - 1e-9:
            assert (None, None) == (result["ci_low"], result["ci_high"])
        else:
            half = NormalDist().inv_cdf(0.975) * math.sqrt((1 + rho**2 / 2) / (n - 3))
            ends = [math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half)]
            assert pytest.approx(ends, abs=1e-9) == [result["ci_low"], result["ci_high"]]
