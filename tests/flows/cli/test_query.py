"""`prbench sql`: it is read-only, shows whole results, and describes the database."""

import csv
import io
import json
import os
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
from tests.flows.conftest import PRBENCH, PROJECT, Command, Run
from tests.kit import Patch, Printed, row, until, written
from tests.warehouse.test_contracts import PROMISED
from warehouse import TABLES, Warehouse


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
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
def test_what_writes_is_refused(
    folder: Path, query: str, run_here: Run, tmp_path: Path, monkeypatch: Patch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = (folder / "prbench.duckdb").read_bytes()
    output = run_here.refusal("sql", query, code=(1, 2))
    assert "unexpected" not in output
    assert "LINE 1" not in output
    assert before == (folder / "prbench.duckdb").read_bytes()
    assert list(tmp_path.iterdir()) == []


def test_every_format_holds_every_column_and_row(run_here: Run, tmp_path: Path) -> None:
    query = "select 1 as a, 'x,y' as a, null::double as b union all select 2, 'z', 0.5 order by 1"
    rows = [
        {
            "a": 1,
            "a_1": "x,y",
            "b": None,
        },
        {
            "a": 2,
            "a_1": "z",
            "b": 0.5,
        },
    ]
    assert run_here.json("sql", "select 'nan'::double as n") == [{"n": None}]
    assert rows == json.loads(run_here("sql", query, "--format", "json"))
    assert rows == [
        json.loads(line) for line in run_here("sql", query, "--format", "jsonl").splitlines()
    ]
    as_csv = csv.reader(io.StringIO(run_here("sql", query, "--format", "csv")))
    assert list(as_csv) == [["a", "a_1", "b"], ["1", "x,y", ""], ["2", "z", "0.5"]]
    run_here("sql", query, "--format", "parquet", "-o", str(tmp_path / "rows.parquet"))
    stored = pq.read_table(tmp_path / "rows.parquet")
    assert rows == stored.to_pylist()
    assert [str(field.type) for field in stored.schema] == ["int32", "string", "double"]
    assert run_here("sql", query, "--format", "markdown").splitlines()[2] == "| 1 | x,y | – |"


def test_a_file_is_in_the_format_of_its_ending_and_an_unknown_one_is_refused(
    tmp_path: Path, run_here: Run
) -> None:
    for name, content in (
        ("q.csv", "a\n1\n"),
        ("q.jsonl", '{"a": 1}\n'),
        ("q.md", "| a |\n| --- |\n| 1 |\n"),
    ):
        run_here("sql", "select 1 as a", "-o", str(tmp_path / name))
        assert content == (tmp_path / name).read_text()
    run_here("sql", "select 1 as a", "--format", "jsonl", "-o", str(tmp_path / "q.csv"))
    assert (tmp_path / "q.csv").read_text() == '{"a": 1}\n'
    run_here("sql", "select 1 as a", "-o", str(tmp_path / "q.xlsx"))
    assert openpyxl.load_workbook(tmp_path / "q.xlsx").worksheets[0]["A2"].value == 1
    run_here("sql", "select 1 as a", "-o", str(tmp_path / "q.xls"), code=2)
    assert not (tmp_path / "q.xls").exists()
    assert "q.xls: the ending is none of .csv, " in run_here.err


HOSTILE = (
    "select '=1+1' as \"=x\", '<script>[a](javascript:b)|`c`' as label, -1.5::double as n, '''-1'"
    " as mark"
)


def test_a_text_of_a_query_is_never_a_formula_and_numbers_stay_numbers(
    run_here: Run, tmp_path: Path
) -> None:
    query = HOSTILE.replace("\\'", "'")
    run_here("sql", query, "-o", str(tmp_path / "q.csv"))
    with (tmp_path / "q.csv").open(encoding="utf-8", newline="") as file:
        heading, row = csv.reader(file)

    assert heading == ["'=x", "label", "n", "mark"]
    assert row == ["'=1+1", "<script>[a](javascript:b)|`c`", "-1.5", "''-1"]
    assert run_here("sql", query, "--format", "csv") == (tmp_path / "q.csv").read_text("utf-8")


def test_no_row_of_a_query_as_csv_begins_within_a_text(run_here: Run, tmp_path: Path) -> None:
    run_here(
        "sql", "select 'a' || chr(13) || '=1+1' as label, 1 as n", "-o", str(tmp_path / "q.csv")
    )

    assert (tmp_path / "q.csv").read_bytes() == b'label,n\n"a\r=1+1",1\n'


def test_formats_for_machines_are_exact(run_here: Run, tmp_path: Path) -> None:
    query = HOSTILE.replace("\\'", "'")
    exact = {
        "=x": "=1+1",
        "label": "<script>[a](javascript:b)|`c`",
        "n": -1.5,
        "mark": "'-1",
    }
    run_here("sql", query, "-o", str(tmp_path / "q.parquet"))

    assert [exact] == run_here.json("sql", query)
    assert exact == json.loads(run_here("sql", query, "--format", "jsonl"))
    ((text, label, _, mark),) = (
        row.values() for row in pq.read_table(tmp_path / "q.parquet").to_pylist()
    )
    assert text == "=1+1"
    assert label == exact["label"]
    assert mark == "'-1"


def test_markdown_of_a_query_holds_texts_alone(run_here: Run) -> None:
    row = run_here("sql", HOSTILE.replace("\\'", "'"), "--format", "markdown").splitlines()[2]
    assert row == r"| =1+1 | &lt;script&gt;[a\]\(javascript:b)\|\`c\` | -1.5 | '-1 |"


def test_a_query_of_several_lines_comes_whole_through_a_pipe(folder: Path) -> None:
    done = subprocess.run(
        [PRBENCH, "sql", "--json", "--warehouse", folder],
        input="select 2\n as b;\n",
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == [{"b": 2}]


def test_without_a_query_it_says_what_to_ask(
    folder: Path, tmp_path: Path, run: Run, run_here: Run, monkeypatch: Patch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    output = run_here("sql")
    database = str(folder / "prbench.duckdb")
    assert f"-readonly {shlex.quote(database)}" in output
    assert all(recipe.name in output for recipe in recipes())
    for refused in (["-o", str(tmp_path / "rows.csv")], ["--json"], ["--format", "csv"]):
        assert "need a query" in run_here("sql", *refused, code=2)
    assert "nothing is published here yet" in run("sql", "--warehouse", str(tmp_path), code=1)


def cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_ctrl_c_ends_a_query_of_hours(folder: Path) -> None:
    query = "select a.range from range(3000000) a, range(3000000) b where a.range + b.range < 0"
    with Command(folder).start("sql", query, "--warehouse", ".") as process:
        until(
            lambda: cpu_s(process.pid) > 3, process
        )  # by then all is imported, and the query runs
        process.send_signal(signal.SIGINT)
        try:
            output = process.communicate(timeout=240)
        finally:
            process.kill()
    assert process.returncode == 130
    assert output == ("", "\nprbench: interrupted\n")


def test_help_and_commands_that_only_read_import_nothing_heavy(folder: Path) -> None:
    reading = [
        ["sql", "--help"],
        *(
            [*each, "--warehouse", str(folder)]
            for each in (["leaderboard"], ["status"], ["sql", "select 1"])
        ),
    ]
    code = (
        "import json, sys; from flows.cli.main import main; heavy = {'prefect', 'litellm',"
        " 'great_expectations', 'datasets'}; main(['--help']); print(sys.modules.keys() & heavy |"
        " sys.modules.keys() & {'duckdb', 'numpy', 'polars', 'pyarrow', 'pydantic', 'rich',"
        " 'warehouse', 'yaml'}, file=sys.stderr); [main(command) for command in"
        " json.loads(sys.argv[1])]; print(sys.modules.keys() & heavy, file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, json.dumps(reading)]
    done = subprocess.run(
        command,
        cwd=PROJECT,
        capture_output=True,
        text=True,
        check=False,
    )
    errors = done.stderr.splitlines()
    assert [errors[0], errors[-1]] == ["set()"] * 2, errors
    assert "Usage: prbench sql" in done.stdout


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("empty")
    Warehouse(folder).publish()
    return folder


@pytest.mark.parametrize("name", [recipe.name for recipe in recipes()])
def test_every_recipe_runs_where_there_is_nothing_yet(empty: Path, name: str, run: Run) -> None:
    assert isinstance(run.json("sql", "--cookbook", name, "--warehouse", str(empty)), list)


def test_show_prints_the_text_of_a_query_and_what_it_is_made_of(run_here: Run) -> None:
    assert "there is no table or view model_runs" in run_here(
        "sql", "--describe", "model_runs", code=2
    )
    of_query = run_here("sql", "--show", "run/missing_verdicts")
    assert (
        "-- query queries/run/missing_verdicts\n-- One row: a criterion of some responses"
        in of_query
    )
    of_run = "with spend as (\n    -- One row: the sums over a run's calls on a day"
    assert of_run in run_here("sql", "--show", "run_total")


def test_a_terminal_too_narrow_names_the_columns_that_are_left_out(
    capsys: Printed, monkeypatch: Patch
) -> None:
    columns = [f"a_column_{i}" for i in range(12)]
    rows = [[f"cell-{i}" for i in range(12)], [1.5] * 12]
    monkeypatch.setenv("COLUMNS", "80")
    show_table(columns, rows)
    assert "A wider terminal" not in capsys.readouterr().out
    # Rich treats this as a real terminal.
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    show_table(columns, rows)
    *table, hidden = capsys.readouterr().out.partition("A wider terminal (or --wide) also shows: ")
    assert "a_column_5" in table[0]
    assert " ".join(columns[6:]) == " ".join(hidden.replace(",", "").split())
    assert max(map(len, table[0].splitlines())) <= 80


def test_describe_begins_with_the_most_used_tables_and_groups_the_others_by_subject(
    run_here: Run,
) -> None:
    tables = run_here.json("sql", "--describe")
    subjects = [table["subject"] for table in tables]

    assert [table["table"] for table in tables[:2]] == ["leaderboard", "score_history"]
    assert subjects[:8] == ["most used"] * 8
    assert subjects[8:] == sorted(subjects[8:])
    assert "most used" not in subjects[8:]
    assert "internal" not in subjects


def test_describe_lists_every_promised_table_and_internal_ones_only_with_all(run_here: Run) -> None:
    public = [table["table"] for table in run_here.json("sql", "--describe")]
    every = run_here.json("sql", "--describe", "--all")

    assert set(PROMISED) <= set(public)
    assert [table["table"] for table in every[: len(public)]] == public
    assert {table["subject"] for table in every[len(public) :]} == {"internal"}
    assert {*TABLES} <= {table["table"] for table in every}
    assert "use it with --describe" in run_here.refusal("sql", "select 1", "--all")
    assert "use it with --describe" in run_here.refusal("sql", "--describe", "runs", "--all")


def test_describe_says_which_names_are_deprecated_and_they_can_be_read(run_here: Run) -> None:
    columns = {
        each["column"]: each["meaning"]
        for each in run_here.json("sql", "--describe", "task_scores")
    }
    deprecated = {
        name for name, meaning in columns.items() if meaning.startswith("Deprecated, use")
    }

    assert deprecated == {"value", "value_lower", "value_upper"}
    assert run_here.json("sql", f"select {', '.join(deprecated)} from task_scores") == []
