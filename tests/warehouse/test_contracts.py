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

PROMISED = yaml.safe_load(Path(__file__).with_name("promised.yaml").read_text(encoding="utf-8"))
"""Table -> the columns that users rely on: a fixed copy of the public interface."""
KEPT = [model for model in sql.models() if model.kind != "step"]
"""The models that are in the published file."""

INTERNAL = {"published_parts", "published_from"}
"""Tables in which the publisher records what a file contains."""


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with reading(
        tmp_path_factory.mktemp("warehouse"), {"runs": [row("runs", command="run")]}
    ) as reader:
        yield reader


@pytest.fixture(scope="module")
def columns(published: Reader) -> dict[str, set[str]]:
    """The columns of each published table and view."""
    query = "select table_name, list(column_name) from information_schema.columns group by all"
    return {name: set(of_table) for name, of_table in published.table(query)[1]}


def test_the_promised_columns_are_there(columns: dict[str, set[str]]) -> None:
    assert len(PROMISED) == 14
    assert [
        (name, each) for name, of in PROMISED.items() for each in {*of.split()} - columns[name]
    ] == []


def test_every_table_view_and_column_says_in_the_database_what_it_is(published: Reader) -> None:
    _, silent = published.table("""
        select table_name as name, null as part, comment from duckdb_tables() where database_name = 'published'
        union all
        select view_name, null, comment from duckdb_views() where database_name = 'published' and not internal
        union all
        select table_name, column_name, comment from duckdb_columns()
        where database_name = 'published' and schema_name = 'main' and not internal
    """)

    assert [
        each for each in silent if each[0] not in INTERNAL and not (each[2] or "").strip()
    ] == []


def test_every_table_and_model_is_in_the_database_and_users_see_tables_and_marts_alone(
    published: Reader,
) -> None:
    tables = published.rows("from information_schema.tables where table_catalog = 'published'")
    present = {
        f"{each['table_schema']}.{each['table_name']}".removeprefix("main.") for each in tables
    }
    shown = {each["name"] for each in published.rows("show tables")}

    assert {*TABLES, *(model.name for model in KEPT), *INTERNAL} == present
    assert {*TABLES, *sql.schema()["marts"], *INTERNAL} == shown


def test_every_model_that_users_do_not_see_says_what_one_row_is() -> None:
    unseen = [model for model in sql.models() if "." in model.name]

    assert unseen
    assert [model.name for model in unseen if not model.meaning.startswith("One row: ")] == []


def test_no_column_has_a_type_that_other_programs_take_for_something_else(
    published: Reader,
) -> None:
    odd = published.rows(
        "select table_name, column_name, data_type from duckdb_columns() where database_name ="
        " 'published' and not internal and regexp_matches(data_type, 'HUGEINT|DECIMAL') and not"
        " ends_with(column_name, 'basis')"
    )

    assert odd == []


def test_every_column_of_the_contracts_has_a_meaning_and_is_used() -> None:
    used = {column for table in TABLES.values() for column in table.columns}

    assert [name for name, (_, meaning) in COLUMNS.items() if not meaning.strip()] == []
    assert used == set(COLUMNS)


def test_every_column_that_schema_yml_describes_exists(columns: dict[str, set[str]]) -> None:
    described = {model.name: {*model.columns} for model in KEPT if model.columns}
    assert [
        (name, each) for name, of_model in described.items() for each in of_model - columns[name]
    ] == []


def test_no_table_that_holds_a_text_of_a_task_holds_its_canary(
    columns: dict[str, set[str]],
) -> None:
    texts = {"prompt", "content", "title", "text", "response_text", "scratchpad"}

    assert {*TABLES} <= columns.keys()
    assert [
        name for name, of_table in columns.items() if "canary" in of_table and of_table & texts
    ] == []


OLDEST_CLIENT = ["--with", "duckdb==1.2.2", "--with", "pytz"]
READ_ALL = """
import sys, duckdb
client = duckdb.connect(sys.argv[1], read_only=True)
for schema, name in client.execute("select table_schema, table_name from information_schema.tables").fetchall():
    client.execute(f"from {schema}.{name} limit 1").fetchall()
    print(f"{schema}.{name}")
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("uv") is None, reason="needs uv, to get the oldest client")
def test_the_oldest_client_reads_every_table_and_view(tmp_path: Path) -> None:
    warehouse = written(tmp_path, {"runs": [row("runs", run_id="a-run")]})
    warehouse.publish()
    query = (
        "select concat(table_schema, '.', table_name) as name from information_schema.tables where"
        " table_catalog = "
    )
    held = {each["name"] for each in rows_in(warehouse.root, f"{query}current_database()")}

    client = subprocess.run(
        [
            "uv",
            "run",
            "--quiet",
            "--no-project",
            "--python",
            sys.executable,
            *OLDEST_CLIENT,
            "python",
            "-c",
            READ_ALL,
            str(warehouse.database),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )

    assert client.returncode == 0
    assert client.stderr == ""
    assert held == set(client.stdout.split())
