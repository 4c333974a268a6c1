"""A run from its lock to its row in `runs`, with made-up work."""

import asyncio
import errno
import gc
import os
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import pytest

from flows import execution
from flows.execution import execute
from flows.run.outcomes import ENDINGS, explained, message_of, outcome_of
from flows.run.signals import run_interruptibly
from tasks.llm.ledger.ledger import Ledger
from tasks.run.writing import StageReport
from tests.kit import job_on, prepared, rows_in
from tests.warehouse.parts import stored
from warehouse import Warehouse, WarehouseError, advice_if_writable


def interrupt(*_: object, **__: object) -> NoReturn:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Warehouse, "verify"),
        (execution, "mark_killed"),
        (execution, "damage_reports"),
    ],
)
def test_ctrl_c_at_any_moment_of_a_run_interrupts_it(
    owner,
    name,
    tmp_path,
    monkeypatch,
    capsys,
):
    monkeypatch.setattr(owner, name, interrupt)

    run = execute(job_on("sample", tmp_path), lambda: [StageReport("judge")])

    assert run.outcome == "interrupted"
    assert run.exit_code == 130
    assert run.was_interrupted
    assert capsys.readouterr().err.count("interrupted: finished work is kept") == 1


async def return_done() -> str:
    return "done"


@pytest.mark.timeout(20)
def test_an_event_loop_that_cannot_start_ends_the_run_with_its_error(monkeypatch):
    def refuse(coroutine):
        coroutine.close()
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(asyncio, "run", refuse)

    with pytest.raises(OSError, match="Too many open files"):
        run_interruptibly(return_done)


def test_a_signal_with_a_foreign_handler_is_left_alone(monkeypatch):
    handler = signal.getsignal(signal.SIGHUP)
    handlers = {signal.SIGHUP: None}  # as if a library in C had set it
    monkeypatch.setattr(
        signal, "getsignal", lambda number: handlers.get(number, signal.SIG_DFL)
    )

    result = run_interruptibly(return_done)

    assert result == "done"
    monkeypatch.undo()
    assert signal.getsignal(signal.SIGHUP) == handler


def test_a_run_that_is_interrupted_before_its_row_is_written_has_no_effect(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(Warehouse, "verify", interrupt)

    execute(job_on("sample", tmp_path), lambda: [StageReport("judge")])

    assert not Warehouse(tmp_path).database.exists()


@pytest.mark.parametrize(
    ("work", "outcome"),
    [(interrupt, "interrupted"), (lambda: 1 / 0, "failed")],
)
def test_work_cut_short_is_recorded_with_its_outcome(work, outcome, tmp_path):
    with suppress(ZeroDivisionError):
        execute(job_on("sample", tmp_path), work)

    assert rows_in(tmp_path, "select outcome from runs") == [{"outcome": outcome}]


def test_a_run_that_is_interrupted_while_it_publishes_its_end_is_stored_as_interrupted(
    monkeypatch, tmp_path
):
    job = job_on("sample", tmp_path)
    publish = Warehouse.publish

    def interrupt_from_the_end_on(warehouse: Warehouse):
        outcomes = {row["outcome"] for row in stored(warehouse.store, "runs")}
        if "done" in outcomes:
            raise KeyboardInterrupt
        publish(warehouse)

    monkeypatch.setattr(Warehouse, "publish", interrupt_from_the_end_on)

    assert execute(job, lambda: [StageReport("judge")]).outcome == "interrupted"
    monkeypatch.undo()
    Warehouse(tmp_path).publish()
    assert rows_in(job, "select outcome from runs") == [{"outcome": "interrupted"}]


def test_a_run_that_cannot_publish_is_recorded_as_failed(monkeypatch, tmp_path):
    def refuse(*_):
        raise WarehouseError("no space left")

    def work():
        monkeypatch.setattr(Warehouse, "publish", refuse)
        refuse()

    Warehouse(tmp_path).publish()
    with pytest.raises(WarehouseError, match="no space left"):
        execute(job_on("sample", tmp_path), work)
    monkeypatch.undo()
    Warehouse(tmp_path).publish()

    assert rows_in(tmp_path, "select outcome from runs") == [{"outcome": "failed"}]


def mount(folder: Path, *options: str) -> bool:
    """Mount a disk, and return whether that worked."""
    if shutil.which("mount") is None:
        return False
    command = ["mount", *options, str(folder)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@pytest.fixture
def disk(tmp_path) -> Iterator[Path]:
    """A disk of 64 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if not mount(folder, "-t", "tmpfs", "-o", "size=64k", "tmpfs"):
        pytest.skip("mounts a small disk, which only root may")
    yield folder
    gc.collect()  # the error may hold the part that could not be written
    subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture
def folder(disk: Path) -> Path:
    """A warehouse on the disk."""
    return disk / "data"


@pytest.mark.slow
@pytest.mark.parametrize("n_used_bytes", [0, 65_536])
def test_a_full_disk_is_named(disk, folder, n_used_bytes, run_here):
    (disk / ".filler").write_bytes(bytes(n_used_bytes))

    line = run_here.refusal("ingest", code=1)

    assert str(folder) in line
    assert "No space left on device" in line


READING_COMMANDS = (
    ["leaderboard"],
    ["status"],
    ["sql", "from verdicts"],
    ["figure", "runs"],
)


def fill(disk: Path):
    with suppress(OSError), (disk / ".filler").open("wb") as file:
        while True:
            file.write(bytes(4096))
            file.flush()


def assert_disk_is_named(line: str, data: Path):
    """Check the message of a command that finds nothing on a full disk: it names no command that
    would fail there.
    """
    cause = f"nothing can be written to {data} (No space left on device)"
    assert f"{cause}; free some space" in line
    assert "prbench ingest" not in line


@pytest.mark.slow
@pytest.mark.parametrize("command", READING_COMMANDS)
def test_a_command_that_finds_nothing_on_a_full_disk_names_the_disk(
    command,
    disk,
    folder,
    run_here,
):
    fill(disk)

    line = run_here.refusal(*command, code=1)

    assert_disk_is_named(line, folder)


@pytest.mark.slow
def test_a_full_disk_is_named_after_a_run_that_was_cut_short_before_it_stored_a_task(
    disk,
    folder,
    run_here,
):
    assert mount(disk, "-o", "remount,size=16m")
    execute(job_on("sample", folder), list)
    fill(disk)

    line = run_here.refusal("status", code=1)

    assert_disk_is_named(line, folder)


@pytest.mark.slow
@pytest.mark.parametrize("command", READING_COMMANDS)
def test_a_command_that_finds_nothing_on_a_read_only_disk_says_so(
    command,
    disk,
    folder,
    run_here,
):
    assert mount(disk, "-o", "remount,ro")

    line = run_here(*command, code=1)

    cause = f"nothing can be written to {folder} (Read-only file system)"
    assert f"{cause}; make it writable" in line


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_too_many_open_files_are_a_line_with_the_limit_to_raise(number):
    _, line = explained(OSError(number, os.strerror(number), "/data/x"))

    assert line.endswith("or lower `limits.concurrency`")


def test_a_folder_that_can_be_written_gets_the_advice_and_no_file(tmp_path):
    assert advice_if_writable(tmp_path / "new" / "data", "run it") == "run it"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_read_only_warehouse_can_be_read_and_not_written(disk, folder, run_here):
    assert mount(disk, "-o", "remount,size=64m")
    prepared(job_on("sample", folder))
    Ledger(folder / "ledger").close()
    assert mount(disk, "-o", "remount,ro")

    run_here("status", "--spend")

    refusal = f"{folder}: cannot be written: Read-only file system"
    assert refusal in run_here("run", code=1)
    assert refusal in run_here("aggregate", code=1)


def test_of_the_outcomes_that_apply_the_first_in_order_of_exit_codes_counts():
    reports = [
        StageReport("judge"),
        StageReport("judge", is_below_bar=True),
        StageReport("judge", has_failed=True),
        StageReport("judge", is_at_stop_time=True),
        StageReport("judge", is_at_budget=True),
    ]

    outcomes = [outcome_of(reports[:n_reports]) for n_reports in range(1, 6)]

    assert outcomes == [
        "done",
        "below_bar",
        "failed",
        "stopped_at_time",
        "stopped_at_budget",
    ]


@pytest.mark.parametrize(
    ("failures", "n_rows", "facts", "outcome"),
    [
        (
            {"provider_error": 3, "timeout": 1},
            4,
            {"is_below_bar": True},
            "failed",
        ),
        (
            {"provider_error": 4},
            4,
            {"stopped": ["m: wrong key"]},
            "failed",
        ),
        ({"provider_error": 4}, 4, {}, "done"),
        (
            {"provider_error": 3},
            4,
            {"is_below_bar": True, "stopped": ["m: wrong key"]},
            "below_bar",
        ),
        (
            {"parse_error": 4},
            4,
            {"is_below_bar": True},
            "below_bar",
        ),
        ({}, 0, {"is_below_bar": True}, "below_bar"),
    ],
)
def test_a_run_without_replies_fails(failures, n_rows, facts, outcome):
    reports = [
        StageReport("ingest", rows=9),
        StageReport(
            "sample",
            rows=n_rows,
            failures=Counter(failures),
        ),
        StageReport("coverage", **facts),
    ]

    assert outcome_of(reports) == outcome


@pytest.mark.parametrize("outcome", ENDINGS)
def test_a_state_has_the_type_and_name_of_its_outcome(outcome):
    from flows.recorded import state_of  # Prefect takes seconds to import

    state = state_of(outcome, "half is missing")

    assert state.type.value == ENDINGS[outcome].state_type
    assert state.name == ENDINGS[outcome].state_name
    assert state.message == "half is missing"
    assert (outcome == "done") == (state.name == "Completed")


def test_each_outcome_has_a_state_of_its_own():
    assert len({ending.state_name for ending in ENDINGS.values()}) == len(ENDINGS)


@pytest.mark.parametrize(
    ("reports", "message"),
    [
        (
            [
                StageReport("sample"),
                StageReport(
                    "judge",
                    notes=["9 made"],
                    warnings=["half is missing"],
                ),
            ],
            "half is missing",
        ),
        ([StageReport("judge", notes=["9 made"])], "9 made"),
        ([], "Below the bar"),
    ],
)
def test_the_message_of_a_run_says_what_to_know(reports, message):
    assert message_of(reports, "below_bar") == message


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
    folder,
    name,
):
    from flows.ui import warehouse_name

    assert warehouse_name(Path(folder)) == name
