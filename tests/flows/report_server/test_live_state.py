"""What the live page knows of a warehouse: before anything is published, while runs go on, and after them."""

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from flows.execution import job_of_run, run_row
from flows.report_server.live import LiveView
from flows.run.outcomes import DONE, RUNNING
from tasks.config.job import DataRevision, Job
from tests.kit import REVISION, at, job_on, written
from tests.tasks.compare.comparisons import RUBRICS, tasks_of
from warehouse import Warehouse

MODELS = {
    "models": [{"name": "x/m", "label": "m"}],
    "judges": [{"name": "x/j", "label": "j"}],
    "trials": 2,
    "limits": {"max_usd": 4},
}


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A job on tasks that `ingested` stores."""
    job = job_on("sample", tmp_path / "data", run_id="r1", **MODELS)
    return job.looking_up(lambda: DataRevision(name="made up", revision=REVISION, splits=("finance",)))


def store(job: Job, outcome: str, **values: Any) -> None:
    """Publish the row of a run."""
    warehouse = Warehouse(job.warehouse)
    ended_at = None if outcome == RUNNING else at(90)
    warehouse.write("runs", [run_row(job, [], at(0), ended_at, RUNNING) | {"outcome": outcome} | values])
    warehouse.publish()


def test_a_folder_without_anything_has_no_run(job: Job) -> None:
    live = LiveView(job).now()

    assert (live.in_progress, live.last, live.published_at, live.trouble) == ([], None, None, None)
    assert not job.warehouse.exists()


def test_a_run_that_has_published_nothing_has_begun(job: Job) -> None:
    with Warehouse(job.warehouse).living("r1"):
        live = LiveView(job).now()

    assert [(run.run_id, run.row) for run in live.in_progress] == [("r1", {})]
    assert live.published_at is None


def test_runs_go_on_are_killed_and_end_while_the_database_is_replaced_below_the_view(job: Job) -> None:
    view, other = LiveView(job), job.model_copy(update={"run_id": "r2"})
    warehouse = Warehouse(job.warehouse)
    written(job.warehouse, tasks_of(RUBRICS))
    with ExitStack() as second:
        second.enter_context(warehouse.living("r2"))
        with warehouse.living("r1"):
            store(job, RUNNING)
            store(other, RUNNING)
            assert [run.run_id for run in view.now().in_progress] == ["r1", "r2"]
            assert view.now().last is None
        live = view.now()
        assert [run.run_id for run in live.in_progress] == ["r2"]
        assert live.last is not None
        assert (live.last.run_id, live.last.outcome) == ("r1", "killed")
        store(other, DONE)
        assert view.now().in_progress == []
    last = view.now().last

    assert last is not None
    assert (last.run_id, last.outcome) == ("r2", DONE)


def test_an_import_after_a_run_is_not_the_last_run(job: Job) -> None:
    store(job, "done", command="prbench run")
    store(job, "done", command="prbench import responses answers.json", run_id="r2", ended_at=at(200))

    last = LiveView(job).now().last

    assert last is not None
    assert last.run_id == "r1"


def test_a_run_has_the_coverage_of_what_it_wants_itself_under_its_own_cap(job: Job) -> None:
    written(job.warehouse, tasks_of(RUBRICS))
    limited = job.model_copy(update={"limit": 2})
    with Warehouse(job.warehouse).living("r1"):
        store(limited, RUNNING)
        (run,) = LiveView(job).now().in_progress

    assert [(cell.judge, cell.model, cell.trial, cell.due, cell.done) for cell in run.cells] == [
        (None, "m", 1, 2, 0), (None, "m", 2, 2, 0), ("j", "m", 1, 4 + 2, 0), ("j", "m", 2, 4 + 2, 0),
    ]  # fmt: skip
    assert run.job is not None
    assert run.job.settings.limits.max_usd == 4


def test_a_run_of_a_data_set_that_is_not_ingested_says_why_its_coverage_is_not_known(job: Job) -> None:
    with Warehouse(job.warehouse).living("r1"):
        store(job, RUNNING)
        (run,) = LiveView(job).now().in_progress

    assert run.trouble is not None
    assert "prbench ingest" in run.trouble


def test_a_record_that_this_version_cannot_read_is_said_and_the_run_is_still_shown(job: Job) -> None:
    with Warehouse(job.warehouse).living("r1"):
        store(job, RUNNING, config=json.dumps({"models": "of another time"}))
        (run,) = LiveView(job).now().in_progress

    assert (run.run_id, run.trouble) == ("r1", "another version of prbench wrote its record")


@pytest.mark.parametrize(("served", "of_run", "wanted"), [
    ([], ["finance"], ("finance",)), (["finance"], ["legal", "finance"], ("legal", "finance")), ([], [], ("all",)),
])  # fmt: skip
def test_the_data_set_of_a_run_on_other_splits_is_not_looked_up_again(
    tmp_path: Path, served: list[str], of_run: list[str], wanted: tuple[str, ...]
) -> None:
    def on(splits: list[str]) -> Job:
        return job_on("sample", tmp_path, dataset={"source": "a-folder-that-is-not-there", "splits": splits})

    viewer = on(served).looking_up(lambda: DataRevision(name="n", revision=REVISION, splits=tuple(served) or ("all",)))

    data = job_of_run(viewer, run_row(on(of_run), [], at(0), None, RUNNING)).data

    assert (data.revision, data.splits) == (REVISION, wanted)


def test_the_record_of_a_run_gives_back_its_job(job: Job) -> None:
    narrowed = {"limit": 2, "vintage": "v", "named_models": ("m",), "named_tasks": ("t1", "t2"), "named_trials": (1,)}
    asked = job.model_copy(update={**narrowed, "night": "2026-11-23"})

    found = job_of_run(job, run_row(asked, [], at(0), None, RUNNING))

    for name in (*narrowed, "night", "settings", "run_id", "warehouse"):
        assert getattr(found, name) == getattr(asked, name), name
    assert "selection" not in json.loads(run_row(job, [], at(0), None, RUNNING)["config"])
