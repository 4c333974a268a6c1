"""`prbench status` and `doctor`: spend, runs, exit codes, and findings."""

import json
import os
import socket
import sqlite3
import subprocess
from contextlib import closing
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest

from flows.cli.doctor_checks import SetupFinding, examine
from tasks.config.job import Job
from tasks.llm.ledger.ledger import spend_in, unfinished_replies
from tasks.maintain.spend import daily_spend, latest_runs
from tests.faults.server import FaultServer, HttpResponse
from tests.flows.conftest import PRBENCH, Run, run_on
from tests.kit import (
    add_calls,
    at,
    call_entry,
    configure,
    job_on,
    prepared,
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
def folder(tmp_path) -> Path:
    return tmp_path / "warehouse"


@pytest.fixture
def job(folder: Path) -> Job:
    return job_on("sample", folder)


def write(folder: Path, **tables: list[dict[str, Any]]):
    written(folder, tables).publish()


def record(
    folder: Path,
    key: str,
    run_id: str,
    finished_at: datetime,
    cost_usd: float | None = 0.5,
):
    entry = call_entry(
        key,
        run_id,
        cost_usd=cost_usd,
        purpose="judge",
        finished_at_s=finished_at.timestamp(),
    )
    add_calls(job_on("sample", folder), entry)


def spend_row(run_id: str, cost_usd: float) -> dict[str, Any]:
    """The row of one call two days before `NOW`."""
    return row(
        "spend",
        run_id=run_id,
        day="2026-11-20",
        purpose="judge",
        called_model="m",
        calls=1,
        unpriced_calls=0,
        cost_usd=cost_usd,
    )


# spend


def test_spend_is_summed_by_day_and_model_over_what_the_ledger_and_the_tables_know(
    folder, job
):
    # `here` is only in the ledger, `both` also in the tables (with fewer calls), `gone` only in the
    # tables.
    write(folder, spend=[spend_row("gone", 1.0), spend_row("both", 0.25)])
    for key, run_id in (("a", "both"), ("b", "both"), ("c", "here")):
        record(folder, key, run_id, NOW - timedelta(days=2))
    record(folder, "d", "here", NOW, cost_usd=None)

    today, earlier_day = daily_spend(job)

    assert today["day"] == "2026-11-22"
    assert today["calls"] == 1
    assert today["cost_usd"] is None
    assert today["unpriced_calls"] == 1
    assert earlier_day["day"] == "2026-11-20"
    assert earlier_day["called_model"] == "m"
    assert earlier_day["calls"] == 4
    assert earlier_day["cost_usd"] == 2.5
    assert earlier_day["unpriced_calls"] == 0


@pytest.mark.parametrize(
    ("since", "n_days"),
    [("2d", 1), ("48h", 1), ("7d", 2), ("2020-01-01T06:30+02:00", 2)],
)
def test_a_moment_is_named_as_a_span_or_a_date(folder, run_here, since, n_days):
    write(folder, runs=[row("runs", run_id="r")])
    today = datetime.now(UTC)
    record(folder, "a", "r", today - timedelta(days=4))
    record(folder, "b", "r", today)

    rows = run_here.json("status", "--spend", "--since", since)["spend"]

    assert len(rows) == n_days


# runs


def run_row(
    run_id: str,
    started_at_s: float,
    outcome: str = "running",
    **values: Any,
) -> Any:
    counts = {"responses_made": 0, "verdicts_made": 0} | values
    return row(
        "runs",
        run_id=run_id,
        outcome=outcome,
        started_at=at(started_at_s),
        **counts,
    )


def test_a_run_in_progress_a_killed_one_and_a_finished_one_are_distinguished(
    folder, job
):
    ended = run_row(
        "ended",
        1,
        "done",
        responses_made=7,
        verdicts_made=8,
        cost_usd=0.5,
    )
    runs = [
        ended,
        run_row("killed", 2),
        run_row("living", 3),
    ]
    responses = [
        response("t1", run_id="killed", cost_usd=0.25),
        response("t2", run_id="killed", cost_usd=0.25),
        response("t3", run_id="living", cost_usd=0.25),
    ]
    write(folder, runs=runs, responses=responses)

    with Warehouse(folder).living("living"):
        rows = latest_runs(job)

    row_cells = itemgetter("run_id", "outcome", "responses", "verdicts", "cost_usd")
    assert list(map(row_cells, rows)) == [
        ("living", "running", 1, 0, 0.25),
        ("killed", "killed", 2, 0, 0.5),
        ("ended", "done", 7, 8, 0.5),
    ]


def test_the_latest_runs_are_those_since_a_moment(folder, job):
    write(folder, runs=[run_row("earlier", 2), run_row("later", 3)])

    assert [run["run_id"] for run in latest_runs(job, at(2.5))] == ["later"]


def test_status_counts_replies_of_killed_runs_that_are_not_yet_published(
    job, run_here
):
    prepared(job)
    published = response("t1", run_id="killed")
    runs = [run_row("ended", 1, "done"), run_row("killed", 2)]
    write(
        job.warehouse,
        runs=runs,
        responses=[published],
    )
    add_calls(
        job,
        call_entry("a", "killed", cell=published["response_id"], purpose="sample"),
        call_entry("b", "killed", cell="lost in the kill", purpose="sample"),
        call_entry("c", "killed", cell="lost too", purpose="sample"),
        call_entry(
            "d",
            "killed",
            cell="no reply yet",
            purpose="sample",
            is_final=False,
        ),
        call_entry(
            "e",
            "unknown",
            cell="a verdict",
            purpose="judge",
            model="j",
        ),
        call_entry("f", "ended", cell="removed by now", purpose="sample"),
        call_entry("g", "analysis", cell="a label", purpose="annotate"),
    )

    output = run_here("status")

    # Counted are b, c and e. Of the others, a is published, d has no reply yet, f is of an ended
    # run, and g of an analysis, which is no run.
    line = "In the ledger, not yet published: 3 replies (1 of j, 2 of m)"
    assert f"{line}; no run pays for them again" in output


def test_calls_are_read_from_the_latest_back_to_a_batch_of_ended_runs(
    job, monkeypatch
):
    monkeypatch.setattr("tasks.llm.ledger.ledger.ROWS_AT_ONCE", 2)
    run_ids = ["old", "ended", "ended", "on", "on", "ended", "on"]
    entries = []
    for number, run_id in enumerate(run_ids):
        entries.append(
            call_entry(f"{number}", run_id, cell=f"{number}", purpose="judge")
        )
    add_calls(job, *entries)

    replies = unfinished_replies(job.warehouse / "ledger", ["ended"])

    assert sorted(replies) == ["3", "4", "6"]


# doctor


def findings(folder: Path, **settings: Any) -> dict[str, SetupFinding]:
    return {
        finding.subject: finding
        for finding in examine(job_on("sample", folder, **settings))
    }


@pytest.fixture
def unused_port() -> int:
    """A port at which nobody listens."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        return unused.getsockname()[1]


def test_doctor_tries_receivers_and_names_no_more_than_their_host(
    folder, monkeypatch
):
    alerts = {"to": [{"slack": "${SLACK_URL}"}]}
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        port = listening.getsockname()[1]
        monkeypatch.setenv(
            "SLACK_URL", f"http://127.0.0.1:{port}/services/secret-path"
        )
        success = findings(folder, alerts=alerts)["alerts to slack 1"]
    failure = findings(folder, alerts=alerts)["alerts to slack 1"]

    assert success.is_ok
    assert success.detail == f"127.0.0.1:{port} responds"
    assert failure.is_ok is False
    assert "secret-path" not in failure.detail


def test_doctor_shows_the_address_that_is_called_and_where_it_comes_from(
    folder, monkeypatch
):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "none")
    monkeypatch.delenv("ANTHROPIC_API_BASE", raising=False)
    monkeypatch.delenv("ANTHROPIC_BASE_URL", raising=False)
    with FaultServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.api_base)
        models = [
            {"name": "openai/m"},
            {"name": "hosted_vllm/c", "api_base": server.api_base},
            {"name": "anthropic/m"},
        ]
        rows = findings(folder, models=models)

    details = {subject: finding.detail for subject, finding in rows.items()}
    address = f"at {server.api_base}"
    assert f"{address} (from OPENAI_BASE_URL)" in details["model openai/m"]
    assert f"{address} (from the configuration)" in details["model hosted_vllm/c"]
    assert "at its provider's default address" in details["model anthropic/m"]


def test_doctor_names_variables_of_the_network_that_cannot_work(
    folder,
    monkeypatch,
    unused_port,
):
    monkeypatch.setenv(
        "HTTPS_PROXY", f"http://user:hidden-0011@127.0.0.1:{unused_port}"
    )
    monkeypatch.setenv("SSL_CERT_FILE", str(folder / "none.pem"))

    rows = findings(folder)

    assert rows["proxy HTTPS_PROXY"].is_ok is False
    assert "hidden-0011" not in rows["proxy HTTPS_PROXY"].detail
    assert rows["certificates"].is_ok is False
    assert rows["certificates"].detail.startswith("SSL_CERT_FILE is ")


def test_doctor_names_the_variable_of_an_address_that_cannot_be_reached(
    folder,
    monkeypatch,
    unused_port,
):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{unused_port}/v1")

    finding = findings(folder, models=[{"name": "openai/m"}])["model openai/m"]

    assert finding.is_ok is False
    assert finding.detail.startswith(f"127.0.0.1:{unused_port} cannot be reached (")
    assert finding.detail.endswith("; start the server or correct OPENAI_BASE_URL")


def test_no_line_of_doctor_is_longer_than_100_characters(folder, capsys):
    run = run_on(folder, capsys)
    run("doctor", "--no-call")

    assert max(map(len, run.out.splitlines())) <= 100
    assert "PROBLEM" not in run.out


@pytest.mark.slow
def test_doctor_does_not_call_a_hub_ok_that_cannot_be_reached(tmp_path, unused_port):
    dataset = {
        "source": "hub",
        "revision": "a" * 40,
        "splits": ["finance"],
    }
    configure(tmp_path, dataset=dataset)
    hub = {"HF_ENDPOINT": f"http://127.0.0.1:{unused_port}", "HF_HUB_OFFLINE": "0"}

    # The library reads its variables when it is imported.
    process = subprocess.run(
        [PRBENCH, "doctor", "--no-call", "--warehouse", "data", "--json"],
        cwd=tmp_path,
        env=os.environ | hub,
        capture_output=True,
        text=True,
        check=False,
    )

    assert process.returncode == 1
    [finding] = [
        row for row in json.loads(process.stdout) if row["what"] == "data set"
    ]
    assert finding["state"] == "PROBLEM"
    reason = f"the hub at 127.0.0.1:{unused_port}: Cannot read ScaleAI/PRBench"
    assert reason in finding["detail"]


def test_doctor_reports_a_proxy_that_no_library_can_use_and_goes_on(
    folder, monkeypatch
):
    monkeypatch.setenv("all_proxy", "socks://127.0.0.1:7890/")
    monkeypatch.setenv("PREFECT_API_URL", "http://prefect.example/api")

    rows = findings(folder, models=[{"name": "openai/m"}])

    assert rows["proxy all_proxy"].is_ok is False
    assert rows["proxy all_proxy"].detail.startswith("all_proxy cannot be used (")
    for subject in ("models", "Prefect server"):
        finding = rows[subject]
        assert finding.is_ok is None
        assert finding.detail == "not checked before the variable above is correct"
    assert rows["disk"].is_ok


@pytest.fixture
def changed_call(tmp_path, capsys) -> Run:
    """The command on a warehouse with two calls, of which one has another cost than was written."""
    folder = stored(tmp_path, {})
    record(folder / "data", "a", "run", NOW)
    record(folder / "data", "b", "run", NOW)
    with (
        closing(sqlite3.connect(folder / "data/ledger/calls.sqlite")) as connection,
        connection,
    ):
        connection.execute(
            "update calls set cost_usd = 2 * cost_usd where call_key = 'a'"
        )
    return run_on(folder, capsys)


def test_a_changed_number_of_a_call_is_reported_by_doctor_and_gone_after_aggregate(
    changed_call,
):
    changed_call("doctor", "--no-call", code=3)
    report = " ".join(changed_call.out.split())  # lines are wrapped
    changed_call("aggregate", code=3)
    repair = changed_call.err
    changed_call("doctor", "--no-call", code=0)

    assert "table calls: 1 row with a wrong checksum" in report
    assert "`prbench aggregate` repairs" in report
    assert "1 of 2 calls ever recorded were recovered" in repair


def test_aggregate_verifies_calls_of_which_doctor_has_said_nothing(changed_call):
    changed_call("aggregate", code=3)

    assert "table calls: 1 row with a wrong checksum" in changed_call.err


REPLIES: dict[str, tuple[HttpResponse, bool | None, str]] = {
    "served": (
        HttpResponse("Hello."),
        True,
        "HOSTED_VLLM_API_KEY is not set; 1 call of 1 token succeeded",
    ),
    "key refused": (
        failed(401, "no"),
        False,
        "check the key: HOSTED_VLLM_API_KEY is not set",
    ),
    "unknown model": (
        failed(404, "The model `m` does not exist"),
        False,
        "failed: NotFoundError",
    ),
    "too short": (
        failed(400, "max_tokens must be at least 16"),
        True,
        "1 call of 1 token: the key is accepted",
    ),
    "busy": (failed(429, "slow down"), None, "the key was not tried"),
    "broken": (failed(503, "overloaded"), False, "failed: ServiceUnavailableError"),
}
"""Case -> the reply; whether the finding is ok, None if that is unknown; and words of it."""


@pytest.mark.slow
@pytest.mark.parametrize("case", REPLIES)
def test_doctor_calls_each_model_once_to_try_its_key(case, folder, monkeypatch):
    monkeypatch.delenv("HOSTED_VLLM_API_KEY", raising=False)
    reply, is_ok, detail = REPLIES[case]
    with FaultServer(lambda _request, _number: reply) as server:
        model = {
            "name": "hosted_vllm/m",
            "api_base": server.api_base,
            "reasoning_effort": "high",
        }
        # A judge behind the model's endpoint is not called for itself.
        judges = [model | {"label": "same"}, model | {"name": "hosted_vllm/judge"}]
        job = job_on(
            "sample",
            folder,
            models=[model],
            judges=judges,
        )
        rows = {finding.subject: finding for finding in examine(job, may_call=True)}

    requests = [entry.request for entry in server.entries]
    assert sorted(request["model"] for request in requests) == ["judge", "m"]
    assert {request["max_tokens"] for request in requests} == {1}
    assert not any("reasoning_effort" in request for request in requests)
    for subject in ("model hosted_vllm/m", "judge hosted_vllm/judge"):
        assert rows[subject].is_ok is is_ok
        assert detail in rows[subject].detail


@pytest.mark.slow
def test_a_call_of_doctor_is_in_the_ledger_if_there_is_one(folder):
    record(folder, "k", "earlier", NOW)
    price = {"input_usd_per_mtok": 1, "output_usd_per_mtok": 1}
    with FaultServer() as server:
        model = {
            "name": "hosted_vllm/a",
            "api_base": server.api_base,
            "price": price,
        }
        examine(job_on("sample", folder, models=[model]), may_call=True)

    models = {
        row["purpose"]: row["called_model"] for row in spend_in(folder / "ledger")
    }
    assert models == {"judge": "m", "doctor": "hosted_vllm/a"}


def test_doctor_names_an_outdated_database(folder, monkeypatch):
    write(folder, responses=[response("t1")])
    monkeypatch.setattr("warehouse.warehouse.stamp", lambda: "of another version")

    finding = findings(folder)[f"warehouse {folder}"]

    assert finding.is_ok is False
    assert "published by another version" in finding.detail


def test_doctor_names_a_newer_warehouse(folder):
    write(folder, responses=[response("t1")])
    write_sealed(folder / "warehouse.json", {"version": 99})

    finding = findings(folder)[f"warehouse {folder}"]

    assert finding.is_ok is False
    assert "99, this one reads 4" in finding.detail
