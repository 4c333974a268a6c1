"""A changed verdict makes its measures stale, and only they are computed again."""

import shutil
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pytest

from tasks.aggregate import aggregate
from tests.kit import Patch, Rows, aggregated, job_on, rows_in
from tests.tasks.aggregate.world import EVERY_ROW, MAJORITIES, figures_of, random_world
from tests.tasks.certify.checker import ALL, Figures
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
def copied(root: Path, tmp_path: Path) -> Path:
    """A copy of the warehouse, which a test may change."""
    return Path(shutil.copytree(root, tmp_path / "copied"))


def published_rows(figures: Figures, folder: Path) -> Table:
    Warehouse(folder).publish()
    return {figures.about(row): row for row in rows_in(folder, EVERY_ROW)}


def other_in(
    rows: Table, before: Table, names: tuple[str, ...] = MEASURED
) -> list[tuple[Any, str]]:
    return [
        (about, name)
        for about, row in rows.items()
        for name in names
        if row[name] != before[about][name]
    ]


def test_aggregating_again_draws_nothing_nor_a_rebuild(
    figures: Figures, copied: Path, leaderboard_rows: Table
) -> None:
    before = sorted((copied / "parts").rglob("*.parquet"))
    report = aggregate(job_on("sample", copied, majorities=MAJORITIES))

    assert "0 intervals computed" in report.line
    assert before == sorted((copied / "parts").rglob("*.parquet"))
    (copied / "prbench.duckdb").unlink()
    assert other_in(published_rows(figures, copied), leaderboard_rows) == []


def decided_at_last(world: Rows, figures: Figures) -> dict[str, Any]:
    """A failed verdict that was the only undecided one of a task, as decided."""
    kept_out = {
        (run[0], run[2], *run[3:4], *run[6:], task)
        for run, task_set, label, score in figures.all_rows()
        if label == ALL
        for task, trials in figures.known(run, task_set, label, score).items()
        if sum(n_wanted - n_decided for *_, n_decided, n_wanted in trials.values()) == 1
    }
    return next(
        each | {"value": 1.0, "status": "met"}
        for each in world["verdicts"]
        if each["value"] is None
        and each["grading"] == "binary"
        and tuple(
            each[name]
            for name in ("model", "vintage", "judge", "grading", "judge_trial", "task_id")
        )
        in kept_out
    )


def test_a_changed_verdict_renews_figures(
    world: Rows, figures: Figures, copied: Path, leaderboard_rows: Table
) -> None:
    again = decided_at_last(world, figures)
    verdicts = {each["verdict_id"]: each for each in (*world["verdicts"], again)}
    changed = figures_of({**world, "verdicts": [*verdicts.values()]})
    touched = {
        about for about in leaderboard_rows if figures.of_tasks(*about) != changed.of_tasks(*about)
    }
    Warehouse(copied).write("verdicts", [again])
    stale = published_rows(figures, copied)

    assert 0 < len(touched) < len(leaderboard_rows) / 2
    assert other_in(stale, leaderboard_rows | dict.fromkeys(touched, dict.fromkeys(MEASURED))) == []

    report = aggregate(job_on("sample", copied, majorities=MAJORITIES))
    fresh = published_rows(figures, copied)

    assert f" {len(touched)} intervals computed" in report.line
    assert [wrong for about in touched for wrong in changed.compared(fresh[about])[1]] == []
    assert other_in(fresh, leaderboard_rows | {about: fresh[about] for about in touched}) == []


def with_threads(
    connect: Any, n_threads: int, *given: Any, config: dict[str, Any] | None = None, **more: Any
) -> Any:
    return connect(*given, config=(config or {}) | {"threads": n_threads}, **more)


def test_the_order_of_rows_and_threads_changes_no_last_digit_of_figures(
    copied: Path, tmp_path: Path, monkeypatch: Patch
) -> None:
    world = random_world(seed=3, n_tasks=12)
    figures = []
    connect = duckdb.connect
    for seed in (4, 1):
        monkeypatch.setattr(duckdb, "connect", partial(with_threads, connect, seed))
        with Warehouse(
            copied
        ).reader() as reader:  # readers share their database, so the next ones have as many
            reader.rows(f"set threads = {seed}")
        folder = tmp_path / str(seed)
        rows = {
            name: Random(seed).sample(of_table, len(of_table)) for name, of_table in world.items()
        }
        aggregated(folder, rows)
        figures.append(
            [
                rows_in(folder, f"{query} order by all")
                for query in (
                    "from leaderboard",
                    "from trial_scores",
                    "from criterion_statistics",
                    "from length_correlations",
                    "select * exclude (created_at) from measures",
                )
            ]
        )
    assert figures[0] == figures[1]


def test_measures_of_november_are_recomputed(
    figures: Figures, copied: Path, leaderboard_rows: Table
) -> None:
    warehouse = Warehouse(copied)
    forget_parts(warehouse)
    (copied / "parts" / "measures").rename(copied / "parts" / "intervals")
    Warehouse(copied).publish()
    path = copied / "parts" / LIST
    listing = read_sealed(path)
    listing["parts"]["intervals"] = [
        part.name for part in (copied / "parts" / "intervals").glob("*.parquet")
    ]
    write_sealed(path, {**listing, "kinds": [*listing["kinds"], ["intervals", *[None] * 5, 7, 9]]})

    assert {row["ci_low"] for row in published_rows(figures, copied).values()} == {None}
    assert warehouse.damage() == []
    assert warehouse.losses() == []
    aggregate(job_on("sample", copied, majorities=MAJORITIES))
    assert other_in(published_rows(figures, copied), leaderboard_rows, ENDS) == []
    assert warehouse.damage() == []
    assert warehouse.losses() == []
    assert not has_damage()
