"""A changed verdict makes its measures stale, and only they are computed again."""

import shutil
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

from tasks.aggregate import aggregate
from tests.kit import Row, Rows, aggregated, job_on, rows_in
from tests.tasks.aggregate.world import EVERY_ROW, MAJORITIES, figures_of, random_world
from tests.tasks.certify.checker import ALL, JUDGE_CONFIG, Figures
from tests.warehouse.parts import forget_parts
from warehouse import Reader, Warehouse
from warehouse.files import has_damage, read_sealed, write_sealed
from warehouse.parts import LIST

pytestmark = pytest.mark.slow
ENDS = ("ci_low", "ci_high", "met_ci_low", "met_ci_high", "raw_ci_low", "raw_ci_high")
MEASURED = (*ENDS, "is_small", "trials_mean", "trials_ci_low", "trials_ci_high")
Table = dict[Any, dict[str, Any]]


@pytest.fixture(scope="module")
def leaderboard_rows(figures: Figures, reader: Reader) -> Table:
    return {figures.about(row): row for row in reader.rows(EVERY_ROW)}


@pytest.fixture
def copied(root: Path, tmp_path) -> Path:
    """A copy of the warehouse, which a test may change."""
    return Path(shutil.copytree(root, tmp_path / "copied"))


def aggregated_again(folder: Path) -> str:
    """Recompute what changed, and return the stage's line."""
    return aggregate(job_on("sample", folder, majorities=MAJORITIES)).line


def published_rows(figures: Figures, folder: Path) -> Table:
    Warehouse(folder).publish()
    return {figures.about(row): row for row in rows_in(folder, EVERY_ROW)}


def changed_figures(
    rows: Table,
    rows_before: Table,
    names: tuple[str, ...] = MEASURED,
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


def test_a_rebuilt_database_has_the_same_intervals(figures, copied, leaderboard_rows):
    (copied / "prbench.duckdb").unlink()

    assert changed_figures(published_rows(figures, copied), leaderboard_rows) == []


def decided_at_last(world: Rows, figures: Figures) -> Row:
    """A failed verdict that was the only undecided one of a task, as decided."""
    nearly_complete = set()
    for run, task_set, label, score in figures.all_rows():
        if label != ALL:
            continue
        for task_id, trials in figures.known(run, task_set, label, score).items():
            n_undecided = sum(
                response.n_criteria - response.n_decided for response in trials.values()
            )
            if n_undecided == 1:
                nearly_complete.add((run.model, run.vintage, *run[3:], task_id))
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
    without_measures = dict.fromkeys(touched, dict.fromkeys(MEASURED))
    assert changed_figures(stale_rows, leaderboard_rows | without_measures) == []
    assert f" {len(touched)} intervals computed" in line
    for key in touched:
        assert changed.compared(fresh_rows[key])[1] == []
    touched_rows = {key: fresh_rows[key] for key in touched}
    assert changed_figures(fresh_rows, leaderboard_rows | touched_rows) == []


def figures_with(seed: int, root: Path, folder: Path, monkeypatch) -> list[list[Row]]:
    """The figures of shuffled rows, computed with as many threads as the seed says."""
    connect = duckdb.connect

    def connect_with_threads(*args, config=None, **options):
        return connect(*args, config=(config or {}) | {"threads": seed}, **options)

    with monkeypatch.context() as patched:
        patched.setattr(duckdb, "connect", connect_with_threads)
        with Warehouse(root).reader() as reader:  # later readers have the same database
            reader.rows(f"set threads = {seed}")
        rows = {
            name: Random(seed).sample(table_rows, len(table_rows))
            for name, table_rows in random_world(seed=3, n_tasks=12).items()
        }
        aggregated(folder, rows)
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


def test_the_order_of_rows_and_threads_changes_no_last_digit_of_figures(
    root,
    tmp_path,
    monkeypatch,
):
    with_four_threads = figures_with(4, root, tmp_path / "four", monkeypatch)
    with_one_thread = figures_with(1, root, tmp_path / "one", monkeypatch)

    assert with_one_thread == with_four_threads


@pytest.fixture
def old_root(copied: Path) -> Path:
    """A warehouse of November 2026, when measures were in the table `intervals`, of which two rows
    are lost.
    """
    forget_parts(Warehouse(copied))
    intervals = copied / "parts" / "intervals"
    (copied / "parts" / "measures").rename(intervals)
    Warehouse(copied).publish()
    listing = read_sealed(copied / "parts" / LIST)
    listing["parts"]["intervals"] = [part.name for part in intervals.glob("*.parquet")]
    listing["kinds"].append(["intervals", None, None, None, None, None, 7, 9])
    write_sealed(copied / "parts" / LIST, listing)
    return copied


def test_a_table_of_november_is_not_missed(old_root):
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
