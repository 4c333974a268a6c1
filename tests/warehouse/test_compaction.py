"""Compaction: fewer files and the same rows, whatever reads, writes or is killed meanwhile."""

import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.faults.steps import killed_at_every_step
from tests.kit import Patch, response, row
from tests.warehouse.parts import published, put, standing, stored
from warehouse import Warehouse, compaction
from warehouse.compaction import compact
from warehouse.parts import Listing, PartStore, moment_of, names_in, read_list, write_list
from warehouse.publish import gone_from


def files_in(warehouse: Warehouse, table_name: str) -> list[str]:
    folder = warehouse.store.root / table_name
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*.parquet"))


def write_runs(warehouse: Warehouse, *names: str, command: str = "run") -> None:
    for name in names:
        warehouse.write("runs", [row("runs", run_id=name, command=command)])


# choosing parts to merge


def test_many_small_parts_become_one_with_the_rows_that_stand(
    warehouse: Warehouse, quick: None
) -> None:
    write_runs(warehouse, "a", "b", "c")
    write_runs(warehouse, "b", command="again")
    warehouse.write(
        "labels",
        [
            row(
                "labels",
                field="f",
                kind="k",
                label="l",
            )
        ],
    )
    sizes = {
        name: sum(part.stat().st_size for part in warehouse.store.standing(name))
        for name in ("runs", "labels")
    }
    before = warehouse.part_sizes()
    warehouse.compact()
    (merged,) = warehouse.store.standing("runs")

    assert len(before) == 5
    assert sum(sizes.values()) == sum(before)
    assert sorted([merged.stat().st_size, sizes["labels"]]) == sorted(warehouse.part_sizes())
    standing_runs = [(each["run_id"], each["command"]) for each in stored(warehouse.store, "runs")]
    assert standing_runs == [("a", "run"), ("c", "run"), ("b", "again")]


def test_large_parts_stay_and_what_lies_between_them_does_not_move_across(tmp_path: Path) -> None:
    store = PartStore(tmp_path)
    sizes = enumerate([1, 2, 5, 1, 1, 2, 9, 1], start=1)
    names = [
        put(tmp_path, "responses", at, [response(f"{at}-{i}") for i in range(n)]) for at, n in sizes
    ]
    compact(store, large_rows=5)
    parts = store.standing("responses")

    assert [pq.read_metadata(part).num_rows for part in parts] == [3, 5, 4, 9, 1]
    assert {names[2], names[6], names[7]} <= {part.name for part in parts}
    assert [moment_of(part).lstrip("0") for part in parts] == ["2", "3", "6", "7", "8"]


def test_the_same_parts_give_the_same_bytes(tmp_path: Path) -> None:
    for side in ("a", "b"):
        for moment in range(1, 40):
            put(
                tmp_path / side,
                "responses",
                moment,
                [response(f"t{moment * i % 50}") for i in range(moment)],
            )
        compact(PartStore(tmp_path / side), large_rows=100)

    first, second = (
        [part.name for part in PartStore(tmp_path / side).standing("responses")]
        for side in ("a", "b")
    )
    assert first == second
    assert 1 < len(first) < 39


# the law: the rows that count are the same before and after merging parts

BATCHES = [None, "import-1", "import-2"]
cells = st.tuples(*map(st.sampled_from, ("abc", ["ok", "timeout", "refused"], BATCHES)))
some_parts = st.lists(
    st.tuples(st.integers(1, 9), st.lists(cells, min_size=1, max_size=4)), min_size=1, max_size=8
)


def put_cells(
    root: Path, number: int, moment: int, rows: list[tuple[str, str, str | None]]
) -> None:
    """Write a part of responses, and one of runs with the same keys; each row contains the number
    of its part.
    """
    put(
        root,
        "responses",
        moment,
        [
            response(
                key,
                status=status,
                import_batch=batch,
                error=f"{number}.{i}",
            )
            for i, (key, status, batch) in enumerate(rows)
        ],
    )
    put(
        root,
        "runs",
        moment,
        [row("runs", run_id=key, command=str(number)) for key in {key for key, _, _ in rows}],
    )


@pytest.mark.slow
@settings(max_examples=12, suppress_health_check=[HealthCheck.too_slow])
@given(
    parts=some_parts,
    large_rows=st.integers(2, 12),
    n_before=st.integers(1, 8),
)
def test_merging_parts_leaves_what_stands(
    parts: list[tuple[int, list[Any]]], large_rows: int, n_before: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = PartStore(Path(folder))
        parts = sorted(parts[:n_before], key=lambda part: part[0]) + parts[n_before:]
        for number, (moment, rows) in enumerate(parts[:n_before]):
            put_cells(Path(folder), number, moment, rows)
        for table_name in ("responses", "runs"):
            rows = stored(store, table_name)
            expected = [
                standing(table_name, rows, gone) for gone in ([], ["import-1"], BATCHES[1:])
            ]
            compact(store, large_rows=large_rows)
            actual = [
                standing(table_name, stored(store, table_name), gone)
                for gone in ([], ["import-1"], BATCHES[1:])
            ]
            assert actual == expected
        # Again after further parts; some are late, and their order is that of their names.
        for number, (moment, rows) in enumerate(parts[n_before:], start=n_before):
            put_cells(Path(folder), number, moment, rows)
        rows = stored(store, "responses")
        compact(store, large_rows=large_rows)
        for gone in ([], ["import-2"]):
            assert standing("responses", rows, gone) == standing(
                "responses", stored(store, "responses"), gone
            )


# readers, writers and kills


def test_parts_that_an_earlier_version_merged_into_a_subfolder_count_as_any_others(
    warehouse: Warehouse, quick: None
) -> None:
    write_runs(warehouse, "a", "b")
    content = {part.name: part.read_bytes() for part in warehouse.store.standing("runs")}
    warehouse.compact()
    (merged,) = warehouse.store.standing("runs")
    (folder := merged.with_name("g0001")).mkdir()
    merged.rename(folder / merged.name)
    for name, replaced in content.items():  # these stayed for an hour
        merged.with_name(name).write_bytes(replaced)

    assert warehouse.damage() == []
    warehouse.publish()
    assert [each["run_id"] for each in published(warehouse, "runs")] == ["a", "b"]
    warehouse.compact()
    assert 1 == len(files_in(warehouse, "runs")) == len(warehouse.part_sizes())


def test_a_part_that_appears_meanwhile_is_kept(
    warehouse: Warehouse, quick: None, monkeypatch: Patch
) -> None:
    write_runs(warehouse, "a", "b")
    merge = compaction.merge

    def merge_beside_a_writer(*arguments: Any) -> Path:
        write_runs(warehouse, "c")
        put(warehouse.root, "runs", 1, [row("runs", run_id="very late")])
        return merge(*arguments)

    monkeypatch.setattr(compaction, "merge", merge_beside_a_writer)
    warehouse.compact()
    monkeypatch.undo()

    assert sorted(actual["run_id"] for actual in stored(warehouse.store, "runs")) == [
        "a",
        "b",
        "c",
        "very late",
    ]
    for _ in range(2):
        warehouse.compact()
    assert [actual["run_id"] for actual in stored(warehouse.store, "runs")] == [
        "very late",
        "a",
        "b",
        "c",
    ]


@pytest.mark.slow
def test_a_kill_at_any_step_leaves_the_same_rows_and_nothing_for_good(tmp_path: Path) -> None:
    base = tmp_path / "base"
    for moment in range(1, 7):
        put(
            base,
            "runs",
            moment,
            [row("runs", run_id=name, command=str(moment)) for name in ("a", f"b{moment}")],
        )
    compact(PartStore(base))
    put(base, "runs", 7, [row("runs", run_id="a", command="7")])
    write_list(base / "parts", Listing(frozenset(names_in(PartStore(base).all_standing())), {}))
    expected = standing("runs", stored(PartStore(base), "runs"))
    work = "compact(PartStore(place))"
    imports = (
        "import pandas\nfrom warehouse.compaction import compact\nfrom warehouse.parts import"
        " PartStore"
    )
    folders = killed_at_every_step(imports, work, base, tmp_path / "killed")

    assert len(folders) > 5
    for step, store in enumerate(map(PartStore, folders), start=1):
        assert standing("runs", stored(store, "runs")) == expected, step
        assert not gone_from(store.all_standing(), read_list(store.root)), step
        compact(store)
        assert standing("runs", stored(store, "runs")) == expected, step
        (part,) = store.standing("runs")
        left = {path for path in (store.root / "runs").rglob("*") if path.is_file()}
        fresh = {
            path
            for path in left
            if path.name.endswith(".tmp") and path.parent == store.root / "runs"
        }
        assert {part} == left - fresh, step


# publishing


def test_a_compaction_rebuilds_the_database_and_later_parts_are_added(
    warehouse: Warehouse, seen: list[bool]
) -> None:
    write_runs(warehouse, "a", "b")
    warehouse.publish()
    for name in ("c", "d"):
        write_runs(warehouse, name)
        warehouse.compact()
    write_runs(warehouse, "e", "f")
    warehouse.publish()

    assert seen == [False, True, False, True, False, True]
    assert [*"abcdef"] == [each["run_id"] for each in published(warehouse, "runs")]


def test_removed_rows_of_parts_of_one_moment_are_in_no_part(warehouse: Warehouse) -> None:
    for task_id in ("t1", "t2"):
        put(warehouse.root, "responses", 1, [response(task_id)])
    gone = [
        {**row("removals"), "response_id": each["response_id"]}
        for each in stored(warehouse.store, "responses")
    ]
    warehouse.write("removals", gone)
    warehouse.clean()

    assert stored(warehouse.store, "responses") == []
