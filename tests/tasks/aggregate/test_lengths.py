"""Rank correlations of length and score, against SciPy's on the scores of an independent checker."""

import math
import random
import warnings
from collections import defaultdict
from collections.abc import Iterator
from statistics import NormalDist
from typing import Any

import pytest
from scipy import stats

from tests.kit import admitted, criterion, differing, reading, response, row, verdict
from tests.tasks.aggregate.world import figures_of, refused
from tests.tasks.certify.checker import ALL
from warehouse import Reader

MODELS = {"ada": (1, 2, 3), "bell": (1, 2), "curie": (1,), "flat": (1,)}
MEASURES = ("chars_alnum", "completion_tokens")
TASK_SETS = {"finance": 24, "half": 12}
"""Split -> how many of the tasks it holds, from the first"""

Key = tuple[str, str | None, str, str]
"""(task set, model or None for the models of the task set, score name, measure)"""
Lengths = dict[str, int | None]
Pairs = dict[Key, list[tuple[float, float]]]
"""(score, length) of what is correlated."""


class Sampled:
    """Responses of known length, decided in full or not, and the rows that say so."""

    def __init__(self, seed: int) -> None:
        dice = random.Random(seed)
        self.ids = [f"t{i:02d}" for i in range(24)]
        self.tables = admitted([*self.ids, "refused"]) | refused("refused")
        self.tables["split_members"] += [
            row("split_members", split="half", task_id=task, position=i)
            for i, task in enumerate(self.ids[: TASK_SETS["half"]])
        ]
        # Rubrics that differ little, so that many tasks come to the same.
        self.tables["criteria"] = [
            criterion(task, i, weight)
            for task in (*self.ids, "refused")
            for i, weight in enumerate(dice.choice([(4, 4, -2), (1, 1, 2), (5, 5, 10, -5), (2, 2, 6)]))
        ]
        self.tables["responses"], self.tables["verdicts"] = [], []
        self.lengths: dict[tuple[str, str, int], Lengths] = {}
        for task in (*self.ids, "refused"):
            for model, trials in MODELS.items():
                for trial in trials:
                    self._respond(dice, task, model, trial)
        self.figures = figures_of(self.tables)

    def _respond(self, dice: random.Random, task: str, model: str, trial: int) -> None:
        lengths: Lengths = {
            "chars_alnum": dice.choice([100, 150, 200, 250, 300, 350]),
            # Not every provider reports them; one model's responses are all alike.
            "completion_tokens": 7 if model == "flat" else dice.choice([None, *range(40, 60)]),
        }
        status = "ok" if dice.random() < 0.95 else "timeout"
        of_model = response(task, model, trial, status, **lengths)
        self.tables["responses"].append(of_model)
        rubric = [each for each in self.tables["criteria"] if each["task_id"] == task]
        values = [None if dice.random() < 0.01 else int(dice.random() < 0.5) for _ in rubric]
        if status != "ok":
            return
        self.tables["verdicts"] += [verdict(of_model, each, value) for each, value in zip(rubric, values, strict=True)]
        self.lengths[task, model, trial] = lengths

    def values(self, task_set: str, model: str, name: str) -> dict[str, dict[int, float]]:
        """Task -> trial -> score, of the tasks of a set that count for the model."""
        (run,) = (each for each in self.figures.runs if each[0] == model)
        result = self.figures.of_tasks(run, (task_set, False), ALL, name)[0]
        return {task: trials for task, trials in result.items() if trials}

    def of_tasks(self, task_set: str, model: str, name: str, measure: str) -> list[tuple[float, float | None]]:
        """(score, length) of each task that counts for the model; the length None where no trial has one."""
        result = []
        for task, trials in self.values(task_set, model, name).items():
            lengths = [of for trial in trials if (of := self.lengths[task, model, trial][measure]) is not None]
            result.append((mean([*trials.values()]), mean(lengths) if lengths else None))
        return result


def mean(values: list[Any]) -> float:
    """A mean in which ties are ties."""
    return round(math.fsum(values) / len(values), 12)


@pytest.fixture(scope="module")
def sampled() -> Sampled:
    return Sampled(seed=20260305)


@pytest.fixture(scope="module")
def reader(sampled: Sampled, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with reading(tmp_path_factory.mktemp("lengths"), sampled.tables) as opened:
        yield opened


@pytest.fixture(scope="module")
def correlations(reader: Reader) -> dict[Key, dict[str, Any]]:
    rows = reader.rows("from length_correlations")
    result = {(each["split"], each["model"], each["score_name"], each["measure"]): each for each in rows}
    assert len(rows) == len(result)
    assert [] == [each for each in rows if (each["level"] == "models") != (each["model"] is None)]
    return result


@pytest.fixture(scope="module")
def wanted(sampled: Sampled) -> Pairs:
    """What is correlated, as (score, length)."""
    result: Pairs = defaultdict(list)
    for task_set in TASK_SETS:
        for model in MODELS:
            for name in ("score", "min_normalized"):
                for measure in MEASURES:
                    pairs = sampled.of_tasks(task_set, model, name, measure)
                    known = [(score, length) for score, length in pairs if length is not None]
                    result[task_set, model, name, measure] = known
                    if known:
                        means = mean([score for score, _ in pairs]), mean([length for _, length in known])
                        result[task_set, None, name, measure].append(means)
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


def test_the_correlation_is_that_of_scipy(wanted: Pairs, correlations: dict[Key, dict[str, Any]]) -> None:
    expected = {key: {"n": len(pairs), "rank_correlation": spearman(pairs)} for key, pairs in wanted.items()}

    assert expected.keys() == correlations.keys()
    assert [] == differing(expected, correlations)


def test_a_correlation_has_fishers_interval_from_ten_on_none_below(correlations: dict[Key, dict[str, Any]]) -> None:
    assert {True, False} == {result["ci_low"] is None for result in correlations.values()}
    for result in correlations.values():
        rho, n = result["rank_correlation"], result["n"]
        assert result["is_small"] == (n < 50)
        if rho is None or n < 10 or abs(rho) > 1 - 1e-9:
            assert (None, None) == (result["ci_low"], result["ci_high"])
        else:
            half = NormalDist().inv_cdf(0.975) * math.sqrt((1 + rho**2 / 2) / (n - 3))
            wanted = [math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half)]
            assert pytest.approx(wanted, abs=1e-9) == [result["ci_low"], result["ci_high"]]
