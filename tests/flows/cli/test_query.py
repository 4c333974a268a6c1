"""`prbench sql`: read-only in every way, and nothing of a result is lost on its way out."""

import csv
import io
import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from flows.cli.main import main
from sql.cookbook import recipes
from tests.builders import row
from tests.flows.conftest import PRBENCH, PROJECT
from warehouse import Warehouse


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("warehouse")
    warehouse = Warehouse(folder)
    warehouse.write("runs", [row("runs", command="run")])
    warehouse.publish()
    return folder


def _sql(folder: Path, *arguments: str) -> int:
    return main(["sql", *arguments, "--warehouse", str(folder)])


@pytest.mark.parametrize(
    "query",
    [
        "create table t as select 1", "drop table runs", "delete from runs", "update runs set command = ''",
        "copy runs to 'out.csv'", "attach 'other.duckdb' as other", "export database 'out'",
        "select * from read_text('/etc/hostname')", "set enable_external_access = true", "install httpfs",
        "", ";", "select", "select * from nowhere",
    ],
)  # fmt: skip
def test_what_is_no_reading_query_is_refused_in_one_line(
    folder: Path, query: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = (folder / "prbench.duckdb").read_bytes()
    assert _sql(folder, query) in {1, 2}
    said = capsys.readouterr()
    assert (said.out, len(said.err.strip().splitlines())) == ("", 1)
    assert "unexpected" not in said.err
    assert "LINE 1" not in said.err
    assert (folder / "prbench.duckdb").read_bytes() == before
    assert list(tmp_path.iterdir()) == []


def test_every_format_holds_every_column_and_row(
    folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    query = "select 1 as a, 'x,y' as a, null::double as b union all select 2, 'z', 0.5 order by 1"
    rows = [{"a": 1, "a_1": "x,y", "b": None}, {"a": 2, "a_1": "z", "b": 0.5}]
    assert _sql(folder, query, "--format", "json") == 0
    assert json.loads(capsys.readouterr().out) == rows
    assert _sql(folder, query, "--format", "jsonl") == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == rows
    assert _sql(folder, query, "--format", "csv") == 0
    assert list(csv.reader(io.StringIO(capsys.readouterr().out))) == [
        ["a", "a_1", "b"],
        ["1", "x,y", ""],
        ["2", "z", "0.5"],
    ]
    assert _sql(folder, query, "--format", "parquet", "-o", str(tmp_path / "rows.parquet")) == 0
    stored = pq.read_table(tmp_path / "rows.parquet")
    assert stored.to_pylist() == rows
    assert [str(field.type) for field in stored.schema] == ["int32", "string", "double"]
    assert _sql(folder, query, "--format", "markdown") == 0
    assert capsys.readouterr().out.splitlines()[2] == "| 1 | x,y | – |"


def test_a_file_is_in_the_format_of_its_ending_and_never_a_workbook_that_is_none(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, content in (("q.csv", "a\n1\n"), ("q.jsonl", '{"a": 1}\n'), ("q.md", "| a |\n| --- |\n| 1 |\n")):
        assert _sql(folder, "select 1 as a", "-o", str(tmp_path / name)) == 0
        assert (tmp_path / name).read_text() == content
    assert _sql(folder, "select 1 as a", "--format", "jsonl", "-o", str(tmp_path / "q.csv")) == 0
    assert (tmp_path / "q.csv").read_text() == '{"a": 1}\n'
    for asked in ([], ["--format", "csv"]):
        assert _sql(folder, "select 1 as a", *asked, "-o", str(tmp_path / "q.xlsx")) == 2
    assert not (tmp_path / "q.xlsx").exists()
    assert "q.xlsx: a query is not written as a workbook; name a .csv file" in capsys.readouterr().err


def test_what_is_no_number_is_null_in_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _sql(folder, "select 'nan'::double as n, 'inf'::double as i", "--json") == 0
    assert json.loads(capsys.readouterr().out) == [{"n": None, "i": None}]


def test_a_query_of_several_lines_comes_whole_through_a_pipe(folder: Path) -> None:
    done = subprocess.run(
        [PRBENCH, "sql", "--json", "--warehouse", folder], input="select 2\n as b;\n", capture_output=True, text=True,
        check=True,
    )  # fmt: skip
    assert json.loads(done.stdout) == [{"b": 2}]


def test_without_a_query_it_says_where_the_database_is_how_to_open_it_and_what_to_ask(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    assert _sql(folder) == 0
    said = capsys.readouterr().out
    database = str(folder / "prbench.duckdb")
    assert f"-readonly {shlex.quote(database)}" in said
    assert all(recipe.name in said for recipe in recipes())
    assert _sql(folder, "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["database"], told["command"] in said) == (database, True)
    assert [recipe["name"] for recipe in told["cookbook"]] == [recipe.name for recipe in recipes()]
    for refused in (["-o", str(tmp_path / "rows.csv")], ["--format", "parquet"], ["--format", "csv"]):
        assert _sql(folder, *refused) == 2
        assert "need a query" in capsys.readouterr().err
    assert _sql(tmp_path) == 1
    assert "nothing is published here yet" in capsys.readouterr().err


def test_ctrl_c_ends_a_query_that_would_take_hours(folder: Path) -> None:
    query = "select a.range from range(3000000) a, range(3000000) b where a.range + b.range < 0"
    with subprocess.Popen(
        [PRBENCH, "sql", query, "--warehouse", folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        time.sleep(4)
        process.send_signal(signal.SIGINT)
        try:
            said = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, said) == (130, ("", "\nprbench: interrupted\n"))


def test_commands_that_only_read_import_nothing_heavy(folder: Path) -> None:
    commands = [["--help"], ["sql", "--help"], ["leaderboard"], ["status"], ["sql", "select 1"], ["doctor"]]
    code = (
        "import json, sys; from flows.cli.main import main; [main(command) for command in json.loads(sys.argv[1])]; "
        "print({'prefect', 'litellm', 'great_expectations', 'datasets'} & set(sys.modules), file=sys.stderr)"
    )
    placed = [[*each, *([] if "--help" in each else ["--warehouse", str(folder)])] for each in commands]
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(placed)], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    assert done.stderr.splitlines()[-1] == "set()"
    assert "Usage: prbench sql" in done.stdout
