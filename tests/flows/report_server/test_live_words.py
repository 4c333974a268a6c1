"""What the live page says: of several runs, of none, of one that ended, and how much of each bar is what."""

import os
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from flows.report_server.live import Bar, Live, RunState
from flows.report_server.live_page import words

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
BAR = Bar(200, 120, Counter(timeout=3, refused=1), "a", None)


def run(**values: Any) -> RunState:
    given = {"started_at": NOW - timedelta(hours=1, minutes=2), "command": "prbench run", "benchmark": "prbench"}
    return RunState("r1", **{"is_living": True, **given, **values})


def facts(shown: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {name: (value, beside) for name, value, beside in shown["facts"]}


def test_without_any_run_the_page_says_so(tmp_path: Path) -> None:
    shown = words(Live(NOW), tmp_path / "index.html")

    assert shown["headline"] == "No run is in progress, and no run is stored here yet."
    assert shown["published"] == "Nothing is published yet."
    assert (shown["runs"], shown["last"], shown["ranking"]) == ([], None, [])


def test_several_runs_are_all_shown_and_one_without_a_row_has_just_begun(tmp_path: Path) -> None:
    shown = words(Live(NOW, NOW, [run(), RunState("r2", True)]), tmp_path / "index.html")

    assert shown["headline"] == "2 runs are in progress."
    assert [each["has_begun"] for each in shown["runs"]] == [False, True]
    assert shown["is_preliminary"]


def test_a_run_says_what_is_done_what_failed_of_which_cause_and_what_it_cost_under_which_cap(tmp_path: Path) -> None:
    calls = [{"purpose": "sample", "called_model": "x/a", "calls": 130, "failed_calls": 7, "unpriced_calls": 2,
              "cost_usd": 1.5}]  # fmt: skip
    going = run(bars=[BAR], calls=calls, cost_usd=1.5, n_unpriced=2, max_usd=5.0)

    (shown,) = words(Live(NOW, NOW, [going]), tmp_path / "index.html")["runs"]

    assert facts(shown) == {
        "Coverage": ("60.0%", "120 of 200 responses and verdicts, those of earlier runs included"),
        "Failed": ("4", "3 timeout, 1 refused"),
        "Cost so far": ("$1.50", "cap $5.00, 2 calls of unknown price"),
        "Calls so far": ("130", "7 failed attempts"),
        "Time": ("1 h 2 min", "started 2026-11-23 10:58 UTC"),
    }
    (bar,) = shown["bars"]
    assert bar["pieces"] == [("done", "0.000%", "60.000%"), ("failed", "60.000%", "2.000%")]


@pytest.mark.parametrize(("minutes", "is_old"), [(4, False), (6, True)])
def test_results_that_are_too_old_to_be_live_are_called_so(tmp_path: Path, minutes: int, is_old: bool) -> None:
    live = Live(NOW, NOW - timedelta(minutes=minutes), [run()])

    assert words(live, tmp_path / "index.html")["is_old"] is is_old


@pytest.mark.parametrize(("written_h", "report"), [(None, None), (2, "2026-11-23 10:00 UTC")])
def test_a_run_that_ended_has_its_outcome_and_a_link_to_its_report_if_there_is_one(
    tmp_path: Path, written_h: float | None, report: str | None
) -> None:
    index = tmp_path / "index.html"
    if written_h is not None:
        index.touch()
        moment = (NOW - timedelta(hours=written_h)).timestamp()
        os.utime(index, (moment, moment))
    ended = run(is_living=False, outcome="stopped_at_budget", ended_at=NOW - timedelta(seconds=75))

    last = words(Live(NOW, NOW, last=ended), index)["last"]

    assert (last["outcome"], last["level"]) == ("Stopped at the budget (1 min 15 s ago)", "warn")
    assert last["report"] == report


def test_how_long_a_killed_run_took_is_not_known(tmp_path: Path) -> None:
    killed = run(is_living=False, outcome="killed")

    last = words(Live(NOW, NOW, last=killed), tmp_path / "index.html")["last"]

    assert last["outcome"] == "Killed"
    assert facts(last)["Time"] == ("–", "started 2026-11-23 10:58 UTC")


def ranked(**values: Any) -> dict[str, Any]:
    return {
        "split": "finance", "judging": "j", "rank": 1, "model": "m", "vintage": "base", "mean_score": -0.5,
        "ci_low": -0.75, "ci_high": 0.25, "is_small": False, "n_tasks": 60,
        "n_tasks_ranked": 60, "n_tasks_wanted": 60, "coverage": 1.0,
    } | values  # fmt: skip


def test_an_interval_that_may_be_too_narrow_is_marked_and_only_then_the_mark_is_explained(tmp_path: Path) -> None:
    sure, unsure = (
        words(Live(NOW, NOW, ranking=[ranked(is_small=is_small)]), tmp_path / "index.html")
        for is_small in (False, True)
    )

    ((heading, (row,)),) = sure["ranking"]
    assert (heading, row["interval"], sure["small_note"]) == ("finance, judged by j", "−0.750 to 0.250", "")
    assert unsure["ranking"][0][1][0]["interval"] == "−0.750 to 0.250°"
    assert "the interval may be too narrow" in unsure["small_note"]
