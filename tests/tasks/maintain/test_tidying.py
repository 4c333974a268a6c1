"""Tidying: when files are merged, and which raw replies are deleted."""

import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tasks.config.job import Job
from tasks.llm.ledger.ledger import spend_in
from tasks.maintain.tidying import tidy
from tests.kit import add_calls, call_entry, job_on, response
from warehouse import Warehouse

LONG_AGO_S = datetime(2026, 1, 1, tzinfo=UTC).timestamp()


def job_with(folder: Path, n_parts: int, **settings: object) -> Job:
    job = job_on("sample", folder, **settings)
    for number in range(n_parts):
        Warehouse(folder).write("responses", [response(f"t{number}")])
    return job


@pytest.mark.parametrize(
    ("most_parts", "n_parts", "note"),
    [(4, 1, "5 files merged into 1 "), (5, 5, "5 files, no need to")],
)
def test_many_files_are_compacted(tmp_path, monkeypatch, most_parts, n_parts, note):
    monkeypatch.setattr("tasks.maintain.tidying.MANY_PARTS", most_parts)

    report = tidy(job_with(tmp_path, 5), only_if_needed=True)

    assert len(Warehouse(tmp_path).part_sizes()) == n_parts
    assert note in report.line


def record(job: Job, cell: str, finished_at_s: float):
    entry = call_entry(
        cell,
        cell=cell,
        purpose="sample",
        finished_at_s=finished_at_s,
    )
    add_calls(job, entry)


def entries(job: Job) -> set[str]:
    with sqlite3.connect(job.warehouse / "ledger" / "calls.sqlite") as ledger:
        return {cell for (cell,) in ledger.execute("select cell from calls")}


ROW = "t0/a-model/1"
NO_ROW = "t9/a-model/1"


@pytest.mark.parametrize(
    ("days", "stay"), [(30, {NO_ROW, "new"}), (None, {ROW, NO_ROW, "new"})]
)
def test_old_replies_that_became_rows_go_and_their_cost_stays(tmp_path, days, stay):
    job = job_with(
        tmp_path,
        1,
        retention={"replies_days": days},
    )
    record(job, ROW, LONG_AGO_S)
    record(job, NO_ROW, LONG_AGO_S)
    record(
        job,
        "new",
        datetime.now(UTC).timestamp(),
    )

    tidy(job, only_if_needed=True)

    assert entries(job) == stay
    assert sum(row["calls"] for row in spend_in(tmp_path / "ledger")) == 3
