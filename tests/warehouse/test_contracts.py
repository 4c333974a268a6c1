"""The contracts, and what the published database guarantees to users who query it."""

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

import sql
from tests.kit import reading, row, rows_in, written
from warehouse import Reader
from warehouse.columns import COLUMNS
from warehouse.tables import TABLES

PROMISED = yaml.safe_load(Path(__file__).with_name("promised.yaml").read_text())
"""Table -> the columns that users rely on, with a space between them: a fixed copy of the public
interface.
"""
PUBLISHED_MODELS = [model for model in sql.models() if model.kind != "step"]
INTERNAL = {"published_parts", "published_from"}
"""Tables in which the publisher records what a file contains."""


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Iterator[Reader]:
    rows = {"runs": [row("runs", command="run")]}
    with reading(tmp_path_factory.mktemp("warehouse"), rows) as reader:
        yield reader


@pytest.fixture(scope="module")
def columns(published: Reader) -> dict[str, set[str]]:
    """The columns of each published table and view."""
    query = "select table_name, list(column_name) from information_schema.columns group by all"
    return {name: set(columns) for name, columns in published.table(query)[1]}


@pytest.mark.parametrize("table_name", PROMISED)
def test_the_promised_columns_are_there(table_name, columns):
    assert set(PROMISED[table_name].split()) - columns[table_name] == set()


def test_the_columns_of_14_tables_are_promised():
    assert len(PROMISED) == 14


@pytest.mark.parametrize(
    "query",
    [
        "select table_name as name, comment from duckdb_tables() where true",
        "select view_name as name, comment from duckdb_views() where true",
        "select concat(table_name, '.', column_name) as name, comment from duckdb_columns()"
        " where schema_name = 'main'",
    ],
)
def test_every_table_view_and_column_says_in_the_database_what_it_is(
    published, query
):
    rows = published.rows(f"{query} and database_name = 'published' and not internal")

    unexplained = [
        row["name"]
        for row in rows
        if not row["comment"] and row["name"].partition(".")[0] not in INTERNAL
    ]
    assert rows
    assert unexplained == []


def test_every_table_and_model_is_in_the_database(published):
    rows = published.rows(
        "select concat(table_schema, '.', table_name) as name from information_schema.tables"
        " where table_catalog = 'published'"
    )

    names = {row["name"].removeprefix("main.") for row in rows}
    assert names == {*TABLES, *(model.name for model in PUBLISHED_MODELS), *INTERNAL}


def test_users_see_tables_and_marts_alone(published):
    names = {row["name"] for row in published.rows("show tables")}

    assert names == {*TABLES, *sql.schema()["marts"], *INTERNAL}


def test_every_model_that_users_do_not_see_says_what_one_row_is():
    meanings = [model.meaning for model in sql.models() if "." in model.name]

    assert meanings
    for meaning in meanings:
        assert meaning.startswith("One row: ")


def test_no_column_has_a_type_that_other_programs_take_for_something_else(published):
    odd_columns = published.rows(
        "select table_name, column_name, data_type from duckdb_columns() where database_name ="
        " 'published' and not internal and regexp_matches(data_type, 'HUGEINT|DECIMAL') and not"
        " ends_with(column_name, 'basis')"
    )

    assert odd_columns == []


def test_every_column_of_the_contracts_has_a_meaning():
    for name, column in COLUMNS.items():
        assert column.meaning.strip(), name


def test_every_column_of_the_contracts_is_in_a_table():
    names = set()
    for table in TABLES.values():
        names.update(table.columns)

    assert names == COLUMNS.keys()


def test_every_column_that_schema_yml_describes_exists(columns):
    for model in PUBLISHED_MODELS:
        assert model.columns.keys() - columns[model.name.rpartition(".")[2]] == set()


def test_no_table_that_holds_a_text_of_a_task_holds_its_canary(columns):
    texts = {"prompt", "content", "title", "text", "response_text", "scratchpad"}

    with_canary = [name for name, names in columns.items() if "canary" in names]
    assert "split_members" in with_canary
    assert [name for name in with_canary if columns[name] & texts] == []


READ_ALL = """
import sys, duckdb
client = duckdb.connect(sys.argv[1], read_only=True)
query = "select table_schema, table_name from information_schema.tables"
for schema, name in client.execute(query).fetchall():
    client.execute(f"from {schema}.{name} limit 1").fetchall()
    print(f"{schema}.{name}")
"""


@pytest.mark.slow
@pytest.mark.skipif(
    shutil.which("uv") is None, reason="needs uv, to get the oldest client"
)
def test_the_oldest_client_reads_every_table_and_view(tmp_path):
    warehouse = written(tmp_path, {"runs": [row("runs", run_id="a-run")]})
    warehouse.publish()
    tables = rows_in(
        warehouse.root,
        "select concat(table_schema, '.', table_name) as name from information_schema.tables"
        " where table_catalog = current_database()",
    )

    environment = ["--no-project", "--with", "duckdb==1.2.2", "--with", "pytz"]
    client = [
        "python",
        "-c",
        READ_ALL,
        str(warehouse.database),
    ]
    process = subprocess.run(
        ["uv", "run", "--quiet", "--python", sys.executable, *environment, *client],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert process.returncode == 0
    assert process.stderr == ""
    assert set(process.stdout.split()) == {table["name"] for table in tables}
