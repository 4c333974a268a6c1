"""Parts with chosen names, and the rows of them that count, computed without SQL."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import sql
from tests.kit import rows_in
from warehouse import Warehouse
from warehouse.parts import PartStore, begin
from warehouse.tables import TABLES

Row = dict[str, Any]


def flip(path: Path, offset: int | None = None, *, bit: int = 0):
    """Change one bit of a file."""
    content = bytearray(path.read_bytes())
    content[len(content) // 2 if offset is None else offset] ^= 1 << bit
    path.write_bytes(content)


DAMAGES = {
    "a flipped bit": flip,
    "cut short": lambda path: path.write_bytes(path.read_bytes()[:-9]),
    "empty": lambda path: path.write_bytes(b""),
    "deleted": Path.unlink,
}


def rows_of(warehouse: Warehouse) -> dict[str, list[tuple[Any, ...]]]:
    """Return all rows of all stored tables, as published."""
    with warehouse.reader() as reader:
        return {
            name: sorted(reader.table(f"from {name}")[1], key=repr) for name in TABLES
        }


def put(root: Path, table_name: str, moment: int, rows: Sequence[Row]) -> str:
    """Write a part with a name from a given moment (in milliseconds), whenever it is really
    written.
    """
    begin(root)
    return put_table(
        root,
        table_name,
        moment,
        pa.Table.from_pylist(list(rows), schema=TABLES[table_name].schema),
    )


def put_table(root: Path, table_name: str, moment: int, table: pa.Table) -> str:
    """Write such a part with any columns."""
    temporary = root / "parts" / table_name / ".temporary"
    temporary.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, temporary)
    name = f"{moment:015d}-{hashlib.sha256(temporary.read_bytes()).hexdigest()[:24]}.parquet"
    temporary.rename(temporary.with_name(name))
    return name


def put_of_old(root: Path):
    """Write a part of runs as from an earlier version: with other columns, and a row without a
    key.
    """
    columns = {
        "run_id": ["then", None],
        "command": ["run", "lost"],
        "a_column_of_old": [1, 2],
    }
    put_table(root, "runs", 1, pa.table(columns))


def forget_parts(warehouse: Warehouse):
    """Delete all records of which parts exist, so that parts that a test deletes are not
    restored.
    """
    warehouse.database.unlink(missing_ok=True)
    (warehouse.store.root / "list.json").unlink(missing_ok=True)


def stored(store: PartStore, table_name: str) -> list[Row]:
    """All rows of the current parts, in the order of parts."""
    rows = []
    for part in store.current_parts(table_name):
        rows += pq.read_table(part).to_pylist()
    return rows


def standing(
    table_name: str,
    rows: Iterable[Row],
    retracted: Iterable[str] = (),
) -> list[Row]:
    """Return the rows of a sequence that count, sorted by key."""
    table = TABLES[table_name]
    by_key = {}
    for row in rows:
        key = tuple(row[column] for column in table.key)
        is_kept = (
            table.keeps == "decided"
            and key in by_key
            and by_key[key]["status"] in {"ok", "met", "unmet", "partial"}
        )
        is_retracted = row.get("import_batch") in retracted
        if not is_kept and not is_retracted:
            by_key[key] = row
    return [by_key[key] for key in sorted(by_key)]


def published(warehouse: Warehouse, table_name: str) -> list[Row]:
    """The rows of a published table, sorted by key."""
    key = ", ".join(TABLES[table_name].key)
    return rows_in(warehouse.root, f"from {table_name} order by {key}")


def without_marts(monkeypatch):
    """Publish only the stored tables, and the view that a macro reads."""
    query = "select benchmark, dataset_revision, judge, judge_config_hash from verdicts where false"
    people = sql.SqlModel(
        "intermediate.people_who_label",
        "view",
        query,
        (),
        "",
        {},
    )
    monkeypatch.setattr(sql, "models", lambda: [people])
    monkeypatch.setattr(sql, "models_above", lambda changed: [])


def without_models(monkeypatch):
    """Publish only a few stored tables, which takes a tenth of the time."""
    without_marts(monkeypatch)
    few = {"runs", "labels", "retractions", "removals", "responses", "verdicts"}
    for name in TABLES.keys() - few:
        monkeypatch.delitem(TABLES, name)


def as_facts(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Rows as text that can be sorted and compared, with one form of UTC."""
    texts = []
    for row in rows:
        facts = dict(row)
        for name, value in row.items():
            if isinstance(value, datetime):
                facts[name] = value.isoformat()
        texts.append(repr(facts))
    return sorted(texts)
