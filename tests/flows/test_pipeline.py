"""The whole job as a person starts it: the real command, a real Prefect server, a real provider over a socket."""

import signal
from typing import Any

import pytest

from tests.faults.server import FaultServer, HttpResponse, Request, is_judge_request, well_behaved
from tests.flows.conftest import Command, until

pytestmark = pytest.mark.slow

N_TASKS, N_CRITERIA = 8, 98
"""The sample that ships."""


CONCURRENCY = 8


def settings(server: FaultServer, **changes: Any) -> dict[str, Any]:
    """Two models, one judge, two trials on the sample."""
    return {
        "dataset": {"source": "sample"},
        "models": [
            {"name": "hosted_vllm/alpha", "label": "alpha", "api_base": server.api_base},
            {"name": "hosted_vllm/beta", "label": "beta", "api_base": server.api_base},
        ],
        "judges": [{"name": "hosted_vllm/judge", "label": "judge", "api_base": server.api_base}],
        "trials": 2,
        "limits": {"concurrency": CONCURRENCY, "attempts": 2},
        **changes,
    }


def test_every_cell_is_called_once_and_a_second_run_calls_nothing(command: Command, provider: FaultServer) -> None:
    command.configure(**settings(provider))
    first = command.json("run", "--warehouse", "data")
    assert len(provider.samples) == 2 * 2 * N_TASKS
    # Both trials have the same text here: two verdicts each, and one call answers both.
    assert len(provider.judge_requests) == 2 * N_CRITERIA
    assert len({entry.digest for entry in provider.entries if is_judge_request(entry.request)}) == 2 * N_CRITERIA
    assert {row["model"]: row["n_tasks"] for row in command.json("leaderboard", "--warehouse", "data")} == {
        "alpha": N_TASKS, "beta": N_TASKS,
    }  # fmt: skip
    calls = len(provider.book)
    second = command.json("run", "--warehouse", "data")
    assert len(provider.book) == calls
    assert [first["outcome"], second["outcome"]] == ["done", "done"]
    made = command.sql("select responses_made, verdicts_made from runs order by started_at")
    assert [list(row.values()) for row in made] == [[32, 392], [0, 0]]


def test_failures_are_states_and_the_next_run_tries_those_that_may_pass(command: Command) -> None:
    healed = False

    def faulty(request: Request, number: int) -> HttpResponse:
        if healed:
            return well_behaved(request, number)
        if is_judge_request(request):
            # One criterion in seven gets a reply that is no verdict, a few are refused.
            digit = sum(map(ord, request["messages"][0]["content"])) % 7
            return {0: HttpResponse("true"), 1: HttpResponse("no", finish_reason="content_filter")}.get(
                digit, well_behaved(request, number)
            )
        return well_behaved(request, number)

    with FaultServer(faulty) as server:
        command.configure(**settings(server, trials=1))
        command("run", "--warehouse", "data", code=3)
        by_status = "select status, count(*) as n, count(value) as decided from verdicts group by status order by 1"
        broken = {row["status"]: row for row in command.sql(by_status)}
        assert broken["parse_error"]["n"] > 0
        assert broken["refused"]["n"] > 0
        assert broken["parse_error"]["decided"] == broken["refused"]["decided"] == 0
        assert sum(row["n"] for row in broken.values()) == 2 * N_CRITERIA
        bounds = command.sql("select value, value_lower, value_upper from scores where not is_complete")
        assert bounds
        assert all(row["value"] is None and row["value_lower"] < row["value_upper"] for row in bounds)

        healed = True
        calls = len(server.book)
        command("run", "--warehouse", "data", code=3)
        assert len(server.book) - calls == broken["parse_error"]["n"]
        command("run", "--warehouse", "data", "--retry-failed")
        assert len(server.book) - calls == broken["parse_error"]["n"] + broken["refused"]["n"]
        assert {row["status"] for row in command.sql(by_status)} == {"met", "unmet"}


def test_a_run_whose_calls_all_fail_exits_1_with_one_cause(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTED_VLLM_API_KEY", "a-wrong-key")
    error = {"message": "Who are you?", "type": "auth", "code": None}
    with FaultServer(lambda _request, _number: HttpResponse(status=401, error=error)) as server:
        given = settings(server)
        command.configure(**given | {"models": given["models"][:1], "coverage": {"min": 0}})
        done = command("run", "--warehouse", "data", code=1)
        quiet = command("run", "--warehouse", "data", "-q", code=1)
    for said in (done.stderr, quiet.stderr):
        assert said.count("Who are you?") == 1
        assert said.count("HOSTED_VLLM_API_KEY is set") == 1
        assert said.splitlines()[-1].startswith("exit code 1 (no call succeeded): ")
        assert said.endswith("; correct that and run it again; `prbench doctor` tests each model\n")
    assert "leaderboard" not in done.stdout


@pytest.mark.long
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_is_stopped_goes_on_where_it_stopped(command: Command, stop: signal.Signals) -> None:
    def slow(request: Request, number: int) -> HttpResponse:
        answer = well_behaved(request, number)
        return HttpResponse(answer.text, delay_s=0.4)

    with FaultServer(slow) as server:
        command.configure(**settings(server, trials=1))
        process = command.start("run", "--warehouse", "data")
        until(lambda: len(server.judge_requests) > 40, process)
        process.send_signal(stop)
        _, complaint = process.communicate(timeout=60)
        assert process.returncode == 130, complaint
        stored = command.sql("select (select count(*) from responses) as r, (select count(*) from verdicts) as v")[0]
        assert stored["r"] == 2 * N_TASKS
        assert 0 < stored["v"] < 2 * N_CRITERIA
        calls = len(server.book)
        command("run", "--warehouse", "data")
        # A reply that had arrived and was not yet a row is in the ledger, and not asked for again.
        missing = 2 * N_CRITERIA - stored["v"]
        assert missing - CONCURRENCY <= len(server.book) - calls <= missing
        runs = command.sql("select outcome, verdicts_made, calls from runs order by started_at")
        assert [row["outcome"] for row in runs] == ["interrupted", "done"]
        assert [row["verdicts_made"] for row in runs] == [stored["v"], 2 * N_CRITERIA - stored["v"]]
        assert runs[0]["calls"] >= stored["r"] + stored["v"]


def test_stages_run_one_by_one_and_empty_models_make_no_call(command: Command, provider: FaultServer) -> None:
    command.configure(dataset={"source": "sample"})
    for stage in ("ingest", "assemble", "sample", "judge", "aggregate", "check"):
        command(stage, "--warehouse", "data")
    refused = command("select-hard", "--warehouse", "data", "-q", code=1)
    assert refused.stderr == (
        "prbench: select-hard: no verdict of the configured judge is stored; run `prbench judge` first\n"
    )
    assert provider.book == []
    assert command.sql("select count(distinct task_id) as n from messages") == [{"n": N_TASKS}]
