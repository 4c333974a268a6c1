"""The cost cap and the actual cost of a run, through the command, against a server that keeps its
own book.
"""

import pytest

from tests.faults.server import FaultServer, well_behaved
from tests.flows.conftest import N_CRITERIA, N_TASKS, Command, settings

pytestmark = pytest.mark.slow

PRICE = {"input_usd_per_mtok": 100.0, "output_usd_per_mtok": 1000.0}


def _paid_usd(server: FaultServer) -> float:
    """Return the sum that the server would bill, from its own book."""
    paid = [entry.request for entry in server.paid]
    prompts = sum(
        len(message["content"].split()) for request in paid for message in request["messages"]
    )
    replies = sum(len((well_behaved(request, 0).text or "").split()) for request in paid)
    return (prompts * PRICE["input_usd_per_mtok"] + replies * PRICE["output_usd_per_mtok"]) / 1e6


def test_a_run_stops_before_its_cap_and_a_later_run_finishes(
    command: Command, provider: FaultServer
) -> None:
    given = settings(provider, trials=1)
    for endpoint in (*given["models"], *given["judges"]):
        endpoint |= {"price": PRICE, "max_tokens": 50}
    command.configure(**given)
    stopped = command("run", "--warehouse", "data", "--max-usd", "3", code=4)
    assert "stopped at the budget" in stopped.stderr
    assert 0.5 < _paid_usd(provider) <= 3
    calls = len(provider.book)
    row = command.sql(
        "select outcome, cost_usd, calls, verdicts_made from runs order by started_at"
    )[0]
    assert row["outcome"] == "stopped_at_budget"
    assert pytest.approx(_paid_usd(provider)) == row["cost_usd"]
    assert calls == row["calls"]
    assert calls - 2 * N_TASKS == row["verdicts_made"]

    planned = command.json("plan", "--warehouse", "data")
    assert 2 * (N_TASKS + N_CRITERIA) - calls == planned["total"]["calls"]
    command("run", "--warehouse", "data")
    assert planned["total"]["calls"] == len(provider.book) - calls
    prices = command.sql(
        "select distinct input_usd_per_mtok, output_usd_per_mtok, price_table from verdicts"
    )
    assert prices == [PRICE | {"price_table": "configuration"}]
    sums = [
        command.sql(f"select sum(cost_usd) as usd from {table}")[0]["usd"]
        for table in ("responses", "verdicts")
    ]
    assert pytest.approx(_paid_usd(provider)) == sum(sums)


def test_a_cap_that_cannot_be_kept_is_refused_and_the_plan_says_why(
    command: Command, provider: FaultServer
) -> None:
    command.configure(**settings(provider, trials=1))
    no_price = "model alpha: has no known price, so --max-usd cannot be enforced; set its `price`"
    refused = command("run", "--warehouse", "data", "--max-usd", "3", code=2)
    assert refused.stderr.splitlines() == ["run: started", f"prbench: {no_price}"]
    assert not (command.folder / "data").exists()

    planned = command.json("plan", "--warehouse", "data")  # loads the data set itself
    calls = [(each["label"], each["model"], each["calls"]) for each in planned["calls"]]
    to_models = [(model, "", N_TASKS) for model in ("alpha", "beta")]
    assert [*to_models, *(("judge", model, N_CRITERIA) for model in ("alpha", "beta"))] == calls
    assert no_price == planned["without_cap"][0]
    assert planned["total"]["cost_usd_high"] is None
    shown = command("plan", "--warehouse", "data")
    assert shown.stdout.count("Unknown for judge: its price is unknown; set its `price`") == 1
    assert "A cap would be refused: judge judge: has no known price" in shown.stdout
    assert "loading" not in shown.stderr
    assert provider.book == []
