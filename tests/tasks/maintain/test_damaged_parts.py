"""Runs on a warehouse with damaged parts: told with exit code 3, restored without a call, never called for unasked."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.cli.main import main
from flows.execution import Execution, execute
from tasks.aggregate import aggregate
from tasks.bundles.bundle import Damaged
from tasks.config.job import Job
from tasks.imports.verdicts import import_verdicts
from tasks.maintain.backup import backup, restore
from tasks.run.writing import StageReport
from tests.faults.server import FaultServer
from tests.kit import copied, judged, prepared, rows_in, sampled, write_jsonl
from tests.warehouse.test_damage import DAMAGES, Rows, flip, rows_of
from warehouse import Warehouse

pytestmark = pytest.mark.slow

_OF_RUNS = {"runs", "spend"}
"""Tables that every run adds to."""


@pytest.fixture
def job(evaluated: Job, provider: FaultServer, tmp_path: Path) -> Job:
    """The same in a folder of its own, with a request to the provider told from those before."""
    provider.made_before = len(provider.book)  # type: ignore[attr-defined]
    return copied(evaluated, tmp_path / "data", run_id="later")


def calls(provider: FaultServer) -> int:
    return len(provider.book) - int(provider.made_before)  # type: ignore[attr-defined]


def run(job: Job, *work: Callable[[], StageReport], **options: Any) -> Execution:
    return execute(job, lambda: [each() for each in work], **options)


def whole_job(job: Job) -> list[Callable[[], StageReport]]:
    return [lambda: sampled(prepared(job)), lambda: judged(job), lambda: aggregate(job)]


def stored(job: Job) -> Rows:
    return {name: rows for name, rows in rows_of(Warehouse(job.warehouse)).items() if name not in _OF_RUNS}


def board(job: Job) -> list[dict[str, Any]]:
    columns = "split, model, judge, score_name, n_tasks, mean_score, coverage, ci_low, ci_high, met_share"
    rows = rows_in(job, f"select {columns} from leaderboard order by all")
    # Sums of the same numbers in another order may differ in their last digit.
    return [{name: round(v, 9) if isinstance(v, float) else v for name, v in row.items()} for row in rows]


def facts(job: Job, table: str) -> list[dict[str, Any]]:
    """Rows without what tells when and by which run they were written."""
    return sorted(rows_in(job, f"select * exclude (run_id, created_at) from {table}"), key=repr)


def victim(job: Job, table: str) -> Path:
    return Warehouse(job.warehouse).store.standing(table)[0].path


QUICK = {
    ("task_rows", "a flipped bit"), ("criteria", "deleted"), ("responses", "a flipped bit"), ("verdicts", "deleted"),
    ("measures", "a flipped bit"),
}  # fmt: skip
"""The others take long together."""


def damaged(*tables: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("table", "what"), [
        pytest.param(table, what, marks=() if (table, what) in QUICK else pytest.mark.long)
        for table in tables for what in ("a flipped bit", "deleted")
    ])  # fmt: skip


@damaged("task_rows", "criteria", "message_rows", "responses", "verdicts", "checks", "measures")
def test_aggregate_tells_of_damage_and_the_tables_are_as_before_without_a_call(
    job: Job, provider: FaultServer, table: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before, figures = stored(job), board(job)
    DAMAGES[what](victim(job, table))
    execution = run(job, lambda: aggregate(job))

    assert 3 == execution.exit_code
    assert "rows were restored from the last published database" in capsys.readouterr().err
    assert figures == board(job)
    assert before == stored(job)
    assert 0 == run(job, *whole_job(job)).exit_code
    assert before == stored(job)
    assert 0 == calls(provider)


@damaged("responses", "verdicts")
def test_without_the_database_the_next_run_restores_from_the_ledger_without_a_call(
    job: Job, provider: FaultServer, table: str, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    before, figures = facts(job, table), board(job)
    DAMAGES[what](victim(job, table))
    Warehouse(job.warehouse).database.unlink()

    assert 3 == run(job, lambda: aggregate(job)).exit_code
    assert f"{len(before)} rows of {table} (benchmark prbench, model a" in capsys.readouterr().err
    assert figures != board(job)
    run(job, *whole_job(job))
    assert before == facts(job, table)
    assert figures == board(job)
    assert 0 == run(job, lambda: aggregate(job)).exit_code
    assert 0 == calls(provider)


def test_rows_that_only_calls_can_restore_are_listed_and_called_for_when_asked(
    job: Job, provider: FaultServer, capsys: pytest.CaptureFixture[str]
) -> None:
    before, figures = facts(job, "verdicts"), board(job)
    victim(job, "verdicts").unlink()
    Warehouse(job.warehouse).database.unlink()
    shutil.rmtree(job.warehouse / "ledger")

    for _ in range(2):
        execution = run(job, *whole_job(job))
        assert 3 == execution.exit_code
        said = capsys.readouterr().err
        kind = "benchmark prbench, model a, judge judge, vintage base"
        assert f"{len(before)} rows of verdicts ({kind}) are lost" in said
        assert "--replace-lost" in said
        assert 0 == calls(provider)
        assert not facts(job, "verdicts")
    assert 0 == run(job, *whole_job(job), replace_lost=True).exit_code
    assert len(before) == calls(provider) == len(facts(job, "verdicts"))
    assert figures == board(job)


def test_imported_rows_are_restored_and_listed_by_their_import_where_they_cannot_be(
    job: Job, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = rows_in(job, "select task_id as task, criterion_id as criterion from verdicts limit 7")
    given = [{**row, "model": "a", "judge": "ann", "criteria_met": True} for row in rows]
    file = write_jsonl(tmp_path / "verdicts.jsonl", given)
    run(job, lambda: import_verdicts(job, file))
    before = stored(job)
    flip(Warehouse(job.warehouse).store.standing("verdicts")[-1].path)
    assert 3 == run(job, lambda: aggregate(job)).exit_code
    assert before["verdicts"] == stored(job)["verdicts"]

    Warehouse(job.warehouse).database.unlink()
    flip(Warehouse(job.warehouse).store.standing("verdicts")[-1].path)
    capsys.readouterr()
    run(job, lambda: aggregate(job))
    assert "7 rows of verdicts (benchmark prbench, model a, judge ann, vintage base, import" in capsys.readouterr().err
    run(job, lambda: import_verdicts(job, file))
    assert not Warehouse(job.warehouse).losses()
    assert 0 == run(job, lambda: aggregate(job)).exit_code


def test_doctor_verifies_parts_and_database_and_ends_with_3(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["doctor", "--warehouse", str(job.warehouse)]
    assert 0 == main(arguments)
    part, database = victim(job, "verdicts"), Warehouse(job.warehouse).database
    for path in (part, database):
        content = path.read_bytes()
        flip(path, len(content) * 2 // 3)
        capsys.readouterr()
        assert 3 == main(arguments)
        assert f"{path}: is damaged" in capsys.readouterr().out
        path.write_bytes(content)
    part.unlink()
    assert 3 == main(arguments)
    assert 0 == len(list((job.warehouse).rglob("damaged/*")))


def test_a_backup_refuses_a_damaged_part_and_keeps_what_is_lost_in_mind(job: Job, tmp_path: Path) -> None:
    content = victim(job, "verdicts").read_bytes()
    flip(victim(job, "verdicts"))
    with pytest.raises(Damaged, match="is damaged"):
        backup(job, tmp_path / "backup")
    victim(job, "verdicts").write_bytes(content)
    victim(job, "criteria").unlink()
    Warehouse(job.warehouse).database.unlink()
    run(job, lambda: aggregate(job))
    backup(job, tmp_path / "backup")
    restored = job.model_copy(update={"warehouse": tmp_path / "restored"})
    restore(restored, tmp_path / "backup")

    assert Warehouse(job.warehouse).losses() == Warehouse(restored.warehouse).losses() != []


def test_other_models_are_still_called_while_rows_of_one_are_lost(job: Job, provider: FaultServer) -> None:
    victim(job, "responses").unlink()
    Warehouse(job.warehouse).database.unlink()
    shutil.rmtree(job.warehouse / "ledger")
    run(job, lambda: aggregate(job))
    (model,) = job.settings.models
    models = (model, model.model_copy(update={"label": "b"}))
    both = job.model_copy(update={"settings": job.settings.model_copy(update={"models": models})})
    run(both, lambda: sampled(both))

    with Warehouse(job.warehouse).reader() as reader:
        assert ["b"] == [row["model"] for row in reader.rows("select distinct model from responses")]
        assert calls(provider) == reader.value("select count(*) from responses")
