"""The full pipeline as a user starts it: the real command, a real Prefect server, a real provider
over a socket.
"""

import resource
import signal
import subprocess
from dataclasses import replace

import pytest

from flows.cli.main import entry
from tests.faults.server import FaultServer, HttpResponse, well_behaved
from tests.flows.conftest import CONCURRENCY, N_CRITERIA, N_TASKS, PRBENCH, settings
from tests.kit import until

pytestmark = pytest.mark.slow


def test_a_run_whose_calls_all_fail_exits_1_with_one_cause(command, monkeypatch):
    monkeypatch.setenv("HOSTED_VLLM_API_KEY", "a-wrong-key")
    error = {"message": "Who are you?", "type": "auth", "code": None}
    refusal = HttpResponse(status=401, error=error)
    with FaultServer(lambda _request, _number: refusal) as server:
        command.configure(**settings(server, coverage={"min": 0}))

        run = command("run", "--warehouse", "data", "--model", "alpha", code=1)

    assert run.stderr.count("Who are you?") == 1
    assert run.stderr.count("HOSTED_VLLM_API_KEY is set") == 1
    assert run.stderr.splitlines()[-1].startswith("exit code 1 (no call succeeded): ")
    assert run.stderr.endswith(
        "; correct that and run it again; `prbench doctor` tests each model\n"
    )
    assert "leaderboard" not in run.stdout


@pytest.mark.parametrize(
    "stop",
    [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.long)],
)
def test_a_stopped_run_ends_soon_and_goes_on(command, provider, stop):
    provider.behaviour = lambda request, number: HttpResponse(
        well_behaved(request, number).text,
        delay_s=600 if len(provider.judge_requests) > 40 else 0.1,
    )
    command.configure(**settings(provider, trials=1))
    process = command.start("run", "--warehouse", "data")
    until(
        lambda: len(provider.judge_requests) > 40 and provider.in_hand == CONCURRENCY,
        process,
    )
    process.send_signal(stop)
    _, stderr = process.communicate(timeout=240)
    n_calls = len(provider.book)
    provider.behaviour = well_behaved
    command("run", "--warehouse", "data")
    n_later_calls = len(provider.book) - n_calls

    assert process.returncode == 130, stderr
    interruption, costs = stderr.splitlines()[-2:]
    advice = "run the same command again to continue"
    assert interruption == f"interrupted: finished work is kept; {advice}"
    assert costs.startswith("Spent: an unknown sum in ")
    stopped_run, later_run = command.sql("from runs order by started_at")
    assert stopped_run["outcome"] == "interrupted"
    assert stopped_run["responses_made"] == 2 * N_TASKS
    n_verdicts = stopped_run["verdicts_made"]
    assert 0 < n_verdicts < 2 * N_CRITERIA
    assert stopped_run["calls"] >= 2 * N_TASKS + n_verdicts
    assert later_run["outcome"] == "done"
    n_missing = 2 * N_CRITERIA - n_verdicts
    assert later_run["verdicts_made"] == n_missing
    # A reply that arrived but had no row yet is in the ledger, so its call is not repeated.
    assert n_missing - CONCURRENCY <= n_later_calls <= n_missing


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
def test_a_run_opens_only_so_many_files(limit, code, most_in_hand, line, command):
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 2_000:
        pytest.skip("no more files may be open here")
    with FaultServer(
        lambda request, number: replace(well_behaved(request, number), delay_s=0.5),
    ) as server:
        command.configure(**settings(server, trials=1, limits={"concurrency": 500}))
        run = f"ulimit {limit} && exec {PRBENCH} run --limit 5 --warehouse data"
        process = subprocess.run(
            ["bash", "-c", run],
            cwd=command.folder,
            capture_output=True,
            text=True,
            check=False,
        )

    assert process.returncode == code, process.stderr
    assert server.most_in_hand <= most_in_hand
    assert line in process.stderr


@pytest.mark.parametrize(
    ("hard_limit", "limits"),
    [
        (256, (256, 256)),
        (2_000, (2_000, 2_000)),
        (10**6, (10_240, 10**6)),
        (resource.RLIM_INFINITY, (10_240, resource.RLIM_INFINITY)),
    ],
)
def test_a_command_may_open_more_files_than_its_shell_says_unless_that_is_the_most(
    hard_limit,
    limits,
    monkeypatch,
):
    set_limits = []
    monkeypatch.setattr("sys.argv", ["prbench", "--help"])
    monkeypatch.setattr("atexit.register", lambda function: function)
    monkeypatch.setattr("resource.getrlimit", lambda _: (256, hard_limit))
    monkeypatch.setattr(
        "resource.setrlimit",
        lambda _, limits: set_limits.append(limits),
    )

    with pytest.raises(SystemExit, match="0"):
        entry()

    assert set_limits == [limits]
