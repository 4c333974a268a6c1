"""A run from its lock to its row in `runs`, with made-up work."""

import errno
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import pytest

from flows import execution
from flows.cli.main import main
from flows.execution import execute
from flows.run.outcomes import ENDINGS, explained, message_of, outcome_of
from tasks.llm.ledger.ledger import Ledger
from tasks.run.writing import StageReport
from tests.flows.conftest import Run
from tests.kit import Patch, Printed, job_on, rows_in
from warehouse import Warehouse, unless_unwritable


def interrupt(*_: object, **__: object) -> NoReturn:
    raise KeyboardInterrupt


def outcomes(folder: Path) -> list[Any]:
    return [row["outcome"] for row in rows_in(folder, "select outcome from runs")]


@pytest.mark.parametrize(
    ("owner", "name", "recorded"),
    [
        (Warehouse, "verify", None),
        (execution, "mark_killed", ["interrupted"]),
        (execution, "damage_reports", ["interrupted"]),
    ],
)
def test_ctrl_c_at_any_moment_of_a_run_interrupts_it(
    owner: object,
    name: str,
    recorded: list[str] | None,
    tmp_path: Path,
    monkeypatch: Patch,
    capsys: Printed,
) -> None:
    monkeypatch.setattr(owner, name, interrupt)
    ended = execute(job_on("sample", tmp_path), lambda: [StageReport("judge")])
    monkeypatch.undo()

    assert ended.outcome == "interrupted"
    assert ended.exit_code == 130
    assert ended.was_interrupted
    assert capsys.readouterr().err.count("interrupted: finished work is kept") == 1
    # A run has no effect before its row is written.
    assert recorded == (outcomes(tmp_path) if Warehouse(tmp_path).database.exists() else None)


@pytest.mark.parametrize(
    ("fails", "outcome"), [(interrupt, "interrupted"), (lambda: 1 / 0, "failed")]
)
def test_work_cut_short_is_recorded_with_its_outcome(
    fails: Callable[[], Any], outcome: str, tmp_path: Path
) -> None:
    with suppress(ZeroDivisionError):
        execute(job_on("sample", tmp_path), fails)
    assert [outcome] == outcomes(tmp_path)


def mounted(folder: Path, *options: str) -> bool:
    command = ["mount", *options, str(folder)]
    is_there = shutil.which("mount") is not None
    return is_there and subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 64 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if not mounted(folder, "-t", "tmpfs", "-o", "size=64k", "tmpfs"):
        pytest.skip("mounts a small disk, which only root may")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.slow
@pytest.mark.parametrize("n_filled", [0, 65_536])
def test_a_full_disk_is_named(
    disk: Path, n_filled: int, tmp_path: Path, monkeypatch: Patch, run: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    (disk / ".filled").write_bytes(bytes(n_filled))
    line = run("ingest", "--warehouse", str(disk / "data"), code=1)
    *progress, reason = line.splitlines()
    assert progress == ["ingest: started"]
    assert f"{disk / 'data'}" in reason
    assert "No space left on device" in reason


READING = (["leaderboard"], ["status"], ["sql", "from verdicts"], ["figure", "runs"])


@pytest.mark.slow
@pytest.mark.parametrize("has_tables", [False, True])
def test_a_command_that_finds_nothing_on_a_full_disk_names_the_disk_and_not_a_command_that_fails_there(
    has_tables: bool, disk: Path, tmp_path: Path, monkeypatch: Patch, run: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    data = disk / "data"
    if has_tables:  # a first run was cut short before it stored any task
        assert mounted(disk, "-o", "remount,size=16m")
        execute(job_on("sample", data), list)
    with suppress(OSError), (disk / ".filled").open("wb") as file:
        while True:
            file.write(bytes(4096))
            file.flush()
    for command in (["status"],) if has_tables else READING:
        line = run(*command, "--warehouse", str(data), code=1)

        assert (
            f"nothing can be written to {data} (No space left on device); free some space" in line
        )
        assert "prbench ingest" not in line
        assert line.count("\n") == 1


@pytest.mark.slow
def test_a_command_that_finds_nothing_on_a_read_only_disk_says_so(
    disk: Path, tmp_path: Path, monkeypatch: Patch, run: Run
) -> None:
    monkeypatch.chdir(tmp_path)
    assert mounted(disk, "-o", "remount,ro")

    for command in READING:
        line = run(*command, "--warehouse", str(disk / "data"), code=1)

        assert (
            f"nothing can be written to {disk / 'data'} (Read-only file system); make it writable"
            in line
        )


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_too_many_open_files_are_a_line_with_the_limit_to_raise(number: int) -> None:
    assert explained(OSError(number, os.strerror(number), "/data/x"))[1].endswith(
        "or lower `limits.concurrency`"
    )


def test_a_folder_that_can_be_written_gets_the_advice_and_no_file(tmp_path: Path) -> None:
    assert unless_unwritable(tmp_path / "new" / "data", "run it") == "run it"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_read_only_warehouse_can_be_read(
    disk: Path, tmp_path: Path, monkeypatch: Patch, capsys: Printed
) -> None:
    monkeypatch.chdir(tmp_path)
    at = ["--warehouse", str(disk / "data")]
    assert mounted(disk, "-o", "remount,size=64m")
    assert main(["ingest", *at]) == 0
    Ledger(disk / "data" / "ledger").close()
    assert mounted(disk, "-o", "remount,ro")

    assert main(["status", "--spend", *at]) == 0
    capsys.readouterr()
    for command in ("run", "aggregate"):
        assert main([command, *at]) == 1
        assert (
            f"{disk / 'data'}: cannot be written: Read-only file system" in capsys.readouterr().err
        )


def test_of_the_outcomes_that_apply_the_first_in_order_of_exit_codes_counts() -> None:
    reports: list[StageReport] = []
    outcomes = [outcome_of(reports)]
    for name in ("is_below_bar", "has_failed", "is_at_stop_time", "is_at_budget"):
        reports.append(StageReport("judge", **{name: True}))  # type: ignore[arg-type]
        outcomes.append(outcome_of(reports))
    assert outcomes == ["done", "below_bar", "failed", "stopped_at_time", "stopped_at_budget"]


@pytest.mark.parametrize(
    ("failures", "n_rows", "more", "outcome"),
    [
        ({"provider_error": 3, "timeout": 1}, 4, {"is_below_bar": True}, "failed"),
        ({"provider_error": 4}, 4, {"stopped": ["m: wrong key"]}, "failed"),
        ({"provider_error": 4}, 4, {}, "done"),
        (
            {"provider_error": 3},
            4,
            {"is_below_bar": True, "stopped": ["m: wrong key"]},
            "below_bar",
        ),
        ({"parse_error": 4}, 4, {"is_below_bar": True}, "below_bar"),
        ({}, 0, {"is_below_bar": True}, "below_bar"),
    ],
)
def test_a_run_without_replies_fails(
    failures: dict[str, int], n_rows: int, more: dict[str, Any], outcome: str
) -> None:
    sampled = StageReport("sample", rows=n_rows, failures=Counter(failures))
    assert outcome == outcome_of(
        [StageReport("ingest", rows=9), sampled, StageReport("coverage", **more)]
    )


@pytest.mark.parametrize("outcome", ENDINGS)
def test_a_state_has_the_name_of_its_outcome_and_says_what_to_know(outcome: str) -> None:
    from flows.recorded import state_of  # Prefect takes seconds to import

    warned = [
        StageReport("sample"),
        StageReport("judge", notes=["9 made"], warnings=["half is missing"]),
    ]
    state = state_of(outcome, message_of(warned, outcome))
    assert (*ENDINGS[outcome][1:], "half is missing") == (
        state.type.value,
        state.name,
        state.message,
    )
    assert message_of([StageReport("judge", notes=["9 made"])], outcome) == "9 made"
    assert ENDINGS[outcome].state_name == message_of([], outcome)
    assert [outcome] == [
        name for name, ending in ENDINGS.items() if ending.state_name == state.name
    ]
    assert (outcome == "done") == (state.name == "Completed")


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("/srv/evals/warehouse/data", "evals"),
        ("/srv/evals/warehouse/embedded", "evals"),
        ("/srv/evals/nights", "nights"),
        ("/warehouse/data", "root"),
    ],
)
def test_a_warehouse_is_named_after_its_folder_or_after_the_one_with_the_default_folder(
    folder: str, name: str
) -> None:
    from flows.ui import warehouse_name

    assert name == warehouse_name(Path(folder))
