"""The cost cap and the actual cost of a run, through the command, against a server that keeps its
own book.
"""

import pytest

from tests.faults.server import FaultServer, well_behaved
from tests.flows.conftest import N_CRITERIA, N_TASKS, settings

pytestmark = pytest.mark.slow

PRICE = {"input_usd_per_mtok": 100.0, "output_usd_per_mtok": 1000.0}


def billed_usd(server: FaultServer) -> float:
    """The sum that the server would bill, from its own book."""
    n_prompt_words = 0
    n_reply_words = 0
    for entry in server.paid:
        for message in entry.request["messages"]:
            n_prompt_words += len(message["content"].split())
        n_reply_words += len((well_behaved(entry.request, 0).text or "").split())
    prompts_usd = n_prompt_words * PRICE["input_usd_per_mtok"]
    return (prompts_usd + n_reply_words * PRICE["output_usd_per_mtok"]) / 1e6


@pytest.mark.long  # `tests/flows/cli/test_run_end.py` shows a run that stops at its budget
def test_a_run_stops_before_its_cap_and_a_later_run_finishes(command, provider):
    configuration = settings(provider, trials=1)
    for endpoint in (*configuration["models"], *configuration["judges"]):
        endpoint |= {"price": PRICE, "max_tokens": 50}
    command.configure(**configuration)

    capped_run = command("run", "--warehouse", "data", "--max-usd", "3", code=4)
    capped_usd = billed_usd(provider)
    n_capped_calls = len(provider.book)
    [row] = command.sql("from runs")
    planned = command.json("plan", "--warehouse", "data")
    command("run", "--warehouse", "data")

    assert "stopped at the budget" in capped_run.stderr
    assert 0.5 < capped_usd <= 3
    assert row["outcome"] == "stopped_at_budget"
    assert row["cost_usd"] == pytest.approx(capped_usd)
    assert row["calls"] == n_capped_calls
    assert row["verdicts_made"] == n_capped_calls - 2 * N_TASKS
    assert planned["total"]["calls"] == 2 * (N_TASKS + N_CRITERIA) - n_capped_calls
    assert len(provider.book) == 2 * (N_TASKS + N_CRITERIA)
    prices = command.sql(
        "select distinct input_usd_per_mtok, output_usd_per_mtok, price_table from verdicts"
    )
    assert prices == [PRICE | {"price_table": "configuration"}]
    [total] = command.sql(
        "select sum(cost_usd) as usd from"
        " (select cost_usd from responses union all select cost_usd from verdicts)"
    )
    assert total["usd"] == pytest.approx(billed_usd(provider))


NO_PRICE = (
    "model alpha: has no known price, so --max-usd cannot be enforced; set its `price`"
)


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

    assert [(row["label"], row["model"], row["calls"]) for row in planned["calls"]] == [
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
