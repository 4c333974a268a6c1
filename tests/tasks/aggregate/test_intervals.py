"""Stored intervals: only stale ones are computed again, and order, threads and an older version of
the warehouse make no difference.
"""

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

from tasks.aggregate import aggregate
from tests.kit import Row, Rows, aggregated, job_on, rows_in
from tests.tasks.aggregate.world import EVERY_ROW, RESAMPLES, figures_of, random_world
from tests.tasks.certify.checker import ALL, JUDGE_CONFIG, Figures
from tests.tasks.report.synthetic.resamples import few_resamples
from tests.warehouse.parts import forget_parts
from warehouse import Warehouse
from warehouse.files import has_damage, read_sealed, write_sealed
from warehouse.parts import LIST

pytestmark = pytest.mark.slow
ENDS = ("ci_low", "ci_high", "met_ci_low", "met_ci_high", "raw_ci_low", "raw_ci_high")
MEASURED = (*ENDS, "is_small", "trials_mean", "trials_ci_low", "trials_ci_high")
Table = dict[Any, dict[str, Any]]


@pytest.fixture(scope="module", autouse=True)
def _few_resamples() -> Iterator[None]:
    with few_resamples(RESAMPLES):
        yield


@pytest.fixture(scope="module")
def world() -> Rows:
    """A world of few tasks: its warehouse is computed in seconds."""
    return random_world(seed=3, n_tasks=12)


@pytest.fixture(scope="module")
def figures(world: Rows) -> Figures:
    return figures_of(world)


@pytest.fixture(scope="module")
def root(world: Rows, tmp_path_factory) -> Path:
    return aggregated(tmp_path_factory.mktemp("intervals"), world).root


@pytest.fixture(scope="module")
def leaderboard_rows(figures: Figures, root: Path) -> Table:
    return published_rows(figures, root)


@pytest.fixture
def copied(root: Path, tmp_path) -> Path:
    """A copy of the warehouse, which a test may change."""
    return Path(shutil.copytree(root, tmp_path / "copied"))


def aggregated_again(folder: Path) -> str:
    """Recompute what changed, and return the stage's line."""
    return aggregate(job_on("sample", folder)).line


def published_rows(figures: Figures, folder: Path) -> Table:
    Warehouse(folder).publish()
    return {figures.about(row): row for row in rows_in(folder, EVERY_ROW)}


def changed_figures(
    rows: Table, rows_before: Table, names: tuple[str, ...] = MEASURED
) -> list[tuple[Any, str]]:
    return [
        (key, name)
        for key, row in rows.items()
        for name in names
        if row[name] != rows_before[key][name]
    ]


def test_aggregating_again_computes_no_interval_and_writes_no_part(copied):
    parts = sorted((copied / "parts").rglob("*.parquet"))

    line = aggregated_again(copied)

    assert "0 intervals computed" in line
    assert sorted((copied / "parts").rglob("*.parquet")) == parts


def decided_at_last(world: Rows, figures: Figures) -> Row:
    """A copy of a failed verdict, now decided; it was the last undecided one of its task."""
    nearly_complete = set()
    for run, task_set, label, score in figures.all_rows():
        if label != ALL:
            continue
        for task_id, trials in figures.known(run, task_set, label, score).items():
            n_undecided = sum(
                response.n_criteria - response.n_decided
                for response in trials.values()
            )
            if n_undecided == 1:
                judge_config = [getattr(run, name) for name in JUDGE_CONFIG]
                nearly_complete.add((run.model, run.vintage, *judge_config, task_id))
    for verdict in world["verdicts"]:
        cell = tuple(
            verdict[name] for name in ("model", "vintage", *JUDGE_CONFIG, "task_id")
        )
        if (
            verdict["value"] is None
            and verdict["grading"] == "binary"
            and cell in nearly_complete
        ):
            return verdict | {"value": 1.0, "status": "met"}
    raise AssertionError("the world has no such verdict")


def test_a_changed_verdict_renews_figures(world, figures, copied, leaderboard_rows):
    decided = decided_at_last(world, figures)
    verdicts = {
        verdict["verdict_id"]: verdict for verdict in (*world["verdicts"], decided)
    }
    changed = figures_of({**world, "verdicts": list(verdicts.values())})
    touched = [
        key
        for key in leaderboard_rows
        if figures.of_tasks(*key) != changed.of_tasks(*key)
    ]

    Warehouse(copied).write("verdicts", [decided])
    stale_rows = published_rows(figures, copied)
    line = aggregated_again(copied)
    fresh_rows = published_rows(figures, copied)

    assert 0 < len(touched) < len(leaderboard_rows) / 2
    no_measures = dict.fromkeys(MEASURED)  # None for each
    rows_without_measures = dict.fromkeys(touched, no_measures)
    assert changed_figures(stale_rows, leaderboard_rows | rows_without_measures) == []
    assert f" {len(touched)} intervals computed" in line
    for key in touched:
        _, differences = changed.compared(fresh_rows[key])
        assert differences == []
    # The other rows have not changed.
    touched_rows = {key: fresh_rows[key] for key in touched}
    assert changed_figures(fresh_rows, leaderboard_rows | touched_rows) == []


def sorted_figures(folder: Path) -> list[list[Row]]:
    return [
        rows_in(folder, f"{query} order by all")
        for query in (
            "from leaderboard",
            "from trial_scores",
            "from criterion_statistics",
            "from length_correlations",
            "select * exclude (created_at) from measures",
        )
    ]


def set_threads(root: Path, n_threads: int):
    """Set the threads of readers, which share one database in memory."""
    with Warehouse(root).reader() as reader:
        reader.rows(f"set threads = {n_threads}")


def test_the_order_of_rows_and_threads_changes_no_last_digit_of_figures(
    world, root, tmp_path, monkeypatch
):
    connect = duckdb.connect

    def connect_with_four_threads(*args, config=None, **options):
        return connect(*args, config=(config or {}) | {"threads": 4}, **options)

    shuffled = {
        name: Random(4).sample(table_rows, len(table_rows))
        for name, table_rows in world.items()
    }

    with monkeypatch.context() as patched:
        patched.setattr(duckdb, "connect", connect_with_four_threads)
        set_threads(root, 4)
        try:
            aggregated(tmp_path, shuffled)
        finally:
            set_threads(root, 1)

    assert sorted_figures(tmp_path) == sorted_figures(root)


@pytest.fixture
def old_root(copied: Path) -> Path:
    """A warehouse of November 2026, when measures were in the table `intervals`; its list states 7
    rows of that table, and expects 9.
    """
    forget_parts(Warehouse(copied))
    intervals = copied / "parts" / "intervals"
    (copied / "parts" / "measures").rename(intervals)
    Warehouse(copied).publish()
    listing = read_sealed(copied / "parts" / LIST)
    listing["parts"]["intervals"] = [
        part.name for part in intervals.glob("*.parquet")
    ]
    listing["kinds"].append(["intervals", None, None, None, None, None, 7, 9])
    write_sealed(copied / "parts" / LIST, listing)
    return copied


def test_a_table_of_november_that_lacks_rows_is_no_damage(old_root):
    assert Warehouse(old_root).damage() == []
    assert Warehouse(old_root).losses() == []
    assert not has_damage()


def test_measures_of_november_are_recomputed(figures, old_root, leaderboard_rows):
    rows_before = published_rows(figures, old_root)

    aggregated_again(old_root)

    assert {row["ci_low"] for row in rows_before.values()} == {None}
    rows = published_rows(figures, old_root)
    assert changed_figures(rows, leaderboard_rows, ENDS) == []
    assert not Warehouse(old_root).is_damaged()
