"""A cost cap that cannot be enforced, through the command."""

import pytest

from tests.flows.conftest import N_CRITERIA, N_TASKS, settings

pytestmark = pytest.mark.slow

NO_PRICE = "model alpha: has no known price, so --max-usd cannot be enforced; set its `price`"


def test_a_cap_that_cannot_be_enforced_is_refused(command, provider):
    command.configure(**settings(provider, trials=1))

    refusal = command("run", "--warehouse", "data", "--max-usd", "3", code=2)

    assert refusal.stderr.splitlines() == ["run: started", f"prbench: {NO_PRICE}"]
    assert not (command.folder / "data").exists()
    assert provider.book == []


def test_the_plan_says_why_a_cap_would_be_refused(command, provider):
    command.configure(**settings(provider, trials=1))

    planned = command.json("plan", "--warehouse", "data")  # loads the data set itself
    shown_plan = command("plan", "--warehouse", "data")

    assert [
        (row["label"], row["model"], row["calls"]) for row in planned["calls"]
    ] == [
        ("alpha", "", N_TASKS),
        ("beta", "", N_TASKS),
        ("judge", "alpha", N_CRITERIA),
        ("judge", "beta", N_CRITERIA),
    ]
    assert planned["without_cap"][0] == NO_PRICE
    assert planned["total"]["cost_usd_high"] is None
    output = shown_plan.stdout
    advice = "Unknown for judge: its price is unknown; set its `price`"
    assert output.count(advice) == 1
    assert "A cap would be refused: judge judge: has no known price" in output
    assert "loading" not in shown_plan.stderr
    assert provider.book == []
