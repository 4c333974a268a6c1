"""The content of the live page before the first publishing, during runs, and after them."""

import json
from collections import Counter
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from flows.report_server.live import RANKING, LiveView, RunState, ranking_so_far, run_texts
from flows.run.outcomes import DONE, RUNNING
from flows.run.record import job_of_run, run_row
from tasks.aggregate import aggregate
from tasks.benchmarks import load_benchmark
from tasks.config.job import DataRevision, Job
from tasks.run.coverage import CoverageCell
from tests.kit import REVISION, Rows, at, combined, job_on, written
from tests.tasks.compare.comparisons import RUBRICS, judged, tasks_of
from warehouse import Warehouse


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A job on made-up tasks."""
    models, judges = ([{"name": f"x/{label}", "label": label}] for label in "mj")
    settings = {
        "models": models,
        "judges": judges,
        "trials": 2,
        "limits": {"max_usd": 4},
    }
    job = job_on("sample", tmp_path / "data", run_id="r1", **settings)
    return job.looking_up(
        lambda: DataRevision(
            name="made up",
            revision=REVISION,
            splits=("finance",),
        )
    )


def store(job: Job, outcome: str, **values: Any) -> None:
    """Publish the row of a run."""
    warehouse = Warehouse(job.warehouse)
    ended_at = None if outcome == RUNNING else at(90)
    warehouse.write(
        "runs", [run_row(job, [], at(0), ended_at, RUNNING) | {"outcome": outcome} | values]
    )
    warehouse.publish()


def live(job: Job) -> dict[str, Any]:
    return LiveView(job, job.report_index).now()


def test_a_folder_without_anything_has_no_run(job: Job) -> None:
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
def test_a_run_without_known_coverage_is_shown_with_the_reason(
    job: Job, record: dict[str, str], trouble: str
) -> None:
    with Warehouse(job.warehouse).living("r1"):
        store(job, RUNNING, **record)
        (run,) = (each["state"] for each in live(job)["runs"])

    assert run.run_id == "r1"
    assert trouble in (run.trouble or "")


def state(view: LiveView) -> tuple[list[str], tuple[str, str | None] | None]:
    """The runs in progress, and the last one with its outcome."""
    page = view.now()
    last = page["last"] and page["last"]["state"]
    return [run["state"].run_id for run in page["runs"]], last and (last.run_id, last.outcome)


def test_runs_go_on_are_killed_and_end_while_the_database_is_replaced_below_the_view(
    job: Job,
) -> None:
    view = LiveView(job, job.report_index)
    other = job.model_copy(update={"run_id": "r2"})
    warehouse = Warehouse(job.warehouse)
    written(job.warehouse, tasks_of(RUBRICS))
    with ExitStack() as second:
        second.enter_context(warehouse.living("r2"))
        with warehouse.living("r1"):
            store(job, RUNNING)
            store(other, RUNNING)
            assert state(view) == (["r1", "r2"], None)
        assert state(view) == (["r2"], ("r1", "killed"))
        store(other, DONE)
        assert view.now()["runs"] == []
    assert state(view) == ([], ("r2", DONE))


def test_a_run_has_the_coverage_of_what_it_wants_itself_under_its_own_cap(job: Job) -> None:
    written(job.warehouse, tasks_of(RUBRICS))
    limited = job.model_copy(update={"limit": 2})
    with Warehouse(job.warehouse).living("r1"):
        store(limited, RUNNING)
        (run,) = (each["state"] for each in live(job)["runs"])

    cells = [(cell.judge, cell.model, cell.trial, cell.due, cell.done) for cell in run.cells]
    assert [
        (judge, "m", trial, due, 0) for judge, due in ((None, 2), ("j", 4 + 2)) for trial in (1, 2)
    ] == cells
    assert run.job is not None
    assert run.job.settings.limits.max_usd == 4


@pytest.mark.parametrize(
    ("served", "of_run"), [([], ["finance"]), (["finance"], ["legal", "finance"]), ([], [])]
)
def test_the_data_of_a_run_on_other_splits_is_known(
    tmp_path: Path, served: list[str], of_run: list[str]
) -> None:
    def on(splits: list[str]) -> Job:
        return job_on(
            "sample", tmp_path, dataset={"source": "a-folder-that-is-not-there", "splits": splits}
        )

    viewer = on(served).looking_up(
        lambda: DataRevision(
            name="n",
            revision=REVISION,
            splits=tuple(served) or ("all",),
        )
    )

    data = job_of_run(viewer, run_row(on(of_run), [], at(0), None, RUNNING)).data

    assert data.revision == REVISION
    assert (tuple(of_run) or ("all",)) == data.splits


def test_the_record_of_a_run_gives_back_its_job(job: Job) -> None:
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
        assert getattr(narrowed_job, name) == getattr(restored, name), name
    assert "selection" not in json.loads(run_row(job, [], at(0), None, RUNNING)["config"])


NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
PRBENCH = load_benchmark("prbench")
CELL = CoverageCell(
    "a", "base", 1, None, None, 200, 200, 120, failures=Counter(timeout=3, refused=1)
)
ROW = {
    "started_at": NOW - timedelta(hours=1, minutes=2),
    "ended_at": None,
    "command": "prbench run",
    "night": None,
}


def run(**values: Any) -> RunState:
    return RunState("r1", **{"row": ROW, **values})


def facts(shown: dict[str, Any]) -> dict[str, tuple[str, str]]:
    return {name: (value, beside) for name, value, beside in shown["facts"]}


def test_a_run_says_what_is_done_and_what_it_cost_under_which_cap(tmp_path: Path) -> None:
    calls = [
        {
            "purpose": "sample",
            "called_model": "x/a",
            "calls": 130,
            "failed_calls": 7,
            "unpriced_calls": 2,
            "cost_usd": 1.5,
        }
    ]
    going = run(
        cells=[CELL],
        calls=calls,
        job=job_on("sample", tmp_path, limits={"max_usd": 5.0}),
    )

    shown = run_texts(going, NOW, PRBENCH)

    assert facts(shown) == {
        "Coverage": ("60.0%", "120 of 200 responses and verdicts, those of earlier runs included"),
        "Cost so far": ("$1.50", "cap $5.00, 2 calls of unknown price"),
        "Time": ("1:02:00", "started 2026-11-23 10:58 UTC"),
    }
    coverage, of_calls = shown["figures"]
    assert [(each.figure.name, each.n_rows) for each in (coverage, of_calls)] == [
        ("status-r1", 1),
        ("calls-r1", 1),
    ]


def test_a_run_that_ended_has_its_outcome() -> None:
    ended = run(outcome="stopped_at_budget", row=ROW | {"ended_at": NOW - timedelta(seconds=75)})

    shown = run_texts(ended, NOW, PRBENCH)

    assert shown["outcome"] == "Stopped at the budget (0:01:15 ago)"
    assert shown["level"] == "warn"


def test_the_page_links_to_a_report_if_there_is_one(job: Job) -> None:
    assert not live(job)["has_report"]

    job.report_index.parent.mkdir(parents=True)
    job.report_index.touch()

    assert live(job)["has_report"]


SMALL_RUBRICS = {f"t{n}": [(4, "Accuracy"), (n + 1, "Risk"), (3, "Clarity")] for n in range(7)}


def judged_rows(model: str, n_tasks: int) -> Rows:
    return judged(
        {f"t{n}": [1, n % 2, n % 3 == 0] for n in range(n_tasks)}, model, rubrics=SMALL_RUBRICS
    )


def shown(job: Job, warehouse: Warehouse) -> list[dict[str, Any]]:
    with warehouse.reader() as reader:
        return [
            {each.name: row[each.name] for each in RANKING.columns}
            for row in ranking_so_far(job, reader)
        ]


def test_intervals_of_values_that_have_none_stored_are_those_that_aggregate_would_store(
    job: Job,
) -> None:
    warehouse = written(
        job.warehouse, combined(tasks_of(SMALL_RUBRICS), judged_rows("a", 7), judged_rows("few", 2))
    )
    warehouse.publish()
    before = shown(job, warehouse)
    aggregate(job)

    assert [(row["model"], row["n_tasks"], row["n_tasks_wanted"]) for row in before] == [
        ("a", 7, 7),
        ("few", 2, 7),
    ]
    assert before[0]["ci_low"] is not None
    assert before[1]["ci_low"] is None
    assert before == shown(job, warehouse)
