"""Judges' replies in the drill-down: their verdicts, when they are read from the ledger, and when
they disappear.
"""

import shutil
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tasks.config.job import Job
from tasks.figures.addresses import task_key
from tasks.llm.ledger.entries import Entry
from tasks.llm.ledger.ledger import LedgerReader
from tasks.llm.ledger.pruning import prune
from tasks.llm.replies import Reply
from tests.kit import Rows, add_calls, call_entry, combined
from tests.tasks.report.drilldown.drilled import (
    data,
    drill,
    files,
    response_rows_of,
    store,
    tiny_job,
)
from warehouse import Reader

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("only_leaderboard")]
TASKS = ("t1", "t2")
OLD_S = 1_000.0
NEW_S = 2_000.0


def entry(
    cell: str,
    text: str,
    call: str = "",
    at_s: float = OLD_S,
    parameters: str = "{}",
) -> Entry:
    """A reply on a verdict; by default of the first call that was made for the verdict."""
    return call_entry(
        call or f"call of {cell}",
        cell=cell,
        parameters=parameters,
        reply=Reply("ok", text),
        finished_at_s=at_s,
    )


def add_replies(job: Job, rows: Rows):
    """Store the reply on each verdict, of a call of its own."""
    cells = [verdict["verdict_id"] for verdict in rows["verdicts"]]
    add_calls(job, *(entry(cell, f"reply on {cell}") for cell in cells))


def replies(site: Path, task_id: str = "t1") -> dict[str, list[Any]]:
    """Return the replies of a task in the report, by trial and position of the criterion."""
    replies_by_cell = {}
    for section in data(site)[f"task-{task_key(task_id)}"].values():
        for key, texts in section.get("replies", {}).items():
            replies_by_cell[key.partition(" ")[2]] = texts
    return replies_by_cell


@pytest.fixture
def job(tmp_path) -> Job:
    """A job in which one model's responses were judged, each verdict by a call of its own."""
    rows = response_rows_of(TASKS, "m1")
    job = tiny_job(tmp_path, TASKS, models=(), further=rows)
    add_replies(job, rows)
    return job


@pytest.fixture
def site(job: Job, tmp_path) -> Path:
    """The job's drill-down."""
    return drill(job, tmp_path / "site")


def test_a_reply_that_the_call_of_another_trial_gave_is_the_reply_of_both(tmp_path):
    parts = []
    for trial, text in ((1, "The same."), (2, "The same."), (3, "Another.")):
        part = response_rows_of(
            ["t1"],
            "m1",
            suffix=f"/{trial}",
            trial=trial,
            text=text,
        )
        parts.append(part)
    tables = combined(*parts)
    job = tiny_job(tmp_path, TASKS, models=(), further=tables)
    add_calls(job, entry(tables["verdicts"][0]["verdict_id"], "met, says the judge"))

    assert replies(drill(job, tmp_path / "site")) == {
        "1 0": ["met, says the judge"],
        "2 0": ["met, says the judge"],
    }


def test_a_reply_that_could_not_be_read_is_kept_beside_the_one_after_the_reminder(
    tmp_path,
):
    rows = response_rows_of(["t1"], "m1")
    job = tiny_job(tmp_path, TASKS, models=(), further=rows)
    reminded, again = (verdict["verdict_id"] for verdict in rows["verdicts"])
    add_calls(
        job,
        entry(reminded, "no JSON", "a", OLD_S),
        entry(reminded, "{}", "b", NEW_S),
        entry(again, "of an older program", "c", OLD_S, '{"old": 1}'),
        entry(again, "of this one", "d", NEW_S),
    )

    assert replies(drill(job, tmp_path / "site")) == {
        "1 0": ["{}", "no JSON"],
        "1 1": ["of this one"],
    }


def test_a_night_reads_its_own_replies(job, site, monkeypatch, tmp_path):
    lookups = []
    replies_for = LedgerReader.replies_for

    def look_up(reader, cells):
        lookups.append(cells)
        return replies_for(reader, cells)

    monkeypatch.setattr(LedgerReader, "replies_for", look_up)
    rows = response_rows_of(
        TASKS[:1],
        "m1",
        "night",
        created_at=None,
        text="Another response.",
    )
    store(job, rows)
    add_replies(job, rows)

    drill(job, site)

    assert lookups == [{verdict["verdict_id"] for verdict in rows["verdicts"]}]
    assert len(replies(site)) == 2  # one of each sampling
    drill(job, site)
    assert files(site) == files(drill(job, tmp_path / "afresh"))


def test_the_report_has_the_replies_that_the_ledger_has_and_no_others(
    job,
    site,
    tmp_path,
):
    verdict_id = response_rows_of(TASKS[:1], "m1")["verdicts"][0]["verdict_id"]

    prune(
        job.warehouse / "ledger",
        NEW_S,
        lambda cells: {cell: cell != verdict_id for cell in cells},
    )
    drill(job, site)

    assert replies(site) == {"1 0": [f"reply on {verdict_id}"]}
    assert replies(site, "t2") == {}
    drill(job, site)
    assert files(site) == files(drill(job, tmp_path / "afresh"))


def test_an_unreadable_ledger_is_read_by_the_next_build(job, site, monkeypatch):
    contents = files(site)
    shutil.rmtree(site)
    with monkeypatch.context() as broken:
        broken.setattr(LedgerReader, "replies_for", Mock(side_effect=OSError))
        drill(job, site)
    assert replies(site) == {}

    drill(job, site)
    drill(job, site)  # the next build deletes what the previous one left

    assert files(site) == contents


def test_of_too_many_verdicts_failed_ones_have_replies(job, site, monkeypatch):
    rows = response_rows_of(TASKS[:1], "m2")
    rows["verdicts"][0] |= {"status": "timeout", "value": None}
    store(job, rows)
    add_replies(job, rows)
    value = Reader.value

    def value_with_many_verdicts(reader, query, *parameters):
        if query == "select count(*) from verdicts":
            return 200_001
        return value(reader, query, *parameters)

    monkeypatch.setattr(Reader, "value", value_with_many_verdicts)

    drill(job, site)

    assert replies(site) == {"1 0": [f"reply on {rows['verdicts'][0]['verdict_id']}"]}
    assert replies(site, "t2") == {}
