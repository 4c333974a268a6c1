"""The plan: costs that were never measured, and the expected calls of a run that stops."""

import numpy as np
import pytest

from tasks.llm.request import Prices
from tasks.plan.estimate import COUNTED, PerCall, Planned, planned_calls, total_of
from tasks.plan.stopping import ORDERS, expected_calls, needed_calls, simulated
from tasks.rules.stopping import DIFFERENT, Rule
from tasks.stopping.comparisons import ComparedModel, PlannedComparison, Progress

PRICES = Prices(1.0, 0.5, 10.0)


def test_responses_that_were_never_measured_cost_from_the_shortest_to_the_longest_that_is_assumed() -> (
    None
):
    planned = planned_calls(
        "sample", "a-model", 1_000, PerCall(100, basis=COUNTED), PRICES, reply_limit=2_000
    )

    assert planned.prompt_tokens == 100_000
    assert planned.completion_tokens is None
    assert planned.cost_usd is None
    assert planned.cost_usd_low == pytest.approx(0.1 + 500 * 0.01)
    assert planned.cost_usd_high == pytest.approx(0.1 + 2_000 * 0.01)
    assert planned.basis == "assumed"
    assert planned.assumed == "responses of 500 to 2,000 tokens"


def test_a_judge_of_responses_to_come_reads_an_assumed_length_beside_what_is_counted() -> None:
    planned = planned_calls("judge", "a-judge", 1_000, PerCall(base_prompt=700), PRICES)

    # In the cheapest case most prompt tokens are cached, at half the price.
    assert planned.cost_usd_low == pytest.approx(1_000 * (1 - 0.85 / 2) / 1_000 + 50 * 0.01)
    assert planned.cost_usd_high == pytest.approx(2_700 / 1_000 + 1_000 * 0.01)
    assert (
        "responses of 300 to 2,000 tokens to judge, replies of 50 to 1,000 tokens"
        in planned.assumed
    )


def test_without_a_price_there_is_no_range_and_the_sum_has_none_either() -> None:
    unknown = planned_calls("judge", "a-judge", 10, PerCall(base_prompt=700), Prices())
    known = planned_calls("sample", "a-model", 10, PerCall(100, basis=COUNTED), PRICES)

    assert unknown.cost_usd_low is None
    assert unknown.cost_usd_high is None
    assert unknown.note == "its price is unknown; set its `price`"
    assert total_of([known, unknown]).cost_usd_low is None
    assert pytest.approx(2 * (known.cost_usd_high or 0)) == total_of([known, known]).cost_usd_high


def test_what_is_free_costs_nothing_at_any_length_and_measured_lengths_have_one_cost() -> None:
    planned = planned_calls(
        "judge", "a-judge", 10, PerCall(base_prompt=700), Prices(0.0, 0.0, 0.0, "embedded")
    )
    assert planned.cost_usd == 0.0
    assert planned.cost_usd_high == 0.0
    assert planned.assumed == ""
    measured = planned_calls("sample", "a-model", 1_000, PerCall(100, 0, 10, "measured"), PRICES)
    assert (
        measured.cost_usd
        == measured.cost_usd_low
        == measured.cost_usd_high
        == pytest.approx(0.1 + 0.1)
    )
    assert measured.basis == "measured"
    assert measured.assumed == ""


ORDER = tuple(f"t{number:03}" for number in range(100))
CLEAR = {task: 0.3 + 0.01 * (number % 7) for number, task in enumerate(ORDER)}
UNCLEAR = {task: 0.2 * (-1) ** number for number, task in enumerate(ORDER)}


def progress(first: str, second: str, block: int = 0, decision: str = "open") -> Progress:
    a, b = (ComparedModel(label, "a-hash", "base") for label in (first, second))
    rule = Rule("different", 0.05, 0.02, (20, 40, 60, 80, 100))
    return Progress(PlannedComparison(a, b, rule, ORDER), block, decision)


def test_only_the_missing_tasks_among_those_that_are_needed_are_called() -> None:
    needed, (compared,) = simulated([progress("a", "b")], [CLEAR])
    assert compared["tasks"]["median"] == 20
    # 15 of the first 20 tasks are done.
    missing = [("a", task, 1) for task in ORDER[15:]]
    assert expected_calls(Planned("sample", "a", 85), missing, needed)["calls"]["median"] == 5


def test_a_settled_comparison_needs_what_it_has_and_an_open_one_more_than_that() -> None:
    missing = [("a", task, 1) for task in ORDER[40:]]
    needed, (compared,) = simulated([progress("a", "b", 2, DIFFERENT)], [UNCLEAR])
    assert compared["tasks"]["median"] == 40
    assert compared["decided_share"] == 1
    assert expected_calls(Planned("sample", "a", 60), missing, needed)["calls"]["high"] == 0
    needed, (compared,) = simulated([progress("a", "b", 2)], [CLEAR])
    assert compared["tasks"]["low"] == 60
    assert expected_calls(Planned("sample", "a", 60), missing, needed)["calls"]["median"] == 20


def test_a_judge_is_called_for_what_each_model_needs() -> None:
    needed, _ = simulated(
        [progress("a", "b", 5), progress("a", "c", 1, DIFFERENT), progress("b", "c", 1, DIFFERENT)],
        [UNCLEAR] * 3,
    )
    # Model c needs 20 tasks with 3 criteria each; a and b, and a model without a comparison, need
    # all.
    missing = [(label, task, 3) for label in ("a", "c", "alone") for task in ORDER]
    rows = expected_calls(Planned("judge", "a-judge", 900), missing, needed)
    assert rows["calls"]["low"] == 660
    assert rows["calls"]["median"] == 660
    assert np.array_equal(needed_calls(needed, []), np.zeros(ORDERS))
