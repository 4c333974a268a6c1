"""Statistics of each criterion, against verdicts counted one by one and against NumPy's
correlation.
"""

import itertools
import math
from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest

from tests.kit import Row, Rows, differing
from tests.tasks.aggregate.world import REFUSED
from warehouse import Reader


class Grader(NamedTuple):
    vintage: str
    judge: str
    grading: str
    judge_trial: int


class GradedCriterion(NamedTuple):
    vintage: str
    judge: str
    grading: str
    judge_trial: int
    criterion_id: str


@dataclass
class GradedResponse:
    """A grader's decisions on one response, by criterion."""

    task_id: str
    model: str
    decisions: dict[str, float]


NEVER_MET = GradedCriterion("base", "a-judge", "binary", 1, "t000-c0")
ALWAYS_MET = GradedCriterion("base", "a-judge", "binary", 1, "t001-c0")
Graded = dict[Grader, dict[str, GradedResponse]]
"""Each grader's responses, by their ids."""
Complete = dict[GradedCriterion, list[GradedResponse]]
"""The responses of which a grader decided all criteria, by each of these."""


@pytest.fixture(scope="module")
def graded(world: Rows) -> Graded:
    """The decisions of all graders; ternary ones also as binary."""
    current_contents = {
        (criterion["criterion_id"], criterion["content_hash"])
        for criterion in world["criteria"]
        if criterion["task_id"] != REFUSED
    }
    graded = defaultdict(dict)
    for verdict in world["verdicts"]:
        content = (verdict["criterion_id"], verdict["criterion_hash"])
        if verdict["value"] is None or content not in current_contents:
            continue
        values = {verdict["grading"]: verdict["value"]}
        if verdict["grading"] == "ternary":
            values["ternary_as_binary"] = float(verdict["value"] == 1)
        for grading, value in values.items():
            grader = Grader(
                verdict["vintage"], verdict["judge"], grading, verdict["judge_trial"]
            )
            response = graded[grader].setdefault(
                verdict["response_id"],
                GradedResponse(verdict["task_id"], verdict["model"], {}),
            )
            response.decisions[verdict["criterion_id"]] = value
    return graded


@pytest.fixture(scope="module")
def complete(world: Rows, graded: Graded) -> Complete:
    n_criteria = Counter(criterion["task_id"] for criterion in world["criteria"])
    complete = defaultdict(list)
    for grader, responses in graded.items():
        for response in responses.values():
            if len(response.decisions) == n_criteria[response.task_id]:
                for criterion_id in response.decisions:
                    complete[GradedCriterion(*grader, criterion_id)].append(response)
    return complete


@pytest.fixture(scope="module")
def statistics(reader: Reader) -> dict[GradedCriterion, Row]:
    rows = reader.rows("from criterion_statistics")
    by_criterion = {}
    for row in rows:
        criterion = GradedCriterion(*(row[name] for name in GradedCriterion._fields))
        by_criterion[criterion] = row
    assert len(rows) == len(by_criterion)
    return by_criterion


def test_the_share_met_is_over_complete_responses(statistics, complete):
    expected = {}
    for criterion, responses in complete.items():
        values = [
            response.decisions[criterion.criterion_id] for response in responses
        ]
        models_met = {
            response.model
            for response, value in zip(responses, values, strict=True)
            if value > 0
        }
        expected[criterion] = {
            "n_models": len({response.model for response in responses}),
            "n_responses": len(responses),
            "n_models_met": len(models_met),
            "met_share": sum(values) / len(values),
        }

    assert statistics.keys() == expected.keys()
    assert differing(expected, statistics) == []
    assert statistics[NEVER_MET]["met_share"] == 0
    assert statistics[ALWAYS_MET]["met_share"] == 1


def rest_correlation(
    weights: dict[str, float], criterion_id: str, responses: list[GradedResponse]
) -> float | None:
    """The correlation of a criterion's points, scaled to 1 or -1, with those of the rest of its
    task.
    """
    sign = math.copysign(1.0, weights[criterion_id])
    points = []
    rest_points = []
    for response in responses:
        all_points = sum(
            weights[name] * value for name, value in response.decisions.items()
        )
        value = response.decisions[criterion_id]
        points.append(sign * value)
        rest_points.append(round(all_points - weights[criterion_id] * value, 9))
    if len(set(points)) == 1 or len(set(rest_points)) == 1:
        return None
    return float(np.corrcoef(points, rest_points)[0, 1])


@pytest.fixture(scope="module")
def correlations(
    world: Rows, complete: Complete
) -> dict[GradedCriterion, float | None]:
    weights = {
        criterion["criterion_id"]: criterion["weight"]
        for criterion in world["criteria"]
    }
    return {
        criterion: rest_correlation(weights, criterion.criterion_id, responses)
        for criterion, responses in complete.items()
    }


def test_the_rest_correlation_is_that_of_numpy(statistics, correlations):
    expected = {
        key: {"rest_correlation": value} for key, value in correlations.items()
    }

    assert differing(expected, statistics) == []
    assert correlations[NEVER_MET] is None
    assert any(value is not None and value < -0.2 for value in correlations.values())


def test_the_rest_correlation_has_an_upper_end_from_four_models_on(
    statistics, correlations, complete
):
    expected = {}
    for criterion, correlation in correlations.items():
        n_models = len({response.model for response in complete[criterion]})
        end = None
        if correlation is not None and n_models > 3:
            end = math.tanh(math.atanh(correlation) + 1.96 / math.sqrt(n_models - 3))
        expected[criterion] = {"rest_correlation_high": end}

    assert differing(expected, statistics) == []
    ends = {row["rest_correlation_high"] is None for row in expected.values()}
    assert ends == {True, False}


def test_disagreement_is_the_share_of_differing_pairs(graded, statistics):
    """The pairs are of judges and people in their first repetition, ternary read as binary, over
    all responses.
    """
    values = defaultdict(lambda: defaultdict(list))
    for grader, responses in graded.items():
        if grader.judge_trial != 1 or grader.grading == "ternary":
            continue
        for response_id, response in responses.items():
            for criterion_id, value in response.decisions.items():
                values[criterion_id][response_id].append(value)

    expected = {}
    for criterion in statistics:
        decisions = [
            votes
            for votes in values[criterion.criterion_id].values()
            if len(votes) > 1
        ]
        pairs = []
        for votes in decisions:
            pairs += itertools.combinations(votes, 2)
        n_differing = sum(len(set(pair)) == 2 for pair in pairs)
        expected[criterion] = {
            "n_graded": len(decisions) or None,
            "disagreement": n_differing / len(pairs) if pairs else None,
        }
    assert differing(expected, statistics) == []
