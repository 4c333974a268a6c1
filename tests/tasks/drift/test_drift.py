"""Judging the control set again, against a provider on a real socket: calls, stored rows, and
findings.
"""

import asyncio
import hashlib
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tasks.config.job import Job
from tasks.drift import choose_control_set, drifted, judge_control_set
from tasks.run.writing import StageReport
from tests.faults.server import FaultServer, HttpResponse, Request, is_judge_request, well_behaved
from tests.kit import Patch, job_on, judged, prepared, rows_in, sampled, values_in
from tests.warehouse.parts import forget_parts
from warehouse import Warehouse

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_scores")]
N = 40


def job_at(
    server: FaultServer, folder: Path, verdicts: int = N, *, mode: str = "live", **settings: Any
) -> Job:
    """A job on the sample with one nightly model and one judge."""
    at = {"api_base": server.api_base, "max_tokens": 1000}
    drift = {"verdicts": verdicts, **settings.pop("drift", {})}
    return job_on(
        "sample",
        folder,
        models=[
            {
                "name": "hosted_vllm/a",
                "label": "a",
                "resample": "nightly",
                **at,
            }
        ],
        judges=[
            {
                "name": "openai/judge",
                "label": "judge",
                "mode": mode,
                **at,
            }
        ],
        limits={"batch_wait_s": 0.0, "attempts": 1},
        drift=drift,
        **settings,
    )


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with pytest.MonkeyPatch.context() as patched, FaultServer() as running:
        patched.setenv("OPENAI_API_KEY", "none")
        yield running


@pytest.fixture(scope="module")
def judged_once(server: FaultServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with everything sampled and judged."""
    folder = tmp_path_factory.mktemp("judged") / "warehouse"
    job = job_at(server, folder)
    sampled(prepared(job))
    judged(job)
    return folder


@pytest.fixture
def folder(server: FaultServer, judged_once: Path, tmp_path: Path) -> Path:
    """A copy of that warehouse, and a provider without faults."""
    server.behaviour = well_behaved
    return Path(shutil.copytree(judged_once, tmp_path / "warehouse"))


@dataclass
class Seen:
    """A night: the stage's report, its calls, and the judges that drifted."""

    report: StageReport
    calls: list[Request]
    drifted: list[dict[str, Any]]


def night(server: FaultServer, job: Job, label: str) -> Seen:
    """Run the stage as in a night."""
    tonight = job.model_copy(update={"night": label, "run_id": f"run {label}"})
    before = len(server.book)
    choose_control_set(tonight)
    report = asyncio.run(judge_control_set(tonight))
    return Seen(report, server.book[before:], drifted(tonight))


def prompts(calls: Sequence[Request]) -> Counter[str]:
    return Counter(str(call["messages"][0]["content"]) for call in calls)


def bucket(request: Request) -> float:
    """A number from 0 to 1 that depends on the prompt alone."""
    digest = hashlib.sha256(b"bucket" + json.dumps(request["messages"]).encode()).digest()
    return digest[0] / 256


def lenient(request: Request, number: int) -> HttpResponse:
    """A judge that now calls two in five criteria met, whatever it decided before."""
    if is_judge_request(request) and bucket(request) < 0.4:
        return HttpResponse(json.dumps({"explanation": "let pass", "criteria_met": True}))
    return well_behaved(request, number)


def test_the_control_set_is_half_met_spread_and_fixed(
    server: FaultServer, folder: Path, tmp_path: Path
) -> None:
    job = job_at(server, folder)
    choose_control_set(job)
    again = job_at(server, Path(shutil.copytree(folder, tmp_path / "again")))
    for part in (again.warehouse / "parts/control_set").iterdir():
        part.unlink()
    choose_control_set(again)
    chosen = "select set_id, verdict_id, first_value from control_set order by verdict_id"
    members = rows_in(job, "select * from control_set")
    values = {
        row["verdict_id"]: row["value"]
        for row in rows_in(job, "select verdict_id, value from verdicts")
    }

    assert Counter(row["first_value"] for row in members) == {1.0: N // 2, 0.0: N // 2}
    assert all(values[row["verdict_id"]] == row["first_value"] for row in members)
    assert len({row["task_id"] for row in members}) == 8
    assert max(Counter(row["response_id"] for row in members).values()) <= 8
    assert rows_in(again, chosen) == rows_in(job, chosen)
    assert len({row["set_id"] for row in members}) == 1


def test_a_control_set_never_changes_and_another_judging_gets_its_own(
    server: FaultServer, folder: Path
) -> None:
    job = job_at(server, folder, verdicts=10)
    choose_control_set(job)
    stored = "select * from control_set order by verdict_id"
    first = rows_in(job, stored)
    assert len(first) == 10
    assert choose_control_set(job_at(server, folder, verdicts=30)).rows == 0
    assert first == rows_in(job, stored)

    at = job.settings.judges[0].model_copy(update={"temperature": 0.5})
    other = job.model_copy(update={"settings": job.settings.model_copy(update={"judges": (at,)})})
    assert choose_control_set(other).notes == ["control set of judge: 0 of 10 decided verdicts"]
    judged(other)
    choose_control_set(other)
    assert len(rows_in(job, "select distinct set_id, judge_config_hash from control_set")) == 2
    assert first == rows_in(job, f"select * from ({stored}) where set_id = ?", first[0]["set_id"])


def test_a_night_asks_for_every_member_with_its_first_prompt_and_only_once(
    server: FaultServer, folder: Path
) -> None:
    job = job_at(server, folder)
    first = night(server, job, "2026-11-20")
    members = values_in(job, "select distinct criterion_id from control_set order by all")
    prompts_sent = prompts(first.calls)
    assert len(first.calls) == N
    assert set(prompts_sent.values()) == {1}
    assert set(prompts_sent) <= set(prompts(server.judge_requests[: -len(first.calls)]))
    assert members == values_in(
        job, "select distinct criterion_id from control_verdicts order by all"
    )
    again = night(server, job, "2026-11-20")
    assert again.calls == []
    assert again.report.notes == ["0 verdicts of the control set judged again"]
    assert prompts_sent == prompts(night(server, job, "2026-11-21").calls)


def test_no_configured_number_means_that_nothing_is_judged(
    server: FaultServer, folder: Path
) -> None:
    choose_control_set(job_at(server, folder))
    before = len(server.book)
    night(server, job_at(server, folder, verdicts=0), "2026-11-20")

    assert before == len(server.book)


def test_no_score_sees_the_control_verdicts(
    server: FaultServer, folder: Path, monkeypatch: Patch
) -> None:
    monkeypatch.undo()  # here scores are published
    job = job_at(server, folder)
    queries = [
        "from verdicts order by verdict_id",
        "from leaderboard order by all",
        "from scores order by all",
    ]
    before = [rows_in(job, query) for query in queries]
    server.behaviour = lenient
    night(server, job, "2026-11-20")

    assert before[0]
    assert before == [rows_in(job, query) for query in queries]


def test_a_judge_is_found_from_the_night_on_in_which_it_decides_otherwise(
    server: FaultServer, folder: Path
) -> None:
    job = job_at(server, folder)
    assert [night(server, job, f"2026-11-1{day}").drifted for day in range(4)] == [[]] * 4
    server.behaviour = lenient
    rows = night(server, job, "2026-11-14")
    again = night(server, job, "2026-11-15")

    (one,) = rows.drifted
    assert one["judge"] == "judge"
    assert one["n_decided"] == N
    assert one["cause"] == "limit"
    assert one["first_met_share"] == 0.5
    assert one["agreement"] < one["lower_limit"]
    assert any(
        line.startswith("judge repeated its first decision on") for line in rows.report.warnings
    )
    assert one["lower_limit"] == again.drifted[0]["lower_limit"]
    assert [(f"2026-11-1{day}", day >= 4) for day in range(6)] == values_in(
        job, "select night, is_out_of_control from judge_drift order by night"
    )


def test_failures_are_no_disagreement_and_are_retried_by_the_same_night(
    server: FaultServer, folder: Path
) -> None:
    def failing(request: Request, number: int) -> HttpResponse:
        fails = is_judge_request(request) and bucket(request) < 0.3
        return HttpResponse(status=500) if fails else well_behaved(request, number)

    job = job_at(server, folder)
    server.behaviour = failing
    first = night(server, job, "2026-11-20")
    n_failed = first.report.failures["provider_error"]
    figures = "select n_members, n_decided, n_failed, n_lost, n_agreeing from judge_drift"
    counts = {
        "n_members": N,
        "n_decided": N - n_failed,
        "n_failed": n_failed,
        "n_lost": 0,
        "n_agreeing": N - n_failed,
    }
    assert 0 < n_failed < N
    assert [counts] == rows_in(job, figures)

    server.behaviour = well_behaved
    again = night(server, job, "2026-11-20")
    assert n_failed == len(again.calls)
    assert [
        {
            **counts,
            "n_decided": N,
            "n_failed": 0,
            "n_agreeing": N,
        }
    ] == rows_in(job, figures)


def without_responses(job: Job, response_id: str, **changed: Any) -> None:
    """Remove a stored response, or change its columns."""
    warehouse = Warehouse(job.warehouse)
    for path in warehouse.store.standing("responses"):
        stored = pq.read_table(path).to_pylist()
        path.unlink()
        forget_parts(warehouse)
        kept = [row for row in stored if row["response_id"] != response_id]
        gone = [
            {**row, **changed} for row in stored if row["response_id"] == response_id and changed
        ]
        warehouse.write("responses", kept + gone)
    warehouse.publish()


@pytest.mark.parametrize("changed", [{}, {"text": "Another response."}])
def test_members_without_their_response_are_lost(
    server: FaultServer, folder: Path, changed: dict[str, Any]
) -> None:
    job = job_at(server, folder)
    night(server, job, "2026-11-20")
    member = rows_in(
        job, "select response_id, count(*) as n from control_set group by all order by all limit 1"
    )[0]
    without_responses(job, member["response_id"], **changed)
    seen = night(server, job, "2026-11-21")
    again = night(server, job, "2026-11-21")
    parts = Warehouse(job.warehouse).store.standing("control_verdicts")

    assert N - member["n"] == len(seen.calls)
    assert f"judge: {member['n']} members of its control set are lost" in seen.report.warnings[0]
    assert [("2026-11-20", N, 0, 0), ("2026-11-21", N - member["n"], 0, member["n"])] == values_in(
        job, "select night, n_decided, n_failed, n_lost from judge_drift order by night"
    )
    assert again.calls == []
    assert parts == Warehouse(job.warehouse).store.standing("control_verdicts")


def test_the_bar_is_the_one_that_was_configured_in_its_night(
    server: FaultServer, folder: Path
) -> None:
    server.behaviour = lenient
    barred = night(server, job_at(server, folder, drift={"min_agreement": 0.99}), "2026-11-20")
    job = job_at(server, folder)
    server.behaviour = well_behaved
    night(server, job, "2026-11-21")

    assert [rows["cause"] for rows in barred.drifted] == ["bar"]
    assert any("below the bar (bar 99.0%)" in line for line in barred.report.warnings)
    figures = "select min_agreement, cause from judge_drift order by night"
    assert values_in(job, figures) == [(0.99, "bar"), (None, None)]


def test_a_judge_that_is_left_to_provider_batches_is_asked_call_by_call(
    server: FaultServer, folder: Path
) -> None:
    before = len(server.entries)
    seen = night(server, job_at(server, folder, mode="batch"), "2026-11-20")

    assert len(seen.calls) == N
    assert seen.report.rows == N
    assert seen.report.skipped == 0
    assert {entry.path for entry in server.entries[before:]} == {"/v1/chat/completions"}
