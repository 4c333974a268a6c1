"""Statistics of each criterion, against verdicts counted one by one and against NumPy's
correlation.
"""

import itertools
import math
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pytest

from tests.kit import Rows, differing
from tests.tasks.aggregate.world import REFUSED
from warehouse import Reader

Key = tuple[str, str, str, int, str]
"""(vintage, judge, grading, repetition, criterion id)"""
Table = dict[Key, dict[str, Any]]
Decided = dict[Key, list[tuple[str, dict[str, float]]]]
"""The model of each complete response, and its decisions by criterion."""
NEVER, ALWAYS = (("base", "a-judge", "binary", 1, f"{task}-c0") for task in ("t000", "t001"))


@pytest.fixture(scope="module")
def decisions(world: Rows) -> dict[tuple[Any, ...], dict[str, dict[str, float]]]:
    """(vintage, judge, grading, repetition) -> response -> decisions by criterion; ternary ones
    also as binary.
    """
    today = {
        (each["criterion_id"], each["content_hash"])
        for each in world["criteria"]
        if each["task_id"] != REFUSED
    }
    result: Any = defaultdict(lambda: defaultdict(dict))
    for each in world["verdicts"]:
        if each["value"] is not None and (each["criterion_id"], each["criterion_hash"]) in today:
            readings = (
                {"ternary_as_binary": float(each["value"] == 1)}
                if each["grading"] == "ternary"
                else {}
            )
            for grading, value in (readings | {each["grading"]: each["value"]}).items():
                key = (each["vintage"], each["judge"], grading, each["judge_trial"])
                result[key][each["response_id"]][each["criterion_id"]] = value
    return result


@pytest.fixture(scope="module")
def complete(world: Rows, decisions: Any) -> Decided:
    n_criteria = Counter(each["task_id"] for each in world["criteria"])
    responses = {each["response_id"]: each for each in world["responses"]}
    result = defaultdict(list)
    for key, by_response in decisions.items():
        for response_id, decided in by_response.items():
            if len(decided) == n_criteria[responses[response_id]["task_id"]]:
                for name in decided:
                    result[*key, name].append((responses[response_id]["model"], decided))
    return result


@pytest.fixture(scope="module")
def statistics(reader: Reader) -> Table:
    rows = reader.rows("from criterion_statistics")
    names = ("vintage", "judge", "grading", "judge_trial", "criterion_id")
    result: Table = {tuple(each[name] for name in names): each for each in rows}  # type: ignore[misc]
    assert len(rows) == len(result)
    return result


def test_the_share_met_is_over_complete_responses(statistics: Table, complete: Decided) -> None:
    wanted = {
        key: {
            "n_models": len({model for model, _ in result}),
            "n_responses": len(result),
            "n_models_met": len({model for model, decided in result if decided[key[-1]] > 0}),
            "met_share": sum(decided[key[-1]] for _, decided in result) / len(result),
        }
        for key, result in complete.items()
    }

    assert complete.keys() == statistics.keys()
    assert differing(wanted, statistics) == []
    assert statistics[NEVER]["met_share"] == 0
    assert statistics[ALWAYS]["met_share"] == 1


def rest_correlation(
    weights: dict[str, float], name: str, result: list[tuple[str, dict[str, float]]]
) -> float | None:
    """The correlation of a criterion's points, scaled to 1 or -1, with those of the rest of its
    task.
    """
    own = [math.copysign(1.0, weights[name]) * decided[name] for _, decided in result]
    rest = [
        sum(weights[other] * value for other, value in of.items() if other != name)
        for _, of in result
    ]
    if len(set(own)) == 1 or len(set(rest)) == 1:
        return None
    return float(np.corrcoef(own, rest)[0, 1])


def test_the_rest_correlation_is_that_of_numpy(
    world: Rows, statistics: Table, complete: Decided
) -> None:
    weights = {each["criterion_id"]: each["weight"] for each in world["criteria"]}
    wanted: dict[Key, dict[str, float | None]] = {}
    for key, result in complete.items():
        correlation = rest_correlation(weights, key[-1], result)
        n_models = len({model for model, _ in result})
        has_end = correlation is not None and n_models > 3
        wanted[key] = {
            "rest_correlation": correlation,
            "rest_correlation_high": (
                math.tanh(math.atanh(correlation or 0) + 1.96 / math.sqrt(n_models - 3))
                if has_end
                else None
            ),
        }

    assert any((result["rest_correlation"] or 0) < -0.2 for result in wanted.values())
    assert wanted[NEVER]["rest_correlation"] is None
    assert (
        0
        < sum(result["rest_correlation_high"] is not None for result in wanted.values())
        < len(complete)
    )
    assert differing(wanted, statistics) == []


def test_disagreement_is_the_share_of_differing_pairs(decisions: Any, statistics: Table) -> None:
    """The pairs are of judges and people in their first repetition, ternary read as binary, over
    all responses.
    """
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for (_, _, grading, trial), by_response in decisions.items():
        for response_id, decided in (
            by_response.items() if trial == 1 and grading != "ternary" else ()
        ):
            for name, value in decided.items():
                values[name][response_id].append(value)
    wanted = {}
    for key in statistics:
        graded = [of for of in values[key[-1]].values() if len(of) > 1]
        pairs = [a != b for of in graded for a, b in itertools.combinations(of, 2)]
        share = sum(pairs) / len(pairs) if pairs else None
        wanted[key] = {"n_graded": len(graded) or None, "disagreement": share}

    assert differing(wanted, statistics) == []
