"""What the live page says: of several runs, of none, of one that ended, and how much of each bar is what."""

import os
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from flows.report_server.live import Live, RunState
from flows.report_server.live_page import words
from tasks.benchmarks import load_benchmark
from tasks.run.coverage import Covered
from tests.kit import job_on

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
PRBENCH = load_benchmark("prbench")
CELL = Covered("a", "base", 1, None, None, 200, 200, 120, failures=Counter(timeout=3, refused=1))
ROW = {"started_at": NOW - timedelta(hours=1, minutes=2), "ended_at": None, "command": "prbench run", "night": None}


def run(**values: Any) -> RunState:
    return RunState("r1", **{"row": ROW, **values})


def facts(shown: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {name: (value, beside) for name, value, beside in shown["facts"]}


def test_without_any_run_the_page_says_so(tmp_path: Path) -> None:
    shown = words(Live(NOW), tmp_path / "index.html", PRBENCH)

    assert shown["headline"] == "No run is in progress, and no run is stored here yet."
    assert shown["published"] == "Nothing is published yet."
    assert (shown["runs"], shown["last"], shown["figures"]) == ([], None, [])


def test_several_runs_are_all_shown_and_one_without_a_row_has_just_begun(tmp_path: Path) -> None:
    shown = words(Live(NOW, NOW, [run(), RunState("r2")]), tmp_path / "index.html", PRBENCH)

    assert shown["headline"] == "2 runs are in progress."
    assert [bool(each["facts"]) for each in shown["runs"]] == [True, False]


def test_a_run_says_what_is_done_what_failed_of_which_cause_and_what_it_cost_under_which_cap(tmp_path: Path) -> None:
    calls = [{"purpose": "sample", "called_model": "x/a", "calls": 130, "failed_calls": 7, "unpriced_calls": 2,
              "cost_usd": 1.5}]  # fmt: skip
    going = run(cells=[CELL], calls=calls, job=job_on("sample", tmp_path, limits={"max_usd": 5.0}))

    (shown,) = words(Live(NOW, NOW, [going]), tmp_path / "index.html", PRBENCH)["runs"]

    assert facts(shown) == {
        "Coverage": ("60.0%", "120 of 200 responses and verdicts, those of earlier runs included"),
        "Failed": ("4", "3 timeout, 1 refused"),
        "Cost so far": ("$1.50", "cap $5.00, 2 calls of unknown price"),
        "Calls so far": ("130", "7 failed attempts"),
        "Time": ("1 h 2 min", "started 2026-11-23 10:58 UTC"),
    }
    coverage, of_calls = shown["figures"]
    assert (coverage.figure.name, coverage.n_rows, of_calls.figure.name, of_calls.n_rows) == (
        "status-r1",
        1,
        "calls-r1",
        1,
    )


@pytest.mark.parametrize(("minutes", "is_old"), [(4, False), (6, True)])
def test_results_that_are_too_old_to_be_live_are_called_so(tmp_path: Path, minutes: int, is_old: bool) -> None:
    live = Live(NOW, NOW - timedelta(minutes=minutes), [run()])

    assert words(live, tmp_path / "index.html", PRBENCH)["is_old"] is is_old


@pytest.mark.parametrize(("written_h", "report"), [(None, None), (2, "2026-11-23 10:00 UTC")])
def test_a_run_that_ended_has_its_outcome_and_a_link_to_its_report_if_there_is_one(
    tmp_path: Path, written_h: float | None, report: str | None
) -> None:
    index = tmp_path / "index.html"
    if written_h is not None:
        index.touch()
        moment = (NOW - timedelta(hours=written_h)).timestamp()
        os.utime(index, (moment, moment))
    at = {"ended_at": NOW - timedelta(seconds=75)}
    ended = run(is_living=False, outcome="stopped_at_budget", row=ROW | at)

    last = words(Live(NOW, NOW, last=ended), index, PRBENCH)["last"]

    assert (last["outcome"], last["level"]) == ("Stopped at the budget (1 min 15 s ago)", "warn")
    assert last["report"] == report


def test_how_long_a_killed_run_took_is_not_known(tmp_path: Path) -> None:
    killed = run(is_living=False, outcome="killed")

    last = words(Live(NOW, NOW, last=killed), tmp_path / "index.html", PRBENCH)["last"]

    assert last["outcome"] == "Killed"
    assert facts(last)["Time"] == ("–", "started 2026-11-23 10:58 UTC")
