"""A full run with Ray senders: its rows, its output, and its interruption."""

import json
import os
import re
import signal
import subprocess
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.faults.server import FaultServer, HttpResponse, well_behaved
from tests.flows.conftest import (
    CONCURRENCY,
    N_CRITERIA,
    N_TASKS,
    Command,
    put_packages_of_the_user,
    settings,
)
from tests.kit import until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        find_spec("ray") is None, reason="Ray (an extra) is not installed"
    ),
]
CALLS = {
    "where": "ray",
    "address": "local",
    "senders": 2,
}


def hanging(request, number: int) -> HttpResponse:
    """Let calls of judges wait for a reply."""
    response = well_behaved(request, number)
    if request["model"] == "judge":
        return replace(response, delay_s=600.0)
    return response


def start_hanging_run(
    command: Command,
    provider: FaultServer,
) -> tuple[subprocess.Popen[str], list[Path]]:
    """Start a run whose senders wait for replies, and return it with its senders' processes."""
    provider.behaviour = hanging
    command.configure(**settings(provider, trials=1, calls=CALLS))
    run = command.start("run", "--warehouse", "data")
    until(lambda: provider.in_hand == CONCURRENCY, run)
    node = os.uname().nodename
    status_line = rf"Senders on {node} \(.+\): 2, {CONCURRENCY} calls in flight"

    def shows_senders():
        return re.search(status_line, command("status", "--warehouse", "data").stdout)

    until(shows_senders, run)
    [states] = (command.folder / "data/living").glob("*.senders.json")
    senders = json.loads(states.read_text())
    return run, [Path(f"/proc/{sender['pid']}") for sender in senders]


@pytest.mark.long
@pytest.mark.usefixtures("prefect_api")
def test_a_run_on_senders_goes_on(command, provider):
    interrupted_run, senders = start_hanging_run(command, provider)
    assert [sender.exists() for sender in senders] == [True, True]
    interrupted_run.send_signal(signal.SIGINT)
    _, stderr = interrupted_run.communicate(timeout=120)
    until(lambda: not any(sender.exists() for sender in senders))
    assert "Senders" not in command("status", "--warehouse", "data").stdout
    n_calls = len(provider.book)
    provider.behaviour = well_behaved
    next_run = command.json("run", "--warehouse", "data")

    assert interrupted_run.returncode == 130, stderr
    assert "never retrieved" not in stderr
    assert len(provider.book) - n_calls == 2 * N_CRITERIA
    reports = {report["stage"]: report for report in next_run["stages"]}
    assert reports["judge"]["rows"] == 2 * N_CRITERIA
    assert len(command.sql("from responses")) == 2 * N_TASKS
    assert len(command.sql("from verdicts where value is not null")) == 2 * N_CRITERIA


@pytest.mark.long
def test_doctor_starts_senders_and_names_what_they_lack(command, monkeypatch):
    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)
    command.configure(
        dataset={"source": "sample"},
        models=[{"name": "mistral/mistral-small-latest"}],
        calls={**CALLS, "senders": 1},
    )
    # Ray's processes would import from this folder first.
    put_packages_of_the_user(command.folder)

    findings = command.json("doctor", "--warehouse", "data", code=1)

    node = f"Ray node {os.uname().nodename} ("
    [finding] = [finding for finding in findings if finding["what"].startswith(node)]
    assert finding["state"] == "PROBLEM"
    assert (
        finding["detail"] == "mistral/mistral-small-latest: MISTRAL_API_KEY not set"
    )
