"""A full run with Ray senders: its rows, its output, and its interruption."""

import json
import os
import re
import signal
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.faults.server import FaultServer, HttpResponse, Request, well_behaved
from tests.flows.conftest import (
    CONCURRENCY,
    N_CRITERIA,
    N_TASKS,
    Command,
    put_packages_of_the_user,
    settings,
)
from tests.kit import Patch, until

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("ray") is None, reason="Ray (an extra) is not installed"),
]
CALLS = {
    "where": "ray",
    "address": "local",
    "senders": 2,
}


def hanging(request: Request, number: int) -> HttpResponse:
    """Let calls of judges wait for a reply."""
    return replace(
        well_behaved(request, number), delay_s=600.0 if request["model"] == "judge" else 0.0
    )


@pytest.mark.long
@pytest.mark.usefixtures("prefect_api")
def test_a_run_on_senders_goes_on(command: Command, provider: FaultServer) -> None:
    provider.behaviour = hanging
    command.configure(**settings(provider, trials=1, calls=CALLS))
    run = command.start("run", "--warehouse", "data")
    until(lambda: provider.in_hand == CONCURRENCY, run)
    shown = rf"Senders on {os.uname().nodename} \(.+\): 2, {CONCURRENCY} calls in flight"
    until(lambda: re.search(shown, command("status", "--warehouse", "data").stdout), run)
    (states,) = (command.folder / "data/living").glob("*.senders.json")
    senders = [
        Path(f"/proc/{sender['pid']}") for sender in json.loads(states.read_text(encoding="utf-8"))
    ]
    assert [sender.exists() for sender in senders] == [True, True]
    run.send_signal(signal.SIGINT)
    _, complaint = run.communicate(timeout=120)
    assert run.returncode == 130, complaint
    assert "never retrieved" not in complaint
    until(lambda: not any(sender.exists() for sender in senders))
    assert "Senders" not in command("status", "--warehouse", "data").stdout

    provider.behaviour = well_behaved
    n_calls = len(provider.book)
    done = command.json("run", "--warehouse", "data")
    assert len(provider.book) - n_calls == 2 * N_CRITERIA
    assert (
        sum(stage["rows"] for stage in done["stages"] if stage["stage"] == "judge")
        == 2 * N_CRITERIA
    )
    stored = command.sql(
        "select (select count(*) from responses) as r, (select count(value) from verdicts) as v"
    )
    assert stored == [{"r": 2 * N_TASKS, "v": 2 * N_CRITERIA}]


@pytest.mark.long
def test_doctor_starts_senders_and_names_what_they_lack(
    command: Command, monkeypatch: Patch
) -> None:
    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)
    models = [{"name": "mistral/mistral-small-latest"}]
    command.configure(
        dataset={"source": "sample"},
        models=models,
        calls={**CALLS, "senders": 1},
    )
    # Ray's processes would import from this folder first.
    put_packages_of_the_user(command.folder)
    findings = {
        each["what"]: each for each in command.json("doctor", "--warehouse", "data", code=1)
    }
    (node,) = (
        each
        for what, each in findings.items()
        if what.startswith(f"Ray node {os.uname().nodename} (")
    )
    assert node["state"] == "PROBLEM"
    assert node["detail"] == "mistral/mistral-small-latest: MISTRAL_API_KEY not set"
