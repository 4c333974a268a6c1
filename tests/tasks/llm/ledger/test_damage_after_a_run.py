"""A damaged ledger costs raw replies: no stored response or verdict is lost or paid again."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tasks.config.job import Job
from tests.faults.server import FaultServer
from tests.kit import (
    copied,
    endpoint,
    few_published,
    good_row,
    job_on,
    judged,
    prepared,
    rows_in,
    sampled,
    write_jsonl,
)
from tests.tasks.llm.ledger.conftest import PAGE_BYTES, destroy_page, offset_of

N_CALLS = 22
"""Two responses, with ten verdicts each."""


class FinishedRun(NamedTuple):
    """A job that was sampled and judged, in the state after a kill: its ledger has a log."""

    job: Job
    provider: FaultServer


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory) -> Iterator[FinishedRun]:
    folder = tmp_path_factory.mktemp("finished")
    tasks = write_jsonl(folder / "finance.jsonl", [good_row("t1"), good_row("t2")])
    with few_published(), FaultServer() as provider:
        job = prepared(
            job_on(
                tasks,
                folder / "running",
                models=[endpoint("a", provider.api_base, max_tokens=1000)],
                judges=[endpoint("judge", provider.api_base, max_tokens=1000)],
            )
        )
        ledger = job.warehouse / "ledger"
        sampled(job)
        # The last user of a ledger moves the log into the file; this one stays.
        with closing(sqlite3.connect(ledger / "calls.sqlite")) as user:
            user.execute("select * from calls").fetchone()
            judged(job)
            killed = copied(job, folder / "killed")
        assert (
            killed.warehouse / "ledger" / "calls.sqlite-wal"
        ).stat().st_size > PAGE_BYTES
        yield FinishedRun(killed, provider)


def cut_off(ledger: Path):
    os.truncate(ledger, 2 * PAGE_BYTES)


def overwrite(ledger: Path):
    ledger.write_bytes(b"no database at all\n" * 1000)


def destroy_index(ledger: Path):
    destroy_page(ledger, offset_of(ledger.parent, "sqlite_autoindex_calls_1"))


def destroy_log(ledger: Path):
    log = ledger.with_name("calls.sqlite-wal")
    destroy_page(log, log.stat().st_size // 2)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "cut off": cut_off,
    "no database": overwrite,
    "a page": destroy_index,
    "the log": destroy_log,
}


def stored_rows(job: Job) -> list[list[dict[str, Any]]]:
    return [
        rows_in(job, f"from {table} order by all")
        for table in ("responses", "verdicts")
    ]


@pytest.mark.usefixtures("without_scores")
@pytest.mark.parametrize("damage", DAMAGES)
def test_no_stored_response_or_verdict_is_lost_or_paid_again(
    damage,
    finished_run,
    tmp_path,
):
    job = copied(finished_run.job, tmp_path / "warehouse")
    rows = stored_rows(job)
    n_calls = len(finished_run.provider.book)
    DAMAGES[damage](job.warehouse / "ledger" / "calls.sqlite")

    sampled(job)
    judged(job)

    assert n_calls == N_CALLS
    assert len(finished_run.provider.book) == N_CALLS
    assert stored_rows(job) == rows
