"""The content of the live page before the first publishing, during runs, and after them."""

import json
from datetime import UTC, datetime, timedelta
from operator import itemgetter
from typing import Any

import pytest

from flows.report_server.live import (
    RANKING,
    LiveView,
    RunState,
    ranking_so_far,
    run_texts,
)
from flows.run.outcomes import DONE, KILLED, RUNNING
from flows.run.record import job_of_run, run_row
from tasks.aggregate import aggregate
from tasks.benchmarks import load_benchmark
from tasks.config.job import DataRevision, Job
from tasks.run.coverage import CoverageCell
from tests.kit import REVISION, Rows, at, combined, job_on, written
from tests.tasks.compare.comparisons import RUBRICS, judged, tasks_of
from warehouse import Warehouse


@pytest.fixture
def job(tmp_path) -> Job:
    """A job on made-up tasks."""
    settings = {
        "models": [{"name": "x/m", "label": "m"}],
        "judges": [{"name": "x/j", "label": "j"}],
        "trials": 2,
        "limits": {"max_usd": 4},
    }
    job = job_on(
        "sample",
        tmp_path / "data",
        run_id="r1",
        **settings,
    )
    return job.looking_up(lambda: data_on(("finance",)))


def data_on(splits: tuple[str, ...]) -> DataRevision:
    return DataRevision(
        name="made up",
        revision=REVISION,
        splits=splits,
    )


def store(job: Job, outcome: str, **values: Any):
    """Publish the row of a run."""
    warehouse = Warehouse(job.warehouse)
    ended_at = None if outcome == RUNNING else at(90)
    row = run_row(
        job,
        [],
        at(0),
        ended_at,
        RUNNING,
    )
    warehouse.write("runs", [row | {"outcome": outcome} | values])
    warehouse.publish()


def live(job: Job) -> dict[str, Any]:
    return LiveView(job, job.report_index).now()


def test_a_folder_without_anything_has_no_run(job):
    page = live(job)

    assert page["runs"] == []
    assert page["last"] is None
    assert page["trouble"] is None
    assert page["headline"] == "No run is in progress, and no run is stored here yet."
    assert page["published"] == "Nothing is published yet."
    assert not job.warehouse.exists()


@pytest.mark.parametrize(
    ("record", "trouble"),
    [
        ({}, "prbench ingest"),
        (
            {"config": json.dumps({"models": "of another time"})},
            "another version of prbench wrote its record",
        ),
    ],
)
def test_a_run_without_known_coverage_is_shown_with_the_reason(job, record, trouble):
    with Warehouse(job.warehouse).living("r1"):
        store(job, RUNNING, **record)
        [run] = live(job)["runs"]

    assert run["state"].run_id == "r1"
    assert trouble in run["state"].trouble


def running_in(page: dict[str, Any]) -> list[str]:
    """The ids of the runs in progress."""
    return [run["state"].run_id for run in page["runs"]]


def test_runs_go_on_are_killed_and_end_while_the_database_is_replaced_below_the_view(
    job,
):
    view = LiveView(job, job.report_index)
    second_job = job.model_copy(update={"run_id": "r2"})
    warehouse = written(job.warehouse, tasks_of(RUBRICS))
    with warehouse.living("r2"):
        with warehouse.living("r1"):
            store(job, RUNNING)
            store(second_job, RUNNING)
            both_running = view.now()
        first_killed = view.now()
        store(second_job, DONE)
        both_ended = view.now()

    assert running_in(both_running) == ["r1", "r2"]
    assert both_running["last"] is None
    assert running_in(first_killed) == ["r2"]
    assert first_killed["last"]["state"].run_id == "r1"
    assert first_killed["last"]["state"].outcome == KILLED
    assert running_in(both_ended) == []
    last_run = view.now()["last"]["state"]
    assert last_run.run_id == "r2"
    assert last_run.outcome == DONE


def test_a_run_has_the_coverage_of_what_it_wants_itself_under_its_own_cap(job):
    written(job.warehouse, tasks_of(RUBRICS))
    limited = job.model_copy(update={"limit": 2})
    with Warehouse(job.warehouse).living("r1"):
        store(limited, RUNNING)
        [run] = live(job)["runs"]

    state = run["state"]
    assert [(cell.judge, cell.trial, cell.due) for cell in state.cells] == [
        (None, 1, 2),
        (None, 2, 2),
        ("j", 1, 6),
        ("j", 2, 6),
    ]
    assert {cell.model for cell in state.cells} == {"m"}
    assert {cell.done for cell in state.cells} == {0}
    assert state.job.settings.limits.max_usd == 4


@pytest.mark.parametrize(
    ("viewed_splits", "run_splits", "splits"),
    [
        ([], ["finance"], ("finance",)),
        (["finance"], ["legal", "finance"], ("legal", "finance")),
        ([], [], ("all",)),
    ],
)
def test_the_data_of_a_run_on_other_splits_is_known(
    tmp_path,
    viewed_splits,
    run_splits,
    splits,
):
    dataset = {"source": "a-folder-that-is-not-there"}
    viewed_job = job_on(
        "sample", tmp_path, dataset=dataset | {"splits": viewed_splits}
    )
    viewed_job = viewed_job.looking_up(
        lambda: data_on(tuple(viewed_splits) or ("all",))
    )
    run_job = job_on("sample", tmp_path, dataset=dataset | {"splits": run_splits})

    data = job_of_run(viewed_job, run_row(run_job, [], at(0), None, RUNNING)).data

    assert data.revision == REVISION
    assert data.splits == splits


def test_the_record_of_a_run_gives_back_its_job(job):
    narrowed = {
        "limit": 2,
        "vintage": "v",
        "named_models": ("m",),
        "named_tasks": ("t1", "t2"),
        "named_trials": (1,),
    }
    narrowed_job = job.model_copy(update={**narrowed, "night": "2026-11-23"})

    restored = job_of_run(job, run_row(narrowed_job, [], at(0), None, RUNNING))

    for name in (*narrowed, "night", "settings", "run_id", "warehouse"):
        assert getattr(restored, name) == getattr(narrowed_job, name), name
    run = run_row(
        job,
        [],
        at(0),
        None,
        RUNNING,
    )
    assert "selection" not in json.loads(run["config"])


NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
PRBENCH = load_benchmark("prbench")
CELL = CoverageCell("a", "base", 1, None, None, 200, 200, 120)
ROW = {
    "started_at": NOW - timedelta(hours=1, minutes=2),
    "ended_at": None,
    "command": "prbench run",
    "night": None,
}


CALL = {
    "purpose": "sample",
    "called_model": "x/a",
    "calls": 130,
    "failed_calls": 7,
    "unpriced_calls": 2,
    "cost_usd": 1.5,
}


def test_a_run_says_what_is_done_and_what_it_cost_under_which_cap(tmp_path):
    job = job_on(
        "sample",
        tmp_path,
        limits={"max_usd": 5.0},
    )
    run = RunState(
        "r1",
        row=ROW,
        job=job,
        cells=[CELL],
        calls=[CALL],
    )

    texts = run_texts(run, NOW, PRBENCH)

    assert texts["facts"] == [
        (
            "Coverage",
            "60.0%",
            "120 of 200 responses and verdicts, those of earlier runs included",
        ),
        ("Cost so far", "$1.50", "cap $5.00, 2 calls of unknown price"),
        ("Time", "1:02:00", "started 2026-11-23 10:58 UTC"),
    ]
    coverage, calls = texts["figures"]
    assert coverage.figure.name == "status-r1"
    assert coverage.n_rows == 1
    assert calls.figure.name == "calls-r1"
    assert calls.n_rows == 1


def test_a_run_that_ended_has_its_outcome():
    row = ROW | {"ended_at": NOW - timedelta(seconds=75)}

    texts = run_texts(
        RunState("r1", "stopped_at_budget", row),
        NOW,
        PRBENCH,
    )

    assert texts["outcome"] == "Stopped at the budget (0:01:15 ago)"
    assert texts["level"] == "warn"


def test_the_page_links_to_a_report_if_there_is_one(job):
    assert not live(job)["has_report"]

    job.report_index.parent.mkdir(parents=True)
    job.report_index.touch()

    assert live(job)["has_report"]


SMALL_RUBRICS = {
    f"t{n}": [(4, "Accuracy"), (n + 1, "Risk"), (3, "Clarity")] for n in range(7)
}


def judged_rows(model: str, n_tasks: int) -> Rows:
    decisions = {f"t{n}": [1, n % 2, n % 3 == 0] for n in range(n_tasks)}
    return judged(decisions, model, rubrics=SMALL_RUBRICS)


def ranking(job: Job) -> list[dict[str, Any]]:
    """The columns of the ranking that the page shows."""
    names = [column.name for column in RANKING.columns]
    with Warehouse(job.warehouse).reader() as reader:
        rows = ranking_so_far(job, reader)
    return [dict(zip(names, itemgetter(*names)(row), strict=True)) for row in rows]


def test_intervals_of_values_that_have_none_stored_are_those_that_aggregate_would_store(
    job,
):
    rows = combined(
        tasks_of(SMALL_RUBRICS),
        judged_rows("a", 7),
        judged_rows("few", 2),
    )
    written(job.warehouse, rows).publish()

    fresh_ranking = ranking(job)
    aggregate(job)

    assert fresh_ranking == ranking(job)
    complete, partial = fresh_ranking
    assert complete["model"] == "a"
    assert complete["n_tasks"] == 7
    assert complete["ci_low"] is not None
    assert partial["model"] == "few"
    assert partial["n_tasks"] == 2
    assert partial["n_tasks_wanted"] == 7
    assert partial["ci_low"] is None
