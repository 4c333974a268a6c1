"""Runs that stop when their comparisons are settled, as a person starts them, with a provider over a socket."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.faults.server import Entry, FaultServer
from tests.flows.conftest import Command
from tests.flows.stopping.stopping_world import (
    BLOCK,
    N_CRITERIA,
    N_TASKS,
    Script,
    mean_score,
    sampled,
    settings,
    write_tasks,
)

pytestmark = pytest.mark.slow
STOPPING = {"block": BLOCK, "seed": 3}
_LOOKS = (
    "select model, compared_model, block, decision, mean_difference, unbiased_difference, sequence_low, sequence_high "
    "from stopping_looks order by block, model, compared_model"
)
_BOARD = "select * exclude (first_response_at) from leaderboard order by model, score_name"
Rows = list[dict[str, Any]]


@dataclass
class Stopped:
    """A run of three models that stops, the same again, and the rest filled in."""

    first: list[Entry]
    again: list[Entry]
    looks: Rows
    board: Rows
    status: Rows
    notes: str
    filled: list[Entry]
    filled_board: Rows


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stopped]:
    command = Command(tmp_path_factory.mktemp("stopped"))
    with FaultServer(Script()) as server:
        data = write_tasks(command.folder / "tasks.jsonl")
        command.configure(**settings(server, data, stopping=STOPPING))
        command("run", "--warehouse", "data")
        first = list(server.entries)
        command("run", "--warehouse", "data")
        again = server.entries[len(first) :]
        looks, board = command.sql(_LOOKS), command.sql(_BOARD)
        status = command.json("status", "--warehouse", "data")
        notes = command("leaderboard", "--warehouse", "data").stdout
        command.configure(**settings(server, data))
        command("run", "--warehouse", "data")
        filled = server.entries[len(first) + len(again) :]
        yield Stopped(first, again, looks, board, status, notes, filled, command.sql(_BOARD))


def test_a_model_that_is_clearly_worse_is_not_evaluated_further_and_the_others_are(stopped: Stopped) -> None:
    assert sampled(stopped.first) == {"good": N_TASKS, "twin": N_TASKS, "bad": BLOCK}
    last = {(row["model"], row["compared_model"]): row for row in stopped.looks}
    assert {pair: row["decision"] for pair, row in last.items()} == {
        ("good", "twin"): "open",
        ("good", "bad"): "different",
        ("twin", "bad"): "different",
    }
    assert all(row["sequence_low"] > 0 for row in last.values() if row["decision"] == "different")


def test_a_finished_run_makes_no_call_and_skipped_work_is_not_missing(stopped: Stopped) -> None:
    assert stopped.again == []
    counted = {(row["model"], row["judge"]): row for row in stopped.status}
    skipped = counted["bad", "(responses)"]
    assert (skipped["wanted"], skipped["done"], skipped["skipped"]) == (BLOCK, BLOCK, N_TASKS - BLOCK)
    assert counted["bad", "judge"]["skipped"] == (N_TASKS - BLOCK) * N_CRITERIA
    assert all(row["missing"] == 0 and row["share"] == 1 for row in stopped.status)
    assert counted["good", "judge"]["skipped"] == 0


def test_a_board_marks_what_rests_on_a_random_part_with_an_interval_that_allows_for_stopping(stopped: Stopped) -> None:
    board = {row["model"]: row for row in stopped.board if row["is_primary"]}
    assert {model: row["n_tasks_skipped"] for model, row in board.items()} == {
        "good": None, "twin": None, "bad": N_TASKS - BLOCK,
    }  # fmt: skip
    bad, full = board["bad"], next(row for row in stopped.filled_board if row["model"] == "bad" and row["is_primary"])
    assert bad["ci_high"] - bad["ci_low"] > full["ci_high"] - full["ci_low"]
    assert bad["ci_low"] < full["mean_score"] < bad["ci_high"]
    assert abs(bad["unbiased_mean_score"] - full["mean_score"]) < 0.1
    assert "On a random part of the tasks" in stopped.notes
    assert "below the coverage bar" not in stopped.notes


def test_without_the_key_the_rest_is_filled_in_and_counts_as_if_nothing_had_stopped(stopped: Stopped) -> None:
    assert sampled(stopped.filled) == {"bad": N_TASKS - BLOCK}
    for row in (row for row in stopped.filled_board if row["is_primary"]):
        assert row["mean_score"] == pytest.approx(mean_score(row["model"]))
        assert (row["n_tasks"], row["coverage"]) == (N_TASKS, 1.0)
    assert all(row["n_tasks_skipped"] is None for row in stopped.filled_board)


@pytest.mark.long
def test_a_killed_run_goes_on_with_the_same_tasks_and_decides_the_same(stopped: Stopped, tmp_path: Path) -> None:
    command, script = Command(tmp_path), Script(delay_s=0.05)
    with FaultServer(script) as server:
        data = write_tasks(command.folder / "tasks.jsonl")
        command.configure(**settings(server, data, stopping=STOPPING))
        process = command.start("run", "--warehouse", "data")
        while len(server.judgings) < 3 * BLOCK * N_CRITERIA + 50:  # in the second block
            assert process.poll() is None
            time.sleep(0.05)
        process.kill()
        process.communicate()
        script.delay_s = 0.0
        command("run", "--warehouse", "data")
        responses = sampled([entry for entry in server.entries if entry.number == 0])
        assert responses == sampled(stopped.first)
        assert sampled(server.entries) == sampled(stopped.first)  # no response was paid for twice
        assert command.sql(_LOOKS) == stopped.looks


def test_a_budget_that_ends_a_block_leaves_comparisons_open_for_the_next_run(stopped: Stopped, tmp_path: Path) -> None:
    command = Command(tmp_path)
    with FaultServer(Script()) as server:
        given = settings(server, write_tasks(command.folder / "tasks.jsonl"), stopping=STOPPING)
        for each in (*given["models"], *given["judges"]):
            each["max_tokens"] = 100
        command.configure(**given)
        command("run", "--warehouse", "data", "--max-tokens", "30000", code=4)
        n_before = len(server.entries)
        looks = command.sql(_LOOKS)
        assert looks == stopped.looks[: len(looks)]
        assert len(looks) < len(stopped.looks)
        command("run", "--warehouse", "data")
        assert command.sql(_LOOKS) == stopped.looks
        assert n_before < len(server.entries)
        assert sampled(server.entries) == sampled(stopped.first)


def test_a_night_asks_whether_a_model_has_dropped_and_stops_when_it_knows(tmp_path: Path) -> None:
    command, script = Command(tmp_path), Script()
    with FaultServer(script) as server:
        given = settings(server, write_tasks(command.folder / "tasks.jsonl"), ["good"])
        given["models"][0]["resample"] = "nightly"
        command.configure(**given, stopping={**STOPPING, "pairs": "earlier_nights"})
        first = command.json("nightly", "--warehouse", "data", "--night", "2026-11-01")
        assert sampled(server.entries) == {"good": N_TASKS}  # there is nothing to compare with
        assert first["alerts"] == []

        script.take, script.shares["good"] = 2, 3
        second = command.json("nightly", "--warehouse", "data", "--night", "2026-11-02")
        assert sampled(server.entries) == {"good": N_TASKS + BLOCK}
        (alert,) = second["alerts"]
        assert (alert["kind"], alert["subject"]) == ("score_drop", "good")
        facts = alert["facts"]
        assert (facts["decision"], facts["n_tasks_evaluated"]) == ("dropped", BLOCK)
        assert facts["sequence_high"] < -facts["least_difference"]

        # The next night is compared with the latest value of each task, of whichever night it is.
        script.take = 3
        third = command.json("nightly", "--warehouse", "data", "--night", "2026-11-03")
        (look,) = command.sql("select * from stopped_comparisons where vintage = '2026-11-03'")
        assert look["n_tasks_planned"] == N_TASKS
        assert look["compared_vintage"] == "earlier nights"
        calls = len(server.entries)
        command.json("nightly", "--warehouse", "data", "--night", "2026-11-03")
        assert len(server.entries) == calls
        assert third["outcome"] == "done"
