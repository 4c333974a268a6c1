"""The plan: costs that were never measured, and the expected calls of a run that stops."""

from dataclasses import replace

import pytest

from tasks.llm.request import Prices
from tasks.plan.estimate import COUNTED, PerCall, Planned, planned_calls, total_of
from tasks.plan.stopping import (
    ORDERS,
    Needed,
    expected_calls,
    needed_calls,
    simulated,
)
from tasks.rules.stopping import DIFFERENT, Rule
from tasks.stopping.comparisons import ComparedModel, PlannedComparison, Progress

PRICES = Prices(1.0, 0.5, 10.0)
"""USD per million tokens: of prompts, cached prompts, and replies."""


def planned_responses(reply_limit: int) -> Planned:
    return planned_calls(
        "sample",
        "a-model",
        1_000,
        PerCall(100, basis=COUNTED),
        PRICES,
        reply_limit=reply_limit,
    )


def test_unmeasured_responses_cost_from_the_shortest_to_the_longest_assumed_length():
    planned = planned_responses(2_000)

    assert planned.prompt_tokens == 100_000
    assert planned.completion_tokens is None
    assert planned.cost_usd is None
    # The prompts cost 0.1; replies of 500 tokens cost 5, and of 2,000 tokens 20.
    assert planned.cost_usd_low == pytest.approx(5.1)
    assert planned.cost_usd_high == pytest.approx(20.1)
    assert planned.basis == "assumed"
    assert planned.assumed == "responses of 500 to 2,000 tokens"


def test_replies_that_a_limit_makes_equally_long_are_still_assumed():
    planned = planned_responses(200)

    # The prompts cost 0.1, and replies of 200 tokens 2.
    assert planned.cost_usd_low == pytest.approx(2.1)
    assert planned.cost_usd_high == pytest.approx(2.1)
    assert planned.basis == "assumed"
    assert planned.assumed == "responses of 200 to 200 tokens"


def test_a_judge_of_future_responses_reads_an_assumed_length_beside_what_is_counted():
    planned = planned_calls(
        "judge", "a-judge", 1_000, PerCall(base_prompt=700), PRICES
    )

    # In the cheapest case 85 % of 1,000 prompt tokens are cached, at half the price, and replies
    # have 50 tokens; in the dearest one, prompts have 2,700 tokens and replies 1,000.
    assert planned.cost_usd_low == pytest.approx(0.575 + 0.5)
    assert planned.cost_usd_high == pytest.approx(2.7 + 10)
    lengths = (
        "responses of 300 to 2,000 tokens to judge, replies of 50 to 1,000 tokens"
    )
    assert lengths in planned.assumed


def test_without_a_price_neither_the_calls_nor_a_sum_has_a_range():
    unpriced = planned_calls(
        "judge", "a-judge", 10, PerCall(base_prompt=700), Prices()
    )
    priced = planned_calls(
        "sample", "a-model", 10, PerCall(100, basis=COUNTED), PRICES
    )

    assert unpriced.cost_usd_low is None
    assert unpriced.cost_usd_high is None
    assert unpriced.note == "its price is unknown; set its `price`"
    assert total_of([priced, unpriced]).cost_usd_low is None


def test_the_ends_of_ranges_are_added():
    planned = replace(
        Planned("sample", "a-model", 10), cost_usd_low=0.5, cost_usd_high=3.0
    )

    total = total_of([planned, planned])

    assert total.cost_usd_low == 1.0
    assert total.cost_usd_high == 6.0


def test_free_calls_cost_nothing_at_any_length():
    prices = Prices(0.0, 0.0, 0.0, "embedded")

    planned = planned_calls("judge", "a-judge", 10, PerCall(base_prompt=700), prices)

    assert planned.cost_usd == 0.0
    assert planned.cost_usd_high == 0.0
    assert planned.assumed == ""


def test_measured_lengths_have_one_cost():
    per_call = PerCall(100, 0, 10, "measured")

    planned = planned_calls("sample", "a-model", 1_000, per_call, PRICES)

    # Prompts and replies cost 0.1 each.
    assert planned.cost_usd == pytest.approx(0.2)
    assert planned.cost_usd_low == planned.cost_usd
    assert planned.cost_usd_high == planned.cost_usd
    assert planned.basis == "measured"
    assert planned.assumed == ""


ORDER = tuple(f"t{number:03}" for number in range(100))
CLEAR = {task_id: 0.3 + 0.01 * (number % 7) for number, task_id in enumerate(ORDER)}
UNCLEAR = {task_id: 0.2 * (-1) ** number for number, task_id in enumerate(ORDER)}


def progress(
    first: str, second: str, block: int = 0, decision: str = "open"
) -> Progress:
    """The progress of a comparison of two models on 100 tasks in five blocks."""
    first_side = ComparedModel(first, "a-hash", "base")
    second_side = ComparedModel(second, "a-hash", "base")
    rule = Rule("different", 0.05, 0.02, (20, 40, 60, 80, 100))
    return Progress(
        PlannedComparison(first_side, second_side, rule, ORDER), block, decision
    )


def expected_samples(needed: Needed, n_done: int) -> dict[str, float]:
    """The expected calls of model a, if it has responses to the first tasks."""
    cells = [("a", task_id, 1) for task_id in ORDER[n_done:]]
    row = expected_calls(Planned("sample", "a", len(cells)), cells, needed)
    return dict(row["calls"])


def test_only_the_missing_tasks_among_the_needed_ones_are_called():
    needed, (expected_tasks,) = simulated([progress("a", "b")], [CLEAR])

    assert expected_tasks["tasks"]["median"] == 20
    assert expected_samples(needed, n_done=15)["median"] == 5


def test_a_settled_comparison_needs_no_more_tasks():
    needed, (expected_tasks,) = simulated(
        [progress("a", "b", 2, DIFFERENT)], [UNCLEAR]
    )

    assert expected_tasks["tasks"]["median"] == 40
    assert expected_tasks["decided_share"] == 1
    assert expected_samples(needed, n_done=40)["high"] == 0


def test_an_open_comparison_needs_at_least_one_more_block():
    needed, (expected_tasks,) = simulated([progress("a", "b", 2)], [CLEAR])

    assert expected_tasks["tasks"]["low"] == 60
    assert expected_samples(needed, n_done=40)["median"] == 20


def test_a_judge_is_called_for_what_each_model_needs():
    needed, _ = simulated(
        [
            progress("a", "b", 5),
            progress("a", "c", 1, DIFFERENT),
            progress("b", "c", 1, DIFFERENT),
        ],
        [UNCLEAR] * 3,
    )
    cells = [
        (label, task_id, 3) for label in ("a", "c", "alone") for task_id in ORDER
    ]

    row = expected_calls(Planned("judge", "a-judge", 900), cells, needed)

    # Model c needs 20 tasks with 3 criteria each; a, and a model without a comparison, need all.
    assert row["calls"]["low"] == 660
    assert row["calls"]["median"] == 660


def test_without_cells_no_call_is_needed():
    assert needed_calls({}, []).tolist() == [0.0] * ORDERS
