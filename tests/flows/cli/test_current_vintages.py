"""Commands show the current vintage of a model, and name what they leave out."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.behaviours import HttpResponse, Request, failed, is_judge_request, well_behaved
from tests.faults.server import FaultServer
from tests.flows.conftest import Command, settings

pytestmark = pytest.mark.slow
PARTIAL = "2026-11-28"


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with FaultServer() as server:
        yield server


@pytest.fixture(scope="module")
def command(server: FaultServer, tmp_path_factory: pytest.TempPathFactory) -> Command:
    """`prbench` where `base` is complete, and a newer vintage has one task."""
    command = Command(tmp_path_factory.mktemp("current"))
    command.configure(warehouse="data", prefect="off", **settings(server))
    command("run")
    command("run", "--vintage", PARTIAL, "--limit", "1")
    return command


def board(command: Command, *options: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = command.json("leaderboard", *options)
    return rows


def test_a_newer_vintage_with_one_task_is_named_and_not_shown(command: Command) -> None:
    rows = board(command)
    splits = {row["split"] for row in rows}

    assert {(row["model"], row["vintage"]) for row in rows} == {("alpha", "base"), ("beta", "base")}
    assert len(rows) == 2 * len(splits)
    assert {row["rank"] for row in rows} <= {1, 2}
    assert {row["newer_vintage"] for row in rows} == {PARTIAL}
    shown = command("leaderboard").stdout
    assert "A newer vintage covers too little to be shown: " in shown
    assert f"alpha {PARTIAL} (" in shown


def test_a_requested_vintage_is_shown_however_partial(command: Command) -> None:
    assert {row["vintage"] for row in board(command, "--vintage", PARTIAL)} == {PARTIAL}


@pytest.mark.parametrize(
    ("stage", "name"), [("run", "2026-13-45"), ("backfill", "2026-02-30"), ("plan", "20261345")]
)
def test_a_new_vintage_that_looks_like_a_date_must_be_one(
    command: Command, stage: str, name: str
) -> None:
    refused = command(stage, "--vintage", name, "--limit", "1", code=2)

    assert refused.stderr.splitlines()[-1].startswith(
        f"prbench: --vintage {name}: is not a date; write 2026-11-22"
    )


def test_rows_of_a_file_with_an_impossible_date_are_refused(
    command: Command, tmp_path: Path
) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text(
        '{"task": "sample-fin-1", "model": "m", "response": "r", "vintage": "2026-13-45"}\n'
    )

    refused = command("import", "responses", str(file), code=1)

    assert "vintage '2026-13-45' is not a date" in refused.stderr


def test_a_failed_trial_beyond_the_configured_ones_leaves_the_coverage_and_is_named(
    command: Command, server: FaultServer
) -> None:
    def without_a_key(request: Request, number: int) -> HttpResponse:
        return (
            well_behaved(request, number)
            if is_judge_request(request)
            else failed(401, "invalid key")
        )

    before = board(command)
    server.behaviour = without_a_key
    command("backfill", "--model", "alpha", "--trial", "3", "--limit", "2", code=1)
    server.behaviour = well_behaved
    command("aggregate")

    figures = (
        "model",
        "split",
        "coverage",
        "n_trials",
        "mean_score",
        "mean_lower",
        "mean_upper",
        "rank",
    )
    assert [[row[name] for name in figures] for row in board(command)] == [
        [row[name] for name in figures] for row in before
    ]
    assert {row["model"] for row in board(command) if row["uncounted_trials"] == [3]} == {"alpha"}
    assert "not counted until as complete as these: alpha trial 3" in command("leaderboard").stdout
