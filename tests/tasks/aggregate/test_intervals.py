"""Intervals of whole task sets against the rules called on exact values, and what a changed verdict makes stale."""

import shutil
from collections import Counter
from collections.abc import Iterable
from fractions import Fraction
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from tasks.aggregate import aggregate
from tasks.rules.statistics.intervals import (
    FEWEST_OTHERS,
    draws,
    mean_intervals,
    ratio_intervals,
)
from tests.kit import aggregated, differing, job_on
from tests.tasks.aggregate.breakdowns_oracle import EVERY_ROW, TASK_SETS, Key, Oracle, World, breakdowns_world, rows_of
from tests.warehouse.parts import forget_parts
from warehouse import Reader, Warehouse
from warehouse.files import has_damage, read_sealed, write_sealed
from warehouse.listing import LIST

TOLERANCE = 1e-6
ENDS = ("ci_low", "ci_high", "met_ci_low", "met_ci_high")
RAW = ("raw_ci_low", "raw_ci_high")
DRAWN = (*ENDS, *RAW, "is_small", "trials_mean", "trials_ci_low", "trials_ci_high")
Table = dict[Key, dict[str, Any]]


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return Oracle(breakdowns_world(seed=20260302, n_tasks=54))


@pytest.fixture(scope="module")
def root(oracle: Oracle, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The aggregated warehouse, which no test changes."""
    folder = tmp_path_factory.mktemp("intervals") / "warehouse"
    aggregated(folder, rows_of(oracle.world))
    return folder


@pytest.fixture(scope="module")
def leaderboard_rows(root: Path) -> Table:
    with Warehouse(root).reader() as reader:
        return table_of(reader)


@pytest.fixture(scope="module")
def wanted(oracle: Oracle) -> Table:
    return intervals_of(oracle)


@pytest.fixture
def copied(root: Path, tmp_path: Path) -> Path:
    """A copy of the warehouse, to change."""
    return Path(shutil.copytree(root, tmp_path / "copied"))


def table_of(reader: Reader) -> Table:
    rows = reader.rows(EVERY_ROW)
    return {(row["split"], row["model"], row["breakdown"], row["label"], row["score_name"]): row for row in rows}


def published_rows(folder: Path) -> Table:
    warehouse = Warehouse(folder)
    warehouse.publish()
    with warehouse.reader() as reader:
        return table_of(reader)


def intervals_of(oracle: Oracle) -> Table:
    """The ends of every figure's intervals, each label's figures in one call, from the draws of the whole task set."""
    found: Table = {}
    for task_set in TASK_SETS:
        places = {task: place for place, task in enumerate(oracle.tasks_on(task_set))}
        drawn = draws(len(places)).astype(np.float64)
        keys = sorted((key for key in oracle.all_keys if key[0] == task_set), key=lambda key: key[2:4])
        for _, run in groupby(keys, key=lambda key: key[2:4]):
            figures = list(run)
            values = np.full((len(places), len(figures)), np.nan)
            met, judged = np.zeros(values.shape), np.zeros(values.shape)
            for column, key in enumerate(figures):
                for task, value in oracle.task_values(key).items():
                    values[places[task], column] = float(value)
                for task, counts in oracle.met_of(key).items():
                    met[places[task], column], judged[places[task], column] = counts
            means, shares = mean_intervals(values, drawn=drawn), ratio_intervals(met, judged, drawn=drawn)
            for key, of_mean, of_share in zip(figures, means, shares, strict=True):
                ends = [None if np.isnan(end) else float(end) for end in (*of_mean, *of_share)]
                raw = dict(zip(RAW, ends[:2], strict=True))
                if key[-1] == "score":
                    ends[:2] = [end if end is None else max(0.0, end) for end in ends[:2]]
                found[key] = dict(zip(ENDS, ends, strict=True)) | raw
    return found


def test_every_interval_is_that_of_the_rules_on_draws_of_the_whole_set(wanted: Table, leaderboard_rows: Table) -> None:
    assert sorted(wanted) == sorted(leaderboard_rows)
    assert [] == differing(wanted, leaderboard_rows, TOLERANCE)


def test_a_figure_with_too_few_tasks_that_differ_has_no_interval_and_any_other_has_one(
    oracle: Oracle, leaderboard_rows: Table
) -> None:
    n_others = {key: _n_others(oracle.task_values(key).values()) for key in leaderboard_rows}
    assert {True, False} == {number < FEWEST_OTHERS for number in n_others.values()}
    assert [] == [
        (key, row["n_tasks"], n_others[key])
        for key, row in leaderboard_rows.items()
        if (n_others[key] >= FEWEST_OTHERS) != (row["ci_low"] is not None)
    ]


def _n_others(values: Iterable[Fraction]) -> int:
    """Return the number of values that differ from the commonest one."""
    counts = Counter(values)
    return counts.total() - max(counts.values(), default=0)


def test_aggregating_again_draws_nothing(copied: Path) -> None:
    before = sorted((copied / "parts").rglob("*.parquet"))
    report = aggregate(job_on("sample", copied))

    assert "0 intervals computed" in report.line
    assert before == sorted((copied / "parts").rglob("*.parquet"))


def test_building_the_same_rows_from_the_parts_alone_makes_nothing_stale(copied: Path, leaderboard_rows: Table) -> None:
    (copied / "prbench.duckdb").unlink()

    assert [] == [
        (key, name)
        for key, row in published_rows(copied).items()
        for name in DRAWN
        if row[name] != leaderboard_rows[key][name]
    ]


def decided_at_last(world: World) -> tuple[World, dict[str, Any]]:
    """The world after a failed verdict that alone kept a task from counting was judged again, and its row."""
    oracle = Oracle(world)
    kept_out = {
        (task, key[1])
        for key in oracle.all_keys
        if key[2] == "all"
        for task in oracle.wanted(key)
        if sum(each.n_wanted - each.n_decided for each in oracle.responses_to(key, task).values()) == 1
    }
    cell, criterion_id = next(
        place for place, value in sorted(world.decisions.items()) if value is None and place[0][:2] in kept_out
    )
    changed = World(world.tasks, world.responses, {**world.decisions, (cell, criterion_id): 1})
    start = "/".join(map(str, (*cell, criterion_id, "")))
    return changed, next(each for each in rows_of(changed)["verdicts"] if each["verdict_id"].startswith(start))


@pytest.mark.slow
def test_a_verdict_that_changes_makes_stale_exactly_what_rests_on_it_and_just_that_is_drawn_again(
    oracle: Oracle, copied: Path, leaderboard_rows: Table
) -> None:
    world, verdict_row = decided_at_last(oracle.world)
    changed = Oracle(world)
    touched = {key for key in oracle.all_keys if oracle.trial_values(key) != changed.trial_values(key)}
    Warehouse(copied).write("verdicts", [verdict_row])
    stale = published_rows(copied)

    assert 0 < len(touched) < len(leaderboard_rows) / 2
    assert [] == [
        (key, name, row[name], leaderboard_rows[key][name])
        for key, row in stale.items()
        for name in DRAWN
        if row[name] != (None if key in touched else leaderboard_rows[key][name])
    ]

    report = aggregate(job_on("sample", copied))
    fresh = published_rows(copied)

    assert f" {len(touched)} intervals computed" in report.line
    assert [] == differing(intervals_of(changed), fresh, TOLERANCE)
    assert [] == [
        (key, name)
        for key, row in fresh.items()
        for name in DRAWN
        if key not in touched and row[name] != leaderboard_rows[key][name]
    ]


# small cases


def test_the_same_rows_in_another_order_give_the_same_figures_to_the_last_digit(oracle: Oracle, tmp_path: Path) -> None:
    figures = []
    for seed in (1, 2):
        folder = tmp_path / str(seed)
        rows = {name: Random(seed).sample(of_table, len(of_table)) for name, of_table in rows_of(oracle.world).items()}
        with aggregated(folder, rows).reader() as reader:
            figures.append([
                reader.rows(f"select {columns} from {table} order by all")
                for table, columns in (
                    ("leaderboard", "*"), ("trial_scores", "*"), ("criterion_statistics", "*"),
                    ("length_correlations", "*"), ("measures", "* exclude (created_at)"),
                )
            ])  # fmt: skip
    assert figures[0] == figures[1]


def test_a_warehouse_of_november_has_its_measures_computed_again_and_its_tables_of_them_are_no_damage(
    copied: Path, leaderboard_rows: Table
) -> None:
    warehouse = Warehouse(copied)
    forget_parts(warehouse)
    (copied / "parts" / "measures").rename(copied / "parts" / "intervals")
    Warehouse(copied).publish()
    path = copied / "parts" / LIST
    listing = read_sealed(path)
    listing["parts"]["intervals"] = [part.name for part in (copied / "parts" / "intervals").glob("*.parquet")]
    write_sealed(path, {**listing, "kinds": [*listing["kinds"], ["intervals", *[None] * 5, 7, 9]]})

    assert {None} == {row["ci_low"] for row in published_rows(copied).values()}
    assert ([], []) == (warehouse.damage(), warehouse.losses())
    aggregate(job_on("sample", copied))
    ends = {key: {name: row[name] for name in (*ENDS, *RAW)} for key, row in leaderboard_rows.items()}
    assert [] == differing(ends, published_rows(copied), TOLERANCE)
    assert ([], []) == (warehouse.damage(), warehouse.losses())
    assert not has_damage(copied)
