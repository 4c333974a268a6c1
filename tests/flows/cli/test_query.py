"""`prbench sql`: it is read-only, shows whole results, and describes the database."""

import csv
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import openpyxl
import pyarrow.parquet as pq
import pytest

from flows.cli.output import show_table
from sql.cookbook import recipes
from tests.flows.conftest import Command
from tests.kit import row, until, written
from tests.warehouse.test_contracts import PROMISED
from warehouse import TABLES, Warehouse


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("warehouse")
    written(folder, {"runs": [row("runs", command="run")]}).publish()
    return folder


@pytest.mark.parametrize(
    "query",
    [
        "create table t as select 1",
        "delete from runs",
        "update runs set command = ''",
        "copy runs to 'out.csv'",
        "attach 'other.duckdb' as other",
        "export database 'out'",
        "select * from read_text('/etc/hostname')",
        "set enable_external_access = true",
        "install httpfs",
        "",
        ";",
        "select",
        "select * from nowhere",
    ],
)
def test_what_writes_is_refused(folder, query, run_here, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    content = (folder / "prbench.duckdb").read_bytes()

    output = run_here.refusal("sql", query, code=(1, 2))

    assert "unexpected" not in output
    assert "LINE 1" not in output
    assert (folder / "prbench.duckdb").read_bytes() == content
    assert list(tmp_path.iterdir()) == []


QUERY = "select 1 as a, 'x,y' as a, null::double as b union all select 2, 'z', 0.5 order by 1"
ROWS = [{"a": 1, "a_1": "x,y", "b": None}, {"a": 2, "a_1": "z", "b": 0.5}]


@pytest.mark.parametrize(
    ("file_format", "text"),
    [
        ("csv", 'a,a_1,b\n1,"x,y",\n2,z,0.5\n'),
        (
            "jsonl",
            '{"a": 1, "a_1": "x,y", "b": null}\n{"a": 2, "a_1": "z", "b": 0.5}\n',
        ),
        (
            "markdown",
            "| a | a_1 | b |\n| --- | --- | --- |\n| 1 | x,y | – |\n| 2 | z | 0.5 |\n",
        ),
    ],
)
def test_every_format_holds_every_column_and_row(run_here, file_format, text):
    assert run_here("sql", QUERY, "--format", file_format) == text


def test_json_has_null_for_nan_and_numbers_for_decimals(run_here):
    query = "select 'nan'::double as a, ['inf'::double] as b, 0.5 as c"

    assert run_here.json("sql", query) == [{"a": None, "b": [None], "c": 0.5}]


NESTED = """
    select
        {'a': null, 'b': timestamp '2026-01-01'} as s,
        ['x', null] as l,
        map([date '2026-01-01'], [0.5]) as m,
        '\\x01"=a'::blob as b,
        true as t
"""
STRUCT = '{"a": null, "b": "2026-01-01 00:00:00"}'
MAP = '{"2026-01-01": 0.5}'
BYTES = r"\x01\x22=a"
CELLS = [STRUCT, '["x", null]', MAP, BYTES]


def test_json_has_nested_values_as_json_and_bytes_as_duckdb_writes_them(run_here):
    [record] = run_here.json("sql", NESTED)

    assert list(record.values()) == [*map(json.loads, CELLS[:3]), BYTES, True]


def test_csv_has_nested_values_as_json_and_bytes_as_duckdb_writes_them(run_here):
    [_, cells] = csv.reader(run_here("sql", NESTED, "--format", "csv").splitlines())

    assert cells == [*CELLS, "true"]


def test_a_table_has_nested_values_as_json_and_bytes_as_duckdb_writes_them(run_here):
    table = run_here("sql", NESTED)

    assert re.split(r" {2,}", table.splitlines()[2]) == [
        STRUCT,
        "x, null",
        MAP,
        BYTES,
        "yes",
    ]


def test_a_workbook_has_nested_values_as_json_and_bytes_as_duckdb_writes_them(
    tmp_path, run_here
):
    run_here("sql", NESTED, "-o", tmp_path / "q.xlsx")

    [sheet] = openpyxl.load_workbook(tmp_path / "q.xlsx").worksheets
    cells = [cell.value for cell in sheet[2]]
    assert cells == [*CELLS, True]


def test_parquet_holds_every_column_and_row_with_its_type(run_here, tmp_path):
    run_here("sql", QUERY, "-o", tmp_path / "rows.parquet")

    table = pq.read_table(tmp_path / "rows.parquet")
    assert table.to_pylist() == ROWS
    assert [str(field.type) for field in table.schema] == [
        "int32",
        "string",
        "double",
    ]


def test_a_named_format_goes_before_that_of_the_ending(tmp_path, run_here):
    run_here("sql", "select 1 as a", "--format", "jsonl", "-o", tmp_path / "q.csv")

    assert (tmp_path / "q.csv").read_text() == '{"a": 1}\n'


HOSTILE = """
    select
        '=1+1' as "=x",
        '<script>[a](javascript:b)|`c`' as label,
        -1.5::double as n,
        '''-1' as mark
"""


def test_a_text_of_a_query_is_never_a_formula_and_numbers_stay_numbers(
    run_here, tmp_path
):
    run_here("sql", HOSTILE, "-o", tmp_path / "q.csv")

    text = (tmp_path / "q.csv").read_text()
    assert text == "'=x,label,n,mark\n'=1+1,<script>[a](javascript:b)|`c`,-1.5,''-1\n"
    assert run_here("sql", HOSTILE, "--format", "csv") == text


def test_no_row_of_a_query_as_csv_begins_within_a_text(run_here, tmp_path):
    query = "select 'a' || chr(13) || '=1+1' as label, 1 as n"

    run_here("sql", query, "-o", tmp_path / "q.csv")

    assert (tmp_path / "q.csv").read_bytes() == b'label,n\n"a\r=1+1",1\n'


def test_formats_for_machines_are_exact(run_here, tmp_path):
    row = {
        "=x": "=1+1",
        "label": "<script>[a](javascript:b)|`c`",
        "n": -1.5,
        "mark": "'-1",
    }

    run_here("sql", HOSTILE, "-o", tmp_path / "q.parquet")

    assert pq.read_table(tmp_path / "q.parquet").to_pylist() == [row]
    assert run_here.json("sql", HOSTILE) == [row]
    assert json.loads(run_here("sql", HOSTILE, "--format", "jsonl")) == row


def test_markdown_of_a_query_holds_texts_alone(run_here):
    row = run_here("sql", HOSTILE, "--format", "markdown").splitlines()[2]

    assert row == r"| =1+1 | &lt;script&gt;[a\]\(javascript:b)\|\`c\` | -1.5 | '-1 |"


def test_a_query_of_several_lines_comes_whole_through_a_pipe(run_here, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("select 2\n as b;\n"))

    assert run_here.json("sql") == [{"b": 2}]


@pytest.fixture
def stdin_terminal(monkeypatch):
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)


@pytest.mark.usefixtures("stdin_terminal")
def test_without_a_query_it_names_the_database_and_the_recipes(folder, run_here):
    output = run_here("sql")

    database = str(folder / "prbench.duckdb")
    assert f"-readonly {shlex.quote(database)}" in output
    assert all(recipe.name in output for recipe in recipes())


@pytest.mark.usefixtures("stdin_terminal")
@pytest.mark.parametrize(
    "options", [("-o", "rows.csv"), ("--json",), ("--format", "csv")]
)
def test_options_of_rows_need_a_query(run_here, options):
    assert "need a query" in run_here("sql", *options, code=2)


@pytest.mark.usefixtures("stdin_terminal")
def test_without_a_query_and_a_database_nothing_is_published(tmp_path, run):
    assert "nothing is published here yet" in run(
        "sql",
        "--warehouse",
        tmp_path,
        code=1,
    )


def cpu_s(pid: int) -> float:
    status = Path(f"/proc/{pid}/stat").read_text()
    fields = status.rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_ctrl_c_ends_a_query_of_hours(folder):
    query = "select a.range from range(3000000) a, range(3000000) b where a.range + b.range < 0"
    with Command(folder).start("sql", query, "--warehouse", ".") as process:
        # After three seconds all is imported, and the query runs.
        until(lambda: cpu_s(process.pid) > 3, process)
        process.send_signal(signal.SIGINT)
        try:
            output = process.communicate(timeout=240)
        finally:
            process.kill()

    assert process.returncode == 130
    assert output == ("", "\nprbench: interrupted\n")


IMPORTS = """
import json, sys
from flows.cli.main import main
slow = {"prefect", "litellm", "great_expectations", "datasets"}
heavy = {"duckdb", "numpy", "polars", "pyarrow", "pydantic", "rich", "warehouse", "yaml"}
main(["--help"])
print(sys.modules.keys() & (slow | heavy), file=sys.stderr)
for command in json.loads(sys.argv[1]):
    main(command)
print(sys.modules.keys() & slow, file=sys.stderr)
"""
"""Prints which large libraries the help has imported, and then these commands."""


def test_help_and_commands_that_only_read_import_nothing_heavy(folder):
    commands = [
        ["sql", "--help"],
        ["leaderboard", "--warehouse", str(folder)],
        ["status", "--warehouse", str(folder)],
        ["sql", "select 1", "--warehouse", str(folder)],
    ]
    command = [
        sys.executable,
        "-c",
        IMPORTS,
        json.dumps(commands),
    ]

    process = subprocess.run(
        command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )

    after_help, *_, after_commands = process.stderr.splitlines()
    assert after_help == "set()"
    assert after_commands == "set()"
    assert "Usage: prbench sql" in process.stdout


@pytest.fixture(scope="module")
def empty(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("empty")
    Warehouse(folder).publish()
    return folder


@pytest.mark.parametrize("name", [recipe.name for recipe in recipes()])
def test_every_recipe_runs_where_there_is_nothing_yet(empty, name, run):
    assert isinstance(
        run.json("sql", "--cookbook", name, "--warehouse", str(empty)), list
    )


def test_show_prints_the_text_of_a_query_and_what_it_is_made_of(run_here):
    missing_verdicts = run_here("sql", "--show", "run/missing_verdicts")
    run_total = run_here("sql", "--show", "run_total")

    heading = "-- query queries/run/missing_verdicts\n-- One row: a criterion"
    part = "with spend as (\n    -- One row: the sums over a run's calls on a day"
    assert heading in missing_verdicts
    assert part in run_total


def test_only_tables_and_views_are_described(run_here):
    error = run_here("sql", "--describe", "model_runs", code=2)

    assert "there is no table or view model_runs" in error


def test_a_pipe_is_never_too_narrow(capsys, monkeypatch):
    columns = [f"a_column_{i}" for i in range(12)]
    monkeypatch.setenv("COLUMNS", "80")

    show_table(columns, [["cell-text"] * 12])

    output = capsys.readouterr().out
    assert "a_column_11" in output
    assert "A wider terminal" not in output


def test_describe_begins_with_the_most_used_tables_and_groups_the_others_by_subject(
    run_here,
):
    tables = run_here.json("sql", "--describe")
    subjects = [table["subject"] for table in tables]

    assert [table["table"] for table in tables[:2]] == [
        "leaderboard",
        "score_history",
    ]
    assert subjects[:8] == ["most used"] * 8
    assert subjects[8:] == sorted(subjects[8:])
    assert "most used" not in subjects[8:]
    assert "internal" not in subjects


def test_describe_lists_every_promised_table_and_internal_ones_only_with_all(
    run_here,
):
    public = [table["table"] for table in run_here.json("sql", "--describe")]
    tables = run_here.json("sql", "--describe", "--all")

    names = [table["table"] for table in tables]
    internal = tables[len(public) :]
    assert set(public) >= set(PROMISED)
    assert names[: len(public)] == public
    assert {table["subject"] for table in internal} == {"internal"}
    assert set(names) >= set(TABLES)


@pytest.mark.parametrize("arguments", [("select 1",), ("--describe", "runs")])
def test_all_is_for_the_list_of_tables(run_here, arguments):
    assert "use it with --describe" in run_here.refusal("sql", *arguments, "--all")


def test_describe_says_which_names_are_deprecated_and_they_can_be_read(run_here):
    deprecated = set()
    for column in run_here.json("sql", "--describe", "task_scores"):
        if column["meaning"].startswith("Deprecated, use"):
            deprecated.add(column["column"])

    query = f"select {', '.join(deprecated)} from task_scores"
    assert deprecated == {"value", "value_lower", "value_upper"}
    assert run_here.json("sql", query) == []
