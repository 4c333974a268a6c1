"""The full pipeline as a user starts it: the real command, a real Prefect server, a real provider
over a socket.
"""

import resource
import signal
import subprocess
from dataclasses import replace

import pytest

from flows.cli.main import entry
from tests.faults.server import FaultServer, HttpResponse, Request, is_judge_request, well_behaved
from tests.flows.conftest import CONCURRENCY, N_CRITERIA, N_TASKS, PRBENCH, Command, settings
from tests.kit import Patch, until

pytestmark = pytest.mark.slow


@pytest.mark.long  # `tests/tasks/run/test_increments.py` shows it without processes
def test_every_cell_is_called_once_and_a_second_run_calls_nothing(
    command: Command, provider: FaultServer
) -> None:
    command.configure(**settings(provider))
    first = command.json("run", "--warehouse", "data")
    assert len(provider.samples) == 2 * 2 * N_TASKS
    # Both trials have the same text here, so one call makes the verdicts of both.
    assert len(provider.judge_requests) == 2 * N_CRITERIA
    board = command.json("leaderboard", "--warehouse", "data")
    assert {row["model"]: row["n_tasks"] for row in board} == {"alpha": N_TASKS, "beta": N_TASKS}
    calls = len(provider.book)
    second = command.json("run", "--warehouse", "data")
    assert calls == len(provider.book)
    assert [first["outcome"], second["outcome"]] == ["done", "done"]
    counts = command.sql("select responses_made, verdicts_made from runs order by started_at")
    assert [list(row.values()) for row in counts] == [[32, 392], [0, 0]]


@pytest.mark.long  # `tests/tasks/run/test_refused_cells.py` shows it without processes
def test_failures_are_states_and_the_next_run_tries_those_that_may_pass(command: Command) -> None:
    def faulty(request: Request, number: int) -> HttpResponse:
        # One criterion in seven gets a reply without a verdict, another one a refusal.
        odd = {0: HttpResponse("true"), 1: HttpResponse("no", finish_reason="content_filter")}
        digit = (
            sum(map(ord, request["messages"][0]["content"])) % 7
            if is_judge_request(request)
            else None
        )
        return odd.get(digit, well_behaved(request, number))

    with FaultServer(faulty) as server:
        given = settings(server, trials=1)
        command.configure(**given | {"models": given["models"][:1]})
        command("run", "--warehouse", "data", code=3)
        by_status = (
            "select status, count(*) as n, count(value) as decided from verdicts group by status"
            " order by 1"
        )
        broken = {row["status"]: row["n"] for row in command.sql(by_status) if not row["decided"]}
        assert broken.keys() == {"parse_error", "refused"}

        server.behaviour = well_behaved
        calls = len(server.book)
        command("run", "--warehouse", "data", code=3)
        assert broken["parse_error"] == len(server.book) - calls
        command("run", "--warehouse", "data", "--retry-failed")
        assert sum(broken.values()) == len(server.book) - calls
        assert {row["status"] for row in command.sql(by_status)} == {"met", "unmet"}


def test_a_run_whose_calls_all_fail_exits_1_with_one_cause(
    command: Command, monkeypatch: Patch
) -> None:
    monkeypatch.setenv("HOSTED_VLLM_API_KEY", "a-wrong-key")
    error = {
        "message": "Who are you?",
        "type": "auth",
        "code": None,
    }
    with FaultServer(lambda _request, _number: HttpResponse(status=401, error=error)) as server:
        given = settings(server)
        command.configure(**given | {"models": given["models"][:1], "coverage": {"min": 0}})
        done = command("run", "--warehouse", "data", code=1)
        quiet = command("run", "--warehouse", "data", "-q", code=1)
    for stderr in (done.stderr, quiet.stderr):
        assert stderr.count("Who are you?") == 1
        assert stderr.count("HOSTED_VLLM_API_KEY is set") == 1
        assert stderr.splitlines()[-1].startswith("exit code 1 (no call succeeded): ")
        assert stderr.endswith(
            "; correct that and run it again; `prbench doctor` tests each model\n"
        )
    assert "leaderboard" not in done.stdout


@pytest.mark.parametrize(
    "stop", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)]
)
def test_a_stopped_run_ends_soon_and_goes_on(
    command: Command, provider: FaultServer, stop: signal.Signals
) -> None:
    provider.behaviour = lambda request, number: HttpResponse(
        well_behaved(request, number).text,
        delay_s=600 if len(provider.judge_requests) > 40 else 0.1,
    )
    command.configure(**settings(provider, trials=1))
    process = command.start("run", "--warehouse", "data")
    until(lambda: len(provider.judge_requests) > 40 and provider.in_hand == CONCURRENCY, process)
    process.send_signal(stop)
    _, stderr = process.communicate(timeout=240)
    assert process.returncode == 130, stderr
    interrupted, spent = stderr.splitlines()[-2:]
    assert (
        interrupted == "interrupted: finished work is kept; run the same command again to continue"
    )
    assert spent.startswith("Spent: an unknown sum in ")

    stored = command.sql(
        "select (select count(*) from responses) as r, (select count(*) from verdicts) as v"
    )[0]
    assert stored["r"] == 2 * N_TASKS
    assert 0 < stored["v"] < 2 * N_CRITERIA
    n_calls = len(provider.book)
    provider.behaviour = well_behaved
    command("run", "--warehouse", "data")
    # A reply that arrived but had no row yet is in the ledger, so its call is not repeated.
    missing = 2 * N_CRITERIA - stored["v"]
    assert missing - CONCURRENCY <= len(provider.book) - n_calls <= missing
    runs = command.sql("select outcome, verdicts_made, calls from runs order by started_at")
    assert [("interrupted", stored["v"]), ("done", missing)] == [
        (row["outcome"], row["verdicts_made"]) for row in runs
    ]
    assert runs[0]["calls"] >= stored["r"] + stored["v"]


@pytest.mark.parametrize(
    ("limit", "code", "most_in_hand", "line"),
    [
        pytest.param(
            "-n 256",
            0,
            64,
            "at most 64 calls at once instead of 500 (`concurrency`): this process may open only"
            " 256 files",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "-n 96",
            0,
            1,
            "at most 1 call at once instead of 500 (`concurrency`): this process may open only 96"
            " files",
            marks=pytest.mark.long,
        ),
        ("-n 18", 1, 0, "Too many open files"),
    ],
)
def test_a_run_opens_only_so_many_files(
    limit: str, code: int, most_in_hand: int, line: str, command: Command
) -> None:
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 2_000:
        pytest.skip("no more files may be open here")
    with FaultServer(
        lambda request, number: replace(well_behaved(request, number), delay_s=0.5)
    ) as server:
        command.configure(**settings(server, trials=1, limits={"concurrency": 500}))
        run = f"ulimit {limit} && exec {PRBENCH} run --limit 5 --warehouse data"
        done = subprocess.run(
            ["bash", "-c", run],
            cwd=command.folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert code == done.returncode, done.stderr
        assert server.most_in_hand <= most_in_hand
    assert line in done.stderr


def test_a_command_may_open_more_files_than_its_shell_says_unless_that_is_the_most(
    monkeypatch: Patch,
) -> None:
    raised: list[tuple[int, int]] = []
    monkeypatch.setattr("sys.argv", ["prbench", "--help"])
    monkeypatch.setattr("atexit.register", lambda ended: ended)
    monkeypatch.setattr("resource.setrlimit", lambda _, limits: raised.append(limits))
    for hard in (256, 2_000, 10**6, resource.RLIM_INFINITY):
        monkeypatch.setattr("resource.getrlimit", lambda _, hard=hard: (256, hard))
        with pytest.raises(SystemExit, match="0"):
            entry()
    assert raised == [(256, 256), (2_000, 2_000), (10_240, 10**6), (10_240, resource.RLIM_INFINITY)]
