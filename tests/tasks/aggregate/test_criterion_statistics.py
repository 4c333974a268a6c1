"""Statistics of each criterion, against verdicts counted one by one and against NumPy's correlation."""

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest

from tests.kit import Fill, admitted, criterion, differing, response, verdict
from tests.tasks.aggregate.world import refused

MODELS = ("ada", "bell", "curie", "dirac", "euler")
FEW_MODELS = MODELS[:3]
"""The models with a response to the last task: too few for an interval."""
JUDGES: dict[str, dict[str, Any]] = {"axel": {}, "axel#2": {"judge": "axel", "judge_trial": 2}, "tern": {}}
"""Judge in a repetition -> what its verdicts say of it"""

Key = tuple[str, str]
"""(judge in a repetition, criterion id)"""
Table = dict[Key, dict[str, Any]]
Decided = dict[Key, list[tuple[str, dict[str, float]]]]
"""Model and decisions by criterion of the complete responses."""


class Judged:
    """Decisions of judges on the responses of five models, and the rows that say so."""

    def __init__(self, seed: int) -> None:
        dice = random.Random(seed)
        self.ids = [f"t{i}" for i in range(6)]
        self.tables = admitted([*self.ids, "refused"]) | refused("refused")
        self.tables["criteria"] = [
            criterion(task, i, weight)
            for task in (*self.ids, "refused")
            for i, weight in enumerate([5, *dice.choices([8, 6, 2, -3, -9], k=6)])
        ]
        self.weights = {each["criterion_id"]: each["weight"] for each in self.tables["criteria"]}
        self.tables["responses"] = [
            response(task, model, trial) for task in (*self.ids, "refused")
            for model in (FEW_MODELS if task == "t5" else MODELS) for trial in (1, 2)
        ]  # fmt: skip
        self.model_of = {each["response_id"]: each["model"] for each in self.tables["responses"]}
        self.tables["verdicts"] = []
        self.decisions: dict[str, dict[str, dict[str, float | None]]] = {judge: {} for judge in JUDGES}
        for judge, of_response in itertools.product(JUDGES, self.tables["responses"]):
            if dice.random() < 0.9:
                self._judge(dice, judge, of_response)

    def _judge(self, dice: random.Random, judge: str, of_response: dict[str, Any]) -> None:
        skill, decided = dice.random(), {}
        for of_criterion in self.tables["criteria"]:
            if of_criterion["task_id"] == of_response["task_id"]:
                value = self._decide(dice, judge, of_criterion, skill)
                about = {"judge": judge} | JUDGES[judge]
                judged = verdict(of_response, of_criterion, value, **about)
                is_old = dice.random() < 0.01
                if is_old:
                    judged["criterion_hash"] = "an-older-wording"
                self.tables["verdicts"].append(judged)
                decided[of_criterion["criterion_id"]] = None if is_old else value
        if of_response["task_id"] != "refused":
            self.decisions[judge][of_response["response_id"]] = decided

    @staticmethod
    def _decide(dice: random.Random, judge: str, of_criterion: dict[str, Any], skill: float) -> float | None:
        if dice.random() < 0.01:
            return None
        # The first criterion of `t0` is never met and that of `t1` always, whoever judges.
        if of_criterion["criterion_id"] in {"t0-c0", "t1-c0"}:
            return float(of_criterion["task_id"] == "t1")
        if judge == "tern" and dice.random() < 0.3:
            return 0.5
        return float(dice.random() < (skill if of_criterion["weight"] > 0 else 1 - skill))

    def complete(self, judge: str, criterion_id: str) -> list[tuple[str, dict[str, float]]]:
        """(model, decisions by criterion) of the responses to the criterion's task that are decided in full."""
        result = []
        for response_id, values in self.decisions[judge].items():
            known = {name: value for name, value in values.items() if value is not None}
            if criterion_id in known and len(known) == len(values):
                result.append((self.model_of[response_id], known))
        return result

    def disagreement(self, criterion_id: str) -> tuple[int, float] | None:
        """Responses that several judges graded, each in its first repetition, and the share of pairs that differ."""
        pairs, n_graded = [], 0
        for response_id in self.model_of:
            values = [self.decisions[judge].get(response_id, {}).get(criterion_id) for judge in ("axel", "tern")]
            known = [value for value in values if value is not None]
            if len(known) > 1:
                n_graded += 1
                pairs += [a != b for a, b in itertools.combinations(known, 2)]
        return (n_graded, sum(pairs) / len(pairs)) if pairs else None


@pytest.fixture(scope="module")
def judged() -> Judged:
    return Judged(seed=20260304)


@pytest.fixture(scope="module")
def statistics(judged: Judged, published: Fill) -> dict[Key, dict[str, Any]]:
    rows = published(judged.tables).rows("from criterion_statistics")
    result = {(each["judge"] + ("#2" if each["judge_trial"] == 2 else ""), each["criterion_id"]): each for each in rows}
    assert len(rows) == len(result)
    return result


@pytest.fixture(scope="module")
def complete(judged: Judged) -> Decided:
    return {
        (judge, name): result for judge in JUDGES for name in judged.weights if (result := judged.complete(judge, name))
    }


def test_the_share_met_is_over_complete_responses(statistics: Table, complete: Decided) -> None:
    wanted = {
        key: {
            "n_models": len({model for model, _ in result}), "n_responses": len(result),
            "n_models_met": len({model for model, decided in result if decided[key[1]] > 0}),
            "met_share": sum(decided[key[1]] for _, decided in result) / len(result),
        }
        for key, result in complete.items()
    }  # fmt: skip

    assert complete.keys() == statistics.keys()
    assert [] == differing(wanted, statistics)
    assert 0 == statistics["axel", "t0-c0"]["met_share"]
    assert 1 == statistics["tern", "t1-c0"]["met_share"]


def rest_correlation(judged: Judged, criterion_id: str, result: list[tuple[str, dict[str, float]]]) -> float | None:
    """The correlation of a criterion's points, up to their size, with those of the rest of its task."""
    own = [math.copysign(1.0, judged.weights[criterion_id]) * decided[criterion_id] for _, decided in result]
    rest = [
        sum(judged.weights[name] * value for name, value in decided.items() if name != criterion_id)
        for _, decided in result
    ]
    if len(set(own)) == 1 or len(set(rest)) == 1:
        return None
    return float(np.corrcoef(own, rest)[0, 1])


def test_the_rest_correlation_is_that_of_numpy(judged: Judged, statistics: Table, complete: Decided) -> None:
    wanted: dict[Key, dict[str, float | None]] = {}
    for key, result in complete.items():
        correlation, n_models = rest_correlation(judged, key[1], result), len({model for model, _ in result})
        has_end = correlation is not None and n_models > 3
        wanted[key] = {
            "rest_correlation": correlation,
            "rest_correlation_high": math.tanh(math.atanh(correlation or 0) + 1.96 / math.sqrt(n_models - 3))
            if has_end else None,
        }  # fmt: skip

    assert any((result["rest_correlation"] or 0) < -0.2 for result in wanted.values())
    assert wanted["axel", "t0-c0"]["rest_correlation"] is None
    assert 0 < sum(result["rest_correlation_high"] is not None for result in wanted.values()) < len(complete)
    assert [] == differing(wanted, statistics)


def test_disagreement_is_the_share_of_differing_pairs(judged: Judged, statistics: Table) -> None:
    result = {key: judged.disagreement(key[1]) or (None, None) for key in statistics}
    wanted = {key: {"n_graded": n, "disagreement": share} for key, (n, share) in result.items()}

    assert [] == differing(wanted, statistics)
