"""Runs that stop when their comparisons are settled, as a user starts them, with a provider over a
socket.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.faults.server import Entry, FaultServer
from tests.flows.conftest import Command
from tests.flows.stopping import stopping_world
from tests.flows.stopping.stopping_world import (
    BLOCK,
    N_TASKS,
    Script,
    mean_score,
    n_samples,
)
from tests.golden.outputs import DIGITS, kept
from tests.kit import Row

pytestmark = pytest.mark.slow
STOPPING = {"block": BLOCK, "seed": 3}
_LOOKS = (
    "select model, compared_model, block, decision, mean_difference, unbiased_difference,"
    " sequence_low, sequence_high from stopping_looks order by block, model, compared_model"
)
_BOARD = "select * exclude (first_response_at) from leaderboard where is_primary order by model"


@dataclass
class StoppedRun:
    """A run of three models that stops, first at a cap and then by itself; the same run again; and
    a run that fills in the rest.
    """

    capped_looks: list[Row]
    entries: list[Entry]
    repeated_entries: list[Entry]
    looks: list[Row]
    board: list[Row]
    filling_entries: list[Entry]
    filled_board: list[Row]


@pytest.fixture(scope="module")
def stopped_run(tmp_path_factory) -> Iterator[StoppedRun]:
    command = Command(tmp_path_factory.mktemp("stopped"))
    with FaultServer(Script()) as server:
        data = stopping_world.write_tasks(command.folder / "tasks.jsonl")
        settings = stopping_world.settings(server, data)
        for endpoint in (*settings["models"], *settings["judges"]):
            endpoint["max_tokens"] = 100
        command.configure(**settings, stopping=STOPPING)
        command("run", "--warehouse", "data", "--max-tokens", "40000", code=4)
        capped_looks = command.sql(_LOOKS)
        command("run", "--warehouse", "data")
        n_entries = len(server.entries)
        command("run", "--warehouse", "data")
        n_repeated = len(server.entries)
        looks = command.sql(_LOOKS)
        board = command.sql(_BOARD)
        command.configure(**settings)
        command("run", "--warehouse", "data")
        yield StoppedRun(
            capped_looks=capped_looks,
            entries=server.entries[:n_entries],
            repeated_entries=server.entries[n_entries:n_repeated],
            looks=looks,
            board=board,
            filling_entries=server.entries[n_repeated:],
            filled_board=command.sql(_BOARD),
        )


def test_a_clearly_worse_model_is_stopped_and_its_skipped_work_is_not_missing(
    stopped_run,
):
    # `tests/golden` has the output of `status` and of the leaderboard.
    assert n_samples(stopped_run.entries) == {
        "good": N_TASKS,
        "twin": N_TASKS,
        "bad": BLOCK,
    }
    assert stopped_run.repeated_entries == []


def test_a_score_on_a_random_part_has_an_interval_that_allows_for_stopping(
    stopped_run,
):
    [stopped] = [row for row in stopped_run.board if row["model"] == "bad"]
    [full] = [row for row in stopped_run.filled_board if row["model"] == "bad"]

    assert stopped["ci_high"] - stopped["ci_low"] > full["ci_high"] - full["ci_low"]
    assert stopped["ci_low"] < full["mean_score"] < stopped["ci_high"]
    assert stopped["unbiased_mean_score"] == pytest.approx(
        full["mean_score"], abs=0.1
    )


def test_without_the_key_the_rest_is_filled_in_and_counts_as_if_nothing_had_stopped(
    stopped_run,
):
    assert n_samples(stopped_run.filling_entries) == {"bad": N_TASKS - BLOCK}
    for row in stopped_run.filled_board:
        assert row["mean_score"] == pytest.approx(mean_score(row["model"]))
        assert row["n_tasks"] == N_TASKS
        assert row["coverage"] == 1.0
        assert row["n_tasks_skipped"] is None


def test_a_budget_that_ends_a_block_leaves_comparisons_open_for_the_next_run(
    stopped_run,
):
    n_looks = len(stopped_run.capped_looks)

    assert n_looks < len(stopped_run.looks)
    assert stopped_run.looks[:n_looks] == stopped_run.capped_looks


def test_a_run_that_was_interrupted_by_its_budget_has_the_same_looks(stopped_run):
    # The uninterrupted run is that of `tests/golden`.
    [lines] = [
        lines for name, lines in kept().items() if "from stopping_looks" in name
    ]
    uninterrupted_looks = json.loads("\n".join(lines[1:]))

    for look, uninterrupted in zip(
        stopped_run.looks, uninterrupted_looks, strict=True
    ):
        difference = round(look["mean_difference"], DIGITS)
        assert difference == uninterrupted["mean_difference"]
        for name in ("model", "compared_model", "block", "decision"):
            assert look[name] == uninterrupted[name]


@pytest.mark.long
def test_a_night_stops_when_it_knows_that_a_model_has_dropped(command):
    outputs = []
    sample_counts = []
    with FaultServer() as server:
        data = stopping_world.write_tasks(command.folder / "tasks.jsonl")
        settings = stopping_world.settings(server, data, ["good"])
        settings["models"][0]["resample"] = "nightly"
        command.configure(
            **settings, stopping={**STOPPING, "pairs": "earlier_nights"}
        )
        for number, share in enumerate((8, 3, 3), start=1):
            server.behaviour = Script({"good": share}, version=number)
            n_entries = len(server.entries)
            night = f"2026-11-0{number}"
            output = command.json("nightly", "--warehouse", "data", "--night", night)
            outputs.append(output)
            sample_counts.append(n_samples(server.entries[n_entries:])["good"])

    # In the first night there is nothing to compare with.
    assert sample_counts[0] == N_TASKS
    assert outputs[0]["alerts"] == []
    assert sample_counts[1] == BLOCK
    [alert] = outputs[1]["alerts"]
    assert alert["kind"] == "score_drop"
    assert alert["subject"] == "good"
    facts = alert["facts"]
    assert facts["decision"] == "dropped"
    assert facts["n_tasks_evaluated"] == BLOCK
    assert facts["sequence_high"] < -facts["least_difference"]
    # The third night is compared with the latest value of each task, whatever its night.
    assert outputs[2]["outcome"] == "done"
    [look] = command.sql("from stopped_comparisons where vintage = '2026-11-03'")
    assert look["n_tasks_planned"] == N_TASKS
    assert look["compared_vintage"] == "earlier nights"
