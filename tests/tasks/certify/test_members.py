"""What a certificate's rows hold is all that the models of its figures read."""

from pathlib import Path

import duckdb

import sql
from tasks.certify.certifying import KEYS, MODELS, ROWS, query_of
from warehouse.build import put_empty
from warehouse.reader import Reader, stamp
from warehouse.rows import definition
from warehouse.tables import TABLES

SAME = ["benchmark", "dataset_revision"]
"""The columns that stand in the manifest alone."""


def test_no_stored_table_that_figures_rest_on_is_left_out_but_measures_which_are_drawn_again() -> None:
    read = {name for model in sql.leading_to(MODELS, ROWS) for name in model.depends_on if name in TABLES}

    assert {"measures"} == read - set(ROWS)
    assert set(ROWS) == {name for model in sql.leading_to(MODELS, ROWS) for name in model.depends_on if name in ROWS}


def test_the_models_of_the_figures_read_no_column_that_a_certificate_lacks(tmp_path: Path) -> None:
    put_empty(tmp_path / "empty.duckdb", stamp())
    with Reader(tmp_path / "empty.duckdb") as reader:
        types = {name: {row["column_name"]: row["column_type"] for row in reader.rows(f"describe {name}")}
                 for name in ROWS}  # fmt: skip
        certified = {}
        for name in ROWS:
            query = query_of(name)
            given = {name: "any" for name in ("benchmark", "revision") if f"${name}" in query}
            columns = reader.table(query, given)[0]
            certified[name] = [column for column in (*SAME, *columns) if column in types[name]]

    # Where a key's column is missing, all rows would have the same.
    assert all(set(key) <= set(certified[name]) for name, key in KEYS.items())
    with duckdb.connect() as connection:
        connection.execute(f"create table measures ({definition(TABLES['measures'])})")
        connection.execute(sql.read("warehouse/macros"))
        connection.execute(f"create schema {sql.INTERMEDIATE}")
        for name, columns in certified.items():
            listed = ", ".join(f'"{column}" {types[name][column]}' for column in columns)
            connection.execute(f"create table {name} ({listed})")
        for model in sql.leading_to(MODELS, ROWS):
            # The engine finds no column by its name that is not there.
            kind = {"step": "temp table"}.get(model.kind, model.kind)
            connection.execute(f"create {kind} {model.name} as {model.query}")
