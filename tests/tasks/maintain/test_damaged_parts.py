"""Runs on a warehouse with damaged parts: exit code 3, rows restored without a call, and no call
without consent.
"""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from flows.execution import Execution, execute
from tasks.aggregate import aggregate
from tasks.bundles.bundle import Damaged
from tasks.config.job import Job
from tasks.maintain.backup import backup, restore
from tasks.run.writing import StageReport
from tests.faults.server import FaultServer
from tests.kit import Row, Values, copied, judged, prepared, rows_in, sampled
from tests.warehouse.parts import DAMAGES, flip, rows_of
from warehouse import Warehouse

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("only_leaderboard")]


@pytest.fixture
def job(shared: Job, tmp_path) -> Job:
    """The evaluated job on a copy of its warehouse."""
    return copied(shared, tmp_path / "data", run_id="later")


Calls = Callable[[], int]


@pytest.fixture
def calls(shared: Job, provider: FaultServer) -> Calls:
    """The number of requests to the provider since the test began."""
    n_before = len(provider.book)
    return lambda: len(provider.book) - n_before


def run(job: Job, *stages: Callable[[], StageReport]) -> Execution:
    return execute(job, lambda: [run_stage() for run_stage in stages])


def whole_job(job: Job) -> list[Callable[[], StageReport]]:
    return [
        lambda: sampled(prepared(job)),
        lambda: judged(job),
        lambda: aggregate(job),
    ]


def stored(job: Job) -> dict[str, Values]:
    """The rows of all tables but those that every run adds to."""
    rows = rows_of(Warehouse(job.warehouse))
    return {name: rows[name] for name in rows.keys() - {"runs", "spend"}}


def board(job: Job) -> list[Row]:
    query = """
        select
            split, model, judge, score_name, n_tasks,
            mean_score, coverage, ci_low, ci_high, met_share
        from leaderboard
        order by all
    """
    rows = rows_in(job, query)
    for row in rows:
        for name, value in row.items():
            # Sums in another order may differ in the last digits.
            if isinstance(value, float):
                row[name] = round(value, 9)
    return rows


def facts(job: Job, table: str) -> list[Row]:
    """Rows without the columns for time and run."""
    rows = rows_in(job, f"select * exclude (run_id, created_at) from {table}")
    return sorted(rows, key=repr)


def victim(job: Job, table: str) -> Path:
    return Warehouse(job.warehouse).store.current_parts(table)[0]


def test_aggregate_reports_damage_and_restores_rows(job, calls, capsys):
    rows_before = stored(job)
    figures = board(job)
    DAMAGES["a flipped bit"](victim(job, "verdicts"))

    assert run(job, lambda: aggregate(job)).exit_code == 3
    notice = "rows were restored from the last published database"
    assert notice in capsys.readouterr().err
    assert stored(job) == rows_before
    assert board(job) == figures
    assert run(job, lambda: judged(job)).exit_code == 0
    assert stored(job) == rows_before
    assert calls() == 0


def lose(job: Job, table: str, *, with_ledger: bool = False):
    """Delete a part, the database that would restore it, and optionally the ledger."""
    victim(job, table).unlink()
    Warehouse(job.warehouse).database.unlink()
    if with_ledger:
        shutil.rmtree(job.warehouse / "ledger")


@pytest.mark.parametrize(
    "table", [pytest.param("responses", marks=pytest.mark.long), "verdicts"]
)
def test_without_the_database_rows_come_from_the_ledger(job, calls, table, capsys):
    rows_before = facts(job, table)
    figures = board(job)
    lose(job, table)

    assert run(job, lambda: aggregate(job)).exit_code == 3
    notice = f"{len(rows_before)} rows of {table} (benchmark prbench, model a"
    assert notice in capsys.readouterr().err
    run(job, *whole_job(job))
    assert facts(job, table) == rows_before
    assert board(job) == figures
    assert run(job, lambda: aggregate(job)).exit_code == 0
    assert calls() == 0


def test_rows_that_only_calls_restore_wait_until_asked(job, calls, capsys):
    rows_before = facts(job, "verdicts")
    figures = board(job)
    lose(job, "verdicts", with_ledger=True)

    for stages in (whole_job(job), [lambda: judged(job)]):
        assert run(job, *stages).exit_code == 3
        output = capsys.readouterr().err
        kind = "benchmark prbench, model a, judge judge, vintage base"
        assert f"{len(rows_before)} rows of verdicts ({kind}) are lost" in output
        assert "--replace-lost" in output
        assert calls() == 0
        assert not facts(job, "verdicts")

    replacing_job = job.model_copy(update={"replace_lost": True})
    assert run(replacing_job, *whole_job(job)).exit_code == 0
    assert calls() == len(rows_before)
    assert len(facts(job, "verdicts")) == len(rows_before)
    assert board(job) == figures


def test_a_backup_refuses_a_damaged_part_and_keeps_what_is_lost_in_mind(
    job, tmp_path
):
    content = victim(job, "verdicts").read_bytes()
    flip(victim(job, "verdicts"))
    with pytest.raises(Damaged, match="is damaged"):
        backup(job, tmp_path / "backup")
    victim(job, "verdicts").write_bytes(content)
    lose(job, "criteria")
    run(job, lambda: aggregate(job))
    backup(job, tmp_path / "backup")
    restored = job.model_copy(update={"warehouse": tmp_path / "restored"})
    restore(restored, tmp_path / "backup")

    losses = Warehouse(job.warehouse).losses()
    assert losses
    assert Warehouse(restored.warehouse).losses() == losses


def test_other_models_are_still_called_while_rows_of_one_are_lost(job, calls):
    lose(job, "responses", with_ledger=True)
    run(job, lambda: aggregate(job))
    [model] = job.settings.models
    models = (model, model.model_copy(update={"label": "b"}))
    job_of_both = job.with_settings(models=models)

    run(job_of_both, lambda: sampled(job_of_both))

    responses = rows_in(job, "from responses")
    assert {row["model"] for row in responses} == {"b"}
    assert calls() == len(responses)
