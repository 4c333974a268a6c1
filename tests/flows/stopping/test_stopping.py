"""Runs that stop when their comparisons are settled, as a user starts them, with a provider over a
socket.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.faults.server import Entry, FaultServer
from tests.flows.conftest import Command
from tests.flows.stopping import stopping_world
from tests.flows.stopping.stopping_world import BLOCK, N_TASKS, Script, mean_score, sampled
from tests.golden.outputs import DIGITS, kept

pytestmark = pytest.mark.slow
STOPPING = {"block": BLOCK, "seed": 3}
_LOOKS = (
    "select model, compared_model, block, decision, mean_difference, unbiased_difference,"
    " sequence_low, sequence_high from stopping_looks order by block, model, compared_model"
)
_BOARD = "select * exclude (first_response_at) from leaderboard order by model, score_name"
Rows = list[dict[str, Any]]


@dataclass
class Stopped:
    """A run of three models that stops, the same run again, and a run that fills in the rest."""

    looks_at_cap: Rows
    first: list[Entry]
    again: list[Entry]
    looks: Rows
    board: Rows
    filled: list[Entry]
    filled_board: Rows


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stopped]:
    command = Command(tmp_path_factory.mktemp("stopped"))
    with FaultServer(Script()) as server:
        given = stopping_world.settings(
            server, stopping_world.write_tasks(command.folder / "tasks.jsonl")
        )
        for each in (*given["models"], *given["judges"]):
            each["max_tokens"] = 100
        command.configure(**given, stopping=STOPPING)
        command("run", "--warehouse", "data", "--max-tokens", "40000", code=4)
        looks_at_cap = command.sql(_LOOKS)
        command("run", "--warehouse", "data")
        first = list(server.entries)
        command("run", "--warehouse", "data")
        again = server.entries[len(first) :]
        looks = command.sql(_LOOKS)
        board = command.sql(_BOARD)
        command.configure(**given)
        command("run", "--warehouse", "data")
        filled = server.entries[len(first) + len(again) :]
        yield Stopped(looks_at_cap, first, again, looks, board, filled, command.sql(_BOARD))


def test_a_clearly_worse_model_is_stopped_and_its_skipped_work_is_not_missing(
    stopped: Stopped,
) -> None:
    # `tests/golden` has the output of `status` and of the leaderboard.
    assert sampled(stopped.first) == {
        "good": N_TASKS,
        "twin": N_TASKS,
        "bad": BLOCK,
    }
    assert stopped.again == []


def test_what_rests_on_a_random_part_has_an_interval_that_allows_for_stopping(
    stopped: Stopped,
) -> None:
    boards = (stopped.board, stopped.filled_board)
    bad, full = (
        next(row for row in board if row["model"] == "bad" and row["is_primary"])
        for board in boards
    )
    assert bad["ci_high"] - bad["ci_low"] > full["ci_high"] - full["ci_low"]
    assert bad["ci_low"] < full["mean_score"] < bad["ci_high"]
    assert abs(bad["unbiased_mean_score"] - full["mean_score"]) < 0.1


def test_without_the_key_the_rest_is_filled_in_and_counts_as_if_nothing_had_stopped(
    stopped: Stopped,
) -> None:
    assert sampled(stopped.filled) == {"bad": N_TASKS - BLOCK}
    for row in (row for row in stopped.filled_board if row["is_primary"]):
        assert pytest.approx(mean_score(row["model"])) == row["mean_score"]
        assert row["n_tasks"] == N_TASKS
        assert row["coverage"] == 1.0
    assert all(row["n_tasks_skipped"] is None for row in stopped.filled_board)


def test_a_budget_that_ends_a_block_leaves_comparisons_open_for_the_next_run(
    stopped: Stopped,
) -> None:
    assert stopped.looks[: len(stopped.looks_at_cap)] == stopped.looks_at_cap
    assert len(stopped.looks_at_cap) < len(stopped.looks)
    # The uninterrupted run in `tests/golden` has the same looks.
    (golden,) = (lines for name, lines in kept().items() if "from stopping_looks" in name)
    names = ("model", "compared_model", "block", "decision", "mean_difference")
    of_both = json.loads("\n".join(golden[1:])), stopped.looks
    uninterrupted, actual = (
        [{name: each[name] for name in names} for each in looks] for looks in of_both
    )
    assert uninterrupted == [
        each | {"mean_difference": round(each["mean_difference"], DIGITS)} for each in actual
    ]


@pytest.mark.long
def test_a_night_asks_whether_a_model_has_dropped_and_stops_when_it_knows(tmp_path: Path) -> None:
    command = Command(tmp_path)
    script = Script()
    with FaultServer(script) as server:
        given = stopping_world.settings(
            server, stopping_world.write_tasks(command.folder / "tasks.jsonl"), ["good"]
        )
        given["models"][0]["resample"] = "nightly"
        command.configure(**given, stopping={**STOPPING, "pairs": "earlier_nights"})
        first = command.json("nightly", "--warehouse", "data", "--night", "2026-11-01")
        assert sampled(server.entries) == {"good": N_TASKS}  # there is nothing to compare with
        assert first["alerts"] == []

        script.version = 2
        script.shares["good"] = 3
        second = command.json("nightly", "--warehouse", "data", "--night", "2026-11-02")
        assert sampled(server.entries) == {"good": N_TASKS + BLOCK}
        (alert,) = second["alerts"]
        assert alert["kind"] == "score_drop"
        assert alert["subject"] == "good"
        facts = alert["facts"]
        assert facts["decision"] == "dropped"
        assert facts["n_tasks_evaluated"] == BLOCK
        assert facts["sequence_high"] < -facts["least_difference"]

        # The next night is compared with the latest value of each task, whatever its night.
        script.version = 3
        third = command.json("nightly", "--warehouse", "data", "--night", "2026-11-03")
        (look,) = command.sql("select * from stopped_comparisons where vintage = '2026-11-03'")
        assert look["n_tasks_planned"] == N_TASKS
        assert look["compared_vintage"] == "earlier nights"
        assert third["outcome"] == "done"
