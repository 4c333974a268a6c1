"""`prbench status` and `doctor`: spend, runs, exit codes, and findings."""

import json
import os
import socket
import sqlite3
import subprocess
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from flows.cli.doctor_checks import examine
from tasks.config.job import Job
from tasks.llm.ledger.ledger import spend_in, unfinished_replies
from tasks.maintain.upkeep import latest_runs, spent
from tests.faults.server import FaultServer, HttpResponse
from tests.flows.conftest import PRBENCH, Run, run_on
from tests.kit import (
    Patch,
    Printed,
    at,
    call_entry,
    job_on,
    prepared,
    recorded,
    response,
    row,
    stored,
    written,
)
from tests.tasks.llm.conftest import failed
from warehouse import Warehouse
from warehouse.files import write_sealed

pytestmark = pytest.mark.usefixtures("without_scores")
NOW = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "warehouse"


@pytest.fixture
def job(folder: Path) -> Job:
    return job_on("sample", folder)


def write(folder: Path, **tables: list[dict[str, Any]]) -> None:
    written(folder, tables).publish()


def record(
    folder: Path, key: str, run_id: str, finished_at: datetime, cost_usd: float | None = 0.5
) -> None:
    about = {"purpose": "judge", "finished_at_s": finished_at.timestamp()}
    recorded(job_on("sample", folder), call_entry(key, run_id, cost_usd=cost_usd, **about))


def spend_row(**values: Any) -> dict[str, Any]:
    given = {
        "day": "2026-11-20",
        "purpose": "judge",
        "called_model": "m",
        "calls": 1,
        "cost_usd": 1.0,
    }
    return row(
        "spend",
        **given | dict.fromkeys(("failed_calls", "unpriced_calls", "prompt_tokens"), 0) | values,
    )


# spend


def test_spend_is_summed_by_day_and_model_over_what_the_ledger_and_the_tables_know(
    folder: Path, job: Job
) -> None:
    # `here` is only in the ledger, `both` also in the tables (with fewer calls), `gone` only in the
    # tables.
    write(
        folder,
        spend=[
            spend_row(run_id="gone"),
            spend_row(
                run_id="both",
                calls=1,
                cost_usd=0.25,
            ),
        ],
    )
    for key, run_id in (("a", "both"), ("b", "both"), ("c", "here")):
        record(folder, key, run_id, NOW - timedelta(days=2))
    record(folder, "d", "here", NOW, cost_usd=None)

    rows = [
        (r["day"], r["called_model"], r["calls"], r["cost_usd"], r["unpriced_calls"])
        for r in spent(job)
    ]
    assert rows == [("2026-11-22", "m", 1, None, 1), ("2026-11-20", "m", 4, 2.5, 0)]


@pytest.mark.parametrize(
    ("since", "n_days"), [("2d", 1), ("48h", 1), ("7d", 2), ("2026-11-01T06:30+02:00", 2)]
)
def test_a_moment_is_named_as_a_span_or_a_date(
    folder: Path, run_here: Run, since: str, n_days: int
) -> None:
    write(folder, runs=[row("runs", run_id="r")])
    today = datetime.now(UTC)
    record(folder, "a", "r", today - timedelta(days=4))
    record(folder, "b", "r", today)
    assert n_days == len(run_here.json("status", "--spend", "--since", since)["spend"])


# runs


def test_a_run_in_progress_a_killed_one_and_a_finished_one_are_distinguished(
    folder: Path, job: Job
) -> None:
    runs = [
        row(
            "runs",
            run_id="ended",
            outcome="done",
            started_at=at(1),
            responses_made=7,
            verdicts_made=8,
            cost_usd=0.5,
        ),
        row(
            "runs",
            run_id="killed",
            outcome="running",
            started_at=at(2),
            responses_made=0,
            verdicts_made=0,
        ),
        row(
            "runs",
            run_id="on",
            outcome="running",
            started_at=at(3),
            responses_made=0,
            verdicts_made=0,
        ),
    ]
    responses = [
        response(f"t{i}", run_id=run_id, cost_usd=0.25)
        for i, run_id in enumerate(["killed", "killed", "on"])
    ]
    write(folder, runs=runs, responses=responses)

    with Warehouse(folder).living("on"):
        rows = latest_runs(job)
    columns = ("run_id", "outcome", "responses", "verdicts", "cost_usd")
    shown = [tuple(run[name] for name in columns) for run in rows]
    assert shown == [
        ("on", "running", 1, 0, 0.25),
        ("killed", "killed", 2, 0, 0.5),
        ("ended", "done", 7, 8, 0.5),
    ]
    assert [run["run_id"] for run in latest_runs(job, at(2.5))] == ["on"]


def test_status_counts_replies_of_killed_runs_that_are_not_yet_published(
    job: Job, run_here: Run
) -> None:
    prepared(job)
    done = response("t1", run_id="killed")
    runs = [
        row("runs", run_id="ended", outcome="done"),
        row("runs", run_id="killed", outcome="running"),
    ]
    write(job.warehouse, runs=runs, responses=[done])
    cells = {
        "a": done["response_id"],
        "b": "lost in the kill",
        "c": "lost too",
    }
    of_killed = [
        call_entry(key, "killed", cell=cell, purpose="sample") for key, cell in cells.items()
    ]
    failed_once = call_entry(
        "d",
        "killed",
        cell="no reply yet",
        is_final=False,
        purpose="sample",
    )
    of_judge = call_entry(
        "e",
        "unknown to the tables",
        cell="a verdict",
        model="j",
        purpose="judge",
    )
    of_other_kinds = [
        call_entry("f", "ended", cell="removed by now", purpose="sample"),
        call_entry("g", "analysis", cell="a label", purpose="annotate"),
    ]
    recorded(job, *of_killed, failed_once, of_judge, *of_other_kinds)

    shown = run_here("status")

    assert (
        "In the ledger, not yet published: 3 replies (1 of j, 2 of m); no run pays for them again"
        in shown
    )


def test_the_latest_calls_are_read_back_to_a_run_of_ended_ones(
    job: Job, monkeypatch: Patch
) -> None:
    monkeypatch.setattr("tasks.llm.ledger.ledger.ROWS_AT_ONCE", 2)
    runs = ["old", "ended", "ended", "on", "on", "ended", "on"]
    entries = [
        call_entry(f"{n}", run_id, cell=f"{n}", purpose="judge") for n, run_id in enumerate(runs)
    ]
    recorded(job, *entries)

    replies = unfinished_replies(job.warehouse / "ledger", ["ended"])

    assert sorted(replies) == ["3", "4", "6"]


# as commands


# doctor


def findings(folder: Path, **settings: Any) -> dict[str, tuple[bool | None, str]]:
    return {
        rows.subject: (rows.is_ok, rows.detail)
        for rows in examine(job_on("sample", folder, **settings))
    }


def test_doctor_tries_receivers_and_names_no_more_than_their_host(
    folder: Path, monkeypatch: Patch
) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        monkeypatch.setenv("SLACK_URL", f"http://127.0.0.1:{port}/services/secret-path")
        reached = findings(folder, alerts={"to": [{"slack": "${SLACK_URL}"}]})["alerts to slack 1"]
    gone = findings(folder, alerts={"to": [{"slack": "${SLACK_URL}"}]})["alerts to slack 1"]

    assert reached == (True, f"127.0.0.1:{port} responds")
    assert gone[0] is False
    assert "secret-path" not in gone[1]


def test_doctor_shows_the_address_that_is_called_and_where_it_comes_from(
    folder: Path, monkeypatch: Patch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    monkeypatch.delenv("ANTHROPIC_API_BASE", raising=False)
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    with FaultServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.api_base)
        configured = {"name": "hosted_vllm/c", "api_base": server.api_base}
        rows = findings(folder, models=[{"name": "openai/m"}, configured, {"name": "anthropic/m"}])

    assert f"at {server.api_base} (from OPENAI_BASE_URL)" in rows["model openai/m"][1]
    assert f"at {server.api_base} (from the configuration)" in rows["model hosted_vllm/c"][1]
    assert "at its provider's default address" in rows["model anthropic/m"][1]


def test_doctor_names_variables_of_the_network_that_cannot_work(
    folder: Path, monkeypatch: Patch
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    monkeypatch.setenv("HTTPS_PROXY", f"http://user:hidden-0011@127.0.0.1:{port}")
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "none.pem"))

    rows = findings(folder)

    assert rows["proxy HTTPS_PROXY"][0] is False
    assert "hidden-0011" not in rows["proxy HTTPS_PROXY"][1]
    assert rows["certificates"][0] is False
    assert rows["certificates"][1].startswith("SSL_CERT_FILE is ")


def test_doctor_names_the_variable_of_an_address_that_cannot_be_reached(
    folder: Path, monkeypatch: Patch
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{port}/v1")

    is_ok, detail = findings(folder, models=[{"name": "openai/m"}])["model openai/m"]

    assert is_ok is False
    assert detail.startswith(f"127.0.0.1:{port} cannot be reached (")
    assert detail.endswith("; start the server or correct OPENAI_BASE_URL")


def test_no_line_of_doctor_is_longer_than_100_characters(folder: Path, capsys: Printed) -> None:
    run = run_on(folder, capsys)
    run("doctor", "--no-call")

    assert max(map(len, run.out.splitlines())) <= 100
    assert "PROBLEM" not in run.out


@pytest.mark.slow
def test_doctor_does_not_call_a_hub_ok_that_cannot_be_reached(tmp_path: Path) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    config = tmp_path / "prbench.yaml"
    dataset = f"{{source: hub, revision: {'a' * 40}, splits: [finance]}}"
    config.write_text(f"dataset: {dataset}\nmodels: []\njudges: []\n", encoding="utf-8")
    environment = {
        **os.environ,
        "HF_ENDPOINT": f"http://127.0.0.1:{port}",
        "HF_HUB_OFFLINE": "0",
    }
    command = [
        PRBENCH,
        "doctor",
        "--no-call",
        "--config",
        config,
        "--warehouse",
        tmp_path / "data",
        "--json",
    ]

    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )

    (finding,) = [each for each in json.loads(done.stdout) if each["what"] == "data set"]
    assert done.returncode == 1
    assert finding["state"] == "PROBLEM"
    assert f"the hub at 127.0.0.1:{port}: Cannot read ScaleAI/PRBench" in finding["detail"]


def test_doctor_reports_a_proxy_that_no_library_can_use_and_goes_on(
    folder: Path, monkeypatch: Patch
) -> None:
    monkeypatch.setenv("all_proxy", "socks://127.0.0.1:7890/")
    monkeypatch.setenv("PREFECT_API_URL", "http://prefect.example/api")

    rows = findings(folder, models=[{"name": "openai/m"}])

    assert rows["proxy all_proxy"][0] is False
    assert rows["proxy all_proxy"][1].startswith("all_proxy cannot be used (")
    assert rows["models"] == (None, "not checked before the variable above is correct")
    assert rows["Prefect server"] == rows["models"]
    assert rows["disk"][0] is True


@pytest.fixture
def changed_call(tmp_path: Path, capsys: Printed) -> Run:
    """The command on a warehouse with two calls, of which one has another cost than was written."""
    folder = stored(tmp_path, {})
    record(folder / "data", "a", "run", NOW)
    record(folder / "data", "b", "run", NOW)
    with closing(sqlite3.connect(folder / "data/ledger/calls.sqlite")) as connection, connection:
        connection.execute("update calls set cost_usd = 2 * cost_usd where call_key = 'a'")
    return run_on(folder, capsys)


def test_a_changed_number_of_a_call_is_reported_by_doctor_and_gone_after_aggregate(
    changed_call: Run,
) -> None:
    changed_call("doctor", "--no-call", code=3)
    reported = " ".join(changed_call.out.split())  # lines are wrapped
    changed_call("aggregate", code=3)
    repaired = changed_call.err
    changed_call("doctor", "--no-call", code=0)

    assert "table calls: 1 row with a wrong checksum" in reported
    assert "`prbench aggregate` repairs" in reported
    assert "1 of 2 calls ever recorded were recovered" in repaired


def test_aggregate_verifies_calls_of_which_doctor_has_said_nothing(changed_call: Run) -> None:
    changed_call("aggregate", code=3)

    assert "table calls: 1 row with a wrong checksum" in changed_call.err


CALLED: dict[str, tuple[HttpResponse, bool | None, str]] = {
    "served": (
        HttpResponse("Hello."),
        True,
        "HOSTED_VLLM_API_KEY is not set; 1 call of 1 token succeeded",
    ),
    "key refused": (failed(401, "no"), False, "check the key: HOSTED_VLLM_API_KEY is not set"),
    "unknown model": (failed(404, "The model `m` does not exist"), False, "failed: NotFoundError"),
    "too short": (
        failed(400, "max_tokens must be at least 16"),
        True,
        "1 call of 1 token: the key is accepted",
    ),
    "busy": (failed(429, "slow down"), None, "the key was not tried"),
    "broken": (failed(503, "overloaded"), False, "failed: ServiceUnavailableError"),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CALLED)
def test_doctor_calls_each_model_once_to_try_its_key(
    case: str, folder: Path, monkeypatch: Patch
) -> None:
    monkeypatch.delenv("HOSTED_VLLM_API_KEY", raising=False)
    reply, is_ok, detail = CALLED[case]
    with FaultServer(lambda _request, _number: reply) as server:
        endpoint = {
            "name": "hosted_vllm/m",
            "api_base": server.api_base,
            "reasoning_effort": "high",
        }
        price = {"input_usd_per_mtok": 1, "output_usd_per_mtok": 1}
        judges = [
            {**endpoint, "label": "judge"},
            {
                **endpoint,
                "name": "hosted_vllm/judge",
                "price": price,
            },
        ]
        job = job_on("sample", folder, models=[endpoint], judges=judges)
        record(folder, "k", "earlier", NOW)
        rows = {each.subject: each for each in examine(job, may_call=True)}

    called = sorted(
        (entry.request["model"], entry.request["max_tokens"]) for entry in server.entries
    )
    assert called == [("judge", 1), ("m", 1)]
    assert "reasoning_effort" not in server.entries[0].request
    for subject in ("model hosted_vllm/m", "judge hosted_vllm/judge"):
        assert rows[subject].is_ok is is_ok
        assert detail in rows[subject].detail
    spent_by = {row["purpose"]: row["called_model"] for row in spend_in(folder / "ledger")}
    assert {"judge": "m"} | (
        {"doctor": "hosted_vllm/judge"} if case == "served" else {}
    ) == spent_by


def test_doctor_names_a_newer_warehouse_and_an_outdated_database(
    folder: Path, monkeypatch: Patch
) -> None:
    write(folder, responses=[response("t1")])
    subject = f"warehouse {folder}"
    assert findings(folder)[subject][0] is True
    with monkeypatch.context() as other:
        other.setattr("warehouse.warehouse.stamp", lambda: "of another version")
        outdated = findings(folder)[subject]
    write_sealed(folder / "warehouse.json", {"version": 99})

    assert outdated[0] is False
    assert "published by another version" in outdated[1]
    is_ok, detail = findings(folder)[subject]
    assert is_ok is False
    assert "99, this one reads 4" in detail
