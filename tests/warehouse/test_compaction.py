"""Compaction: fewer files and the same rows, whatever reads, writes or is killed meanwhile."""

import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.faults.steps import killed_at_every_step
from tests.kit import response, row
from tests.warehouse.parts import published, put, standing, stored
from warehouse import Warehouse, compaction
from warehouse.compaction import compact_parts, rename_ids
from warehouse.parts import (
    Listing,
    PartStore,
    moment_of,
    names_in,
    read_list,
    write_list,
)
from warehouse.publish import lost_parts_of


def write_runs(warehouse: Warehouse, *run_ids: str, command: str = "run"):
    for run_id in run_ids:
        warehouse.write("runs", [row("runs", run_id=run_id, command=command)])


def run_ids_in(store: PartStore) -> list[str]:
    return [run["run_id"] for run in stored(store, "runs")]


# choosing parts to merge


def test_many_small_parts_become_one_with_the_rows_that_stand(warehouse, quick):
    write_runs(warehouse, "a", "b", "c")
    write_runs(warehouse, "b", command="again")
    warehouse.write("labels", [row("labels", field="f", kind="k", label="l")])

    warehouse.compact()

    assert len(warehouse.store.current_parts("runs")) == 1
    assert len(warehouse.store.current_parts("labels")) == 1
    runs = [
        (run["run_id"], run["command"]) for run in stored(warehouse.store, "runs")
    ]
    assert runs == [("a", "run"), ("c", "run"), ("b", "again")]


def test_the_sizes_of_parts_are_those_of_their_files(warehouse):
    write_runs(warehouse, "a", "b")
    warehouse.write("labels", [row("labels", field="f", kind="k", label="l")])

    sizes = sorted(warehouse.part_sizes())

    files = warehouse.store.root.rglob("*.parquet")
    assert sizes == sorted(file.stat().st_size for file in files)


def test_large_parts_stay_and_what_lies_between_them_does_not_move_across(tmp_path):
    names = []
    for moment, n_rows in enumerate([1, 2, 5, 1, 1, 2, 9, 1], start=1):
        rows = [response(f"{moment}-{number}") for number in range(n_rows)]
        names.append(put(tmp_path, "responses", moment, rows))

    store = PartStore(tmp_path)
    compact_parts(store, large_rows=5)

    parts = store.current_parts("responses")
    assert [pq.read_metadata(part).num_rows for part in parts] == [3, 5, 4, 9, 1]
    assert [moment_of(part).lstrip("0") for part in parts] == [
        "2",
        "3",
        "6",
        "7",
        "8",
    ]
    assert {part.name for part in parts} > {names[2], names[6], names[7]}


def test_the_same_parts_give_the_same_bytes(tmp_path):
    names = {}
    for side in ("first", "second"):
        store = PartStore(tmp_path / side)
        for moment in range(1, 40):
            rows = [response(f"t{moment * number % 50}") for number in range(moment)]
            put(tmp_path / side, "responses", moment, rows)
        compact_parts(store, large_rows=100)
        names[side] = [part.name for part in store.current_parts("responses")]

    assert names["first"] == names["second"]
    assert 1 < len(names["first"]) < 39


# the law: the rows that count are the same before and after merging parts

BATCHES = [None, "import-1", "import-2"]
RETRACTIONS = ([], ["import-1"], ["import-1", "import-2"])
Cell = tuple[str, str, str | None]
"""The key of a row, its status, and its import batch."""
cells = st.tuples(
    st.sampled_from("abc"),
    st.sampled_from(["ok", "timeout", "refused"]),
    st.sampled_from(BATCHES),
)
numbered_parts = st.lists(
    st.tuples(st.integers(1, 9), st.lists(cells, min_size=1, max_size=4)),
    min_size=1,
    max_size=8,
)


def put_cells(root: Path, number: int, moment: int, rows: list[Cell]):
    """Write a part of responses, and one of runs with the same keys; each row contains the number
    of its part.
    """
    responses = [
        response(key, status=status, import_batch=batch, error=f"{number}.{position}")
        for position, (key, status, batch) in enumerate(rows)
    ]
    put(root, "responses", moment, responses)
    keys = {key for key, _, _ in rows}
    runs = [row("runs", run_id=key, command=str(number)) for key in keys]
    put(root, "runs", moment, runs)


def rows_that_count(store: PartStore) -> list[list[dict[str, Any]]]:
    """The current rows of both tables, after each of some retractions."""
    return [
        standing(table_name, stored(store, table_name), retracted)
        for table_name in ("responses", "runs")
        for retracted in RETRACTIONS
    ]


@pytest.mark.slow
@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(
    parts=numbered_parts, large_rows=st.integers(2, 12), n_before=st.integers(1, 8)
)
def test_merging_parts_leaves_what_stands(parts, large_rows, n_before):
    with tempfile.TemporaryDirectory() as folder:
        store = PartStore(Path(folder))
        parts_in_order = sorted(parts[:n_before], key=lambda part: part[0])
        for number, (moment, rows) in enumerate(parts_in_order):
            put_cells(Path(folder), number, moment, rows)
        expected = rows_that_count(store)
        compact_parts(store, large_rows=large_rows)
        assert rows_that_count(store) == expected
        # Again after further parts; some are late, and their order is that of their names.
        for number, (moment, rows) in enumerate(parts[n_before:], start=n_before):
            put_cells(Path(folder), number, moment, rows)
        expected = rows_that_count(store)
        compact_parts(store, large_rows=large_rows)
        assert rows_that_count(store) == expected


# readers, writers and kills


@pytest.fixture
def with_subfolder(warehouse: Warehouse, quick: None) -> Warehouse:
    """A warehouse whose parts an earlier version merged into a subfolder, less than an hour ago."""
    write_runs(warehouse, "a", "b")
    contents = {
        part: part.read_bytes() for part in warehouse.store.current_parts("runs")
    }
    warehouse.compact()
    (merged,) = warehouse.store.current_parts("runs")
    folder = merged.with_name("g0001")
    folder.mkdir()
    merged.rename(folder / merged.name)
    for part, content in contents.items():
        part.write_bytes(content)
    return warehouse


def test_parts_that_an_earlier_version_merged_count_as_any_others(with_subfolder):
    with_subfolder.publish()

    assert with_subfolder.damage() == []
    assert [run["run_id"] for run in published(with_subfolder, "runs")] == ["a", "b"]


def test_parts_that_an_earlier_version_merged_are_merged_with_others(with_subfolder):
    with_subfolder.compact()

    assert len(list(with_subfolder.store.root.rglob("*.parquet"))) == 1
    assert run_ids_in(with_subfolder.store) == ["a", "b"]


def test_a_part_that_appears_meanwhile_is_kept(warehouse, quick, monkeypatch):
    write_runs(warehouse, "a", "b")
    merge = compaction.merge

    def merge_beside_a_writer(*arguments):
        write_runs(warehouse, "c")
        put(warehouse.root, "runs", 1, [row("runs", run_id="very late")])
        return merge(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(compaction, "merge", merge_beside_a_writer)
        warehouse.compact()
    assert sorted(run_ids_in(warehouse.store)) == ["a", "b", "c", "very late"]

    warehouse.compact()
    warehouse.compact()
    assert run_ids_in(warehouse.store) == ["very late", "a", "b", "c"]


@pytest.mark.slow
def test_a_kill_at_any_step_leaves_the_same_rows_and_nothing_for_good(tmp_path):
    base = PartStore(tmp_path / "base")
    for moment in range(1, 7):
        runs = [
            row("runs", run_id=name, command=str(moment))
            for name in ("a", f"b{moment}")
        ]
        put(tmp_path / "base", "runs", moment, runs)
    compact_parts(base)
    put(tmp_path / "base", "runs", 7, [row("runs", run_id="a", command="7")])
    write_list(base.root, Listing(names_in(base.all_current_parts()), {}))
    expected = standing("runs", stored(base, "runs"))

    folders = killed_at_every_step(
        "import pandas\nfrom warehouse.compaction import compact_parts\n"
        "from warehouse.parts import PartStore",
        "compact_parts(PartStore(place))",
        tmp_path / "base",
        tmp_path / "killed",
    )

    assert len(folders) > 5
    for step, store in enumerate(map(PartStore, folders), start=1):
        assert standing("runs", stored(store, "runs")) == expected, step
        assert not lost_parts_of(store.all_current_parts(), read_list(store.root)), (
            step
        )
        compact_parts(store)
        assert standing("runs", stored(store, "runs")) == expected, step
        (part,) = store.current_parts("runs")
        files = [path for path in part.parent.rglob("*") if path.is_file()]
        unfinished = list(part.parent.glob("*.tmp"))
        assert set(files) - set(unfinished) == {part}, step


# publishing


def test_a_compaction_rebuilds_the_database_and_later_parts_are_added(
    warehouse, seen
):
    write_runs(warehouse, "a", "b")
    warehouse.publish()
    for run_id in ("c", "d"):
        write_runs(warehouse, run_id)
        warehouse.compact()
    write_runs(warehouse, "e", "f")
    warehouse.publish()

    assert seen == [False, True, False, True, False, True]
    assert [run["run_id"] for run in published(warehouse, "runs")] == list("abcdef")


def test_removed_rows_of_parts_of_one_moment_are_in_no_part(warehouse):
    for task_id in ("t1", "t2"):
        put(warehouse.root, "responses", 1, [response(task_id)])
    removals = [
        row("removals", response_id=response(task_id)["response_id"])
        for task_id in ("t1", "t2")
    ]

    warehouse.write("removals", removals)
    warehouse.clean()

    assert stored(warehouse.store, "responses") == []


def test_new_ids_reach_sheets_and_coverage_rules(warehouse):
    sheets = []
    for response_ids in (["old", "other"], [], None):
        sheet_id = str(response_ids)
        sheets.append(
            row("label_sheets", sheet_id=sheet_id, covered_responses=response_ids)
        )
    warehouse.write("label_sheets", sheets)
    rule = row("coverage_rules", model="m", model_config_hash="old-config")
    warehouse.write("coverage_rules", [rule])

    with warehouse.publishing():
        rename_ids(warehouse.store, {"old": "new", "old-config": "new-config"})

    covered = {}
    for sheet in stored(warehouse.store, "label_sheets"):
        covered[sheet["sheet_id"]] = sheet["covered_responses"]
    [stored_rule] = stored(warehouse.store, "coverage_rules")
    assert set(covered.pop("['old', 'other']")) == {"new", "other"}
    assert covered == {"[]": [], "None": None}
    assert stored_rule["model_config_hash"] == "new-config"
