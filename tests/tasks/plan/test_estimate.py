"""What a plan says of costs where nothing was measured, and that it needs no stage before it."""

from pathlib import Path

import pytest

from tasks.llm.request import Prices
from tasks.plan.estimate import COUNTED, PerCall, in_all, planned_calls
from tasks.plan.plan import is_prepared, plan, prepare
from tests.kit import job_on

PRICES = Prices(1.0, 0.5, 10.0)


def test_measured_lengths_have_one_cost_and_nothing_assumed() -> None:
    planned = planned_calls("sample", "a-model", 1_000, PerCall(100, 0, 10, "measured"), PRICES)

    assert planned.cost_usd == planned.cost_usd_low == planned.cost_usd_high == pytest.approx(0.1 + 0.1)
    assert (planned.basis, planned.assumed) == ("measured", "")


def test_responses_that_were_never_measured_cost_from_the_shortest_to_the_longest_that_is_assumed() -> None:
    planned = planned_calls("sample", "a-model", 1_000, PerCall(100, basis=COUNTED), PRICES, most_answer=2_000)

    assert (planned.prompt_tokens, planned.completion_tokens, planned.cost_usd) == (100_000, None, None)
    assert planned.cost_usd_low == pytest.approx(0.1 + 500 * 0.01)
    assert planned.cost_usd_high == pytest.approx(0.1 + 2_000 * 0.01)
    assert (planned.basis, planned.assumed) == ("assumed", "responses of 500 to 2,000 tokens")


def test_a_judge_of_responses_to_come_reads_an_assumed_length_beside_what_is_counted() -> None:
    planned = planned_calls("judge", "a-judge", 1_000, PerCall(base_prompt=700), PRICES)

    # In the cheapest case most of the prompts is cached, at half the price.
    assert planned.cost_usd_low == pytest.approx(1_000 * (1 - 0.85 / 2) / 1_000 + 50 * 0.01)
    assert planned.cost_usd_high == pytest.approx(2_700 / 1_000 + 1_000 * 0.01)
    assert "responses of 300 to 2,000 tokens to judge, replies of 50 to 1,000 tokens" in planned.assumed


def test_without_a_price_there_is_no_range_and_the_sum_has_none_either() -> None:
    unknown = planned_calls("judge", "a-judge", 10, PerCall(base_prompt=700), Prices())
    known = planned_calls("sample", "a-model", 10, PerCall(100, basis=COUNTED), PRICES)

    assert (unknown.cost_usd_low, unknown.cost_usd_high) == (None, None)
    assert unknown.note == "its price is unknown; set its `price`"
    assert in_all([known, unknown]).cost_usd_low is None
    assert in_all([known, known]).cost_usd_high == pytest.approx(2 * (known.cost_usd_high or 0))


def test_what_is_free_costs_nothing_at_any_length() -> None:
    planned = planned_calls("judge", "a-judge", 10, PerCall(base_prompt=700), Prices(0.0, 0.0, 0.0, "embedded"))
    assert (planned.cost_usd, planned.cost_usd_high, planned.assumed) == (0.0, 0.0, "")


@pytest.mark.slow
def test_a_plan_needs_no_earlier_stage_and_the_embedded_model_costs_nothing(tmp_path: Path) -> None:
    embedded = {"name": "embedded/smollm2-135m-instruct"}
    job = job_on("sample", tmp_path, models=[embedded], judges=[embedded])
    assert not is_prepared(job)
    prepare(job)

    assert is_prepared(job)
    planned = plan(job)
    assert [(each.role, each.cost_usd, each.assumed) for each in planned] == [("sample", 0.0, ""), ("judge", 0.0, "")]
    assert all(each.calls > 0 for each in planned)
