"""The cost cap and the actual cost of a run, through the command, against a server that keeps its own book."""

import pytest

from tests.faults.server import FaultServer, HttpResponse, Request, well_behaved
from tests.flows.conftest import Command
from tests.flows.test_pipeline import N_CRITERIA, N_TASKS, settings

pytestmark = pytest.mark.slow

PRICE = {"input_usd_per_mtok": 100.0, "output_usd_per_mtok": 1000.0}


def _priced(server: FaultServer, **changes: object) -> dict[str, object]:
    given = settings(server, trials=1, **changes)
    for endpoint in (*given["models"], *given["judges"]):
        endpoint |= {"price": PRICE, "max_tokens": 50}
    return given


def _paid_usd(server: FaultServer) -> float:
    """Return the sum that the server would bill, from its own book."""
    paid = [entry.request for entry in server.paid]
    prompts = sum(len(message["content"].split()) for request in paid for message in request["messages"])
    answers = sum(len((well_behaved(request, 0).text or "").split()) for request in paid)
    return (prompts * PRICE["input_usd_per_mtok"] + answers * PRICE["output_usd_per_mtok"]) / 1e6


def test_a_run_stops_before_its_cap_and_a_later_run_finishes(command: Command, provider: FaultServer) -> None:
    command.configure(**_priced(provider))
    stopped = command("run", "--warehouse", "data", "--max-usd", "3", code=4)
    assert "stopped at the budget" in stopped.stderr
    assert 0.5 < _paid_usd(provider) <= 3
    calls = len(provider.book)
    row = command.sql("select outcome, cost_usd, calls, verdicts_made from runs order by started_at")[0]
    assert row["outcome"] == "stopped_at_budget"
    assert row["cost_usd"] == pytest.approx(_paid_usd(provider))
    assert (row["calls"], row["verdicts_made"]) == (calls, calls - 2 * N_TASKS)

    planned = command.json("plan", "--warehouse", "data")
    assert planned["total"]["calls"] == 2 * (N_TASKS + N_CRITERIA) - calls
    command("run", "--warehouse", "data")
    assert len(provider.book) - calls == planned["total"]["calls"]
    prices = command.sql("select distinct input_usd_per_mtok, output_usd_per_mtok, price_table from verdicts")
    assert prices == [PRICE | {"price_table": "configuration"}]
    sums = [command.sql(f"select sum(cost_usd) as usd from {table}")[0]["usd"] for table in ("responses", "verdicts")]
    assert sum(sums) == pytest.approx(_paid_usd(provider))


def test_a_cap_that_cannot_be_kept_is_refused_before_anything_starts(command: Command, provider: FaultServer) -> None:
    command.configure(**settings(provider))
    refused = command("run", "--warehouse", "data", "--max-usd", "3", code=2)
    assert refused.stderr == (
        "prbench: model alpha: has no known price, so --max-usd cannot be enforced; set its `price`\n"
    )
    assert not (command.folder / "data").exists()
    assert provider.book == []


def test_the_plan_says_what_is_not_known_and_why(command: Command, provider: FaultServer) -> None:
    command.configure(**settings(provider, trials=1))
    planned = command.json("plan", "--warehouse", "data")  # loads the data set itself
    by_label = {each["label"]: each for each in planned["calls"]}
    assert [(each["label"], each["model"], each["calls"]) for each in planned["calls"]] == [
        ("alpha", "", N_TASKS), ("beta", "", N_TASKS), ("judge", "alpha", N_CRITERIA), ("judge", "beta", N_CRITERIA),
    ]  # fmt: skip
    assert planned["without_cap"][0] == (
        "model alpha: has no known price, so --max-usd cannot be enforced; set its `price`"
    )
    assert by_label["alpha"]["prompt_tokens"] > 0
    assert by_label["alpha"]["completion_tokens"] is None
    assert "its price is unknown" in by_label["alpha"]["note"]
    assert "responses of 300 to 2,000 tokens to judge" in by_label["judge"]["assumed"]
    assert planned["total"]["cost_usd_high"] is None
    shown = command("plan", "--warehouse", "data")
    assert shown.stdout.count("Unknown for judge: its price is unknown; set its `price`") == 1
    assert "A cap would be refused: judge judge: has no known price" in shown.stdout
    assert "loading" not in shown.stderr
    assert provider.book == []


@pytest.mark.long
def test_a_model_with_a_wrong_key_is_stopped_at_once_and_the_others_go_on(command: Command) -> None:
    def refuses_alpha(request: Request, number: int) -> HttpResponse:
        if request["model"] == "alpha":
            return HttpResponse(status=401, error={"message": "wrong key", "type": "auth", "code": None})
        return well_behaved(request, number)

    with FaultServer(refuses_alpha) as server:
        command.configure(**settings(server, trials=1, limits={"concurrency": 2, "attempts": 5}))
        done = command("run", "--warehouse", "data", code=3)
    assert len([request for request in server.samples if request["model"] == "alpha"]) <= 2
    told = [line for line in done.stderr.splitlines() if "stopped for this run" in line]
    assert len(told) == 1
    assert "wrong key" in told[0]
    shown = {(row["model"], row["judge"]): row for row in command.json("status", "--warehouse", "data")}
    assert shown["beta", "judge"]["done"] == N_CRITERIA
    assert 1 <= shown["alpha", "(responses)"]["failed"] <= 2
    assert "provider_error" in shown["alpha", "(responses)"]["causes"]
