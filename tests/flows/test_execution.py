"""A run from its lock to its row in `runs`, with work that is made up."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import pytest

from flows import execution
from flows.execution import execute
from tasks.run import StageReport
from tests.builders import job_on
from warehouse import Warehouse


def interrupt(*_: object, **__: object) -> NoReturn:
    raise KeyboardInterrupt


def outcomes(folder: Path) -> list[Any]:
    with Warehouse(folder).reader() as reader:
        return [row["outcome"] for row in reader.rows("select outcome from runs")]


@pytest.mark.parametrize(
    ("owner", "name", "recorded"),
    [
        (Warehouse, "verify", None),
        (execution, "reread", None),
        (execution, "mark_killed", ["interrupted"]),
        (execution, "damage_reports", ["interrupted"]),
    ],
)
def test_ctrl_c_at_any_moment_of_a_run_interrupts_it(
    owner: object,
    name: str,
    recorded: list[str] | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(owner, name, interrupt)
    ended = execute(job_on("sample", tmp_path), lambda: [StageReport("judge")])
    monkeypatch.undo()

    assert (ended.outcome, ended.exit_code, ended.was_interrupted) == ("interrupted", 130, True)
    assert capsys.readouterr().err.count("interrupted: finished work is kept") == 1
    # Before its row is written, a run has done nothing.
    assert recorded == (outcomes(tmp_path) if Warehouse(tmp_path).database.exists() else None)


@pytest.mark.parametrize(("fails", "outcome"), [(interrupt, "interrupted"), (lambda: 1 / 0, "failed")])
def test_work_that_is_cut_short_is_recorded_with_its_outcome(
    fails: Callable[[], Any], outcome: str, tmp_path: Path
) -> None:
    try:
        execute(job_on("sample", tmp_path), fails)
    except ZeroDivisionError:
        assert outcome == "failed"
    assert outcomes(tmp_path) == [outcome]
