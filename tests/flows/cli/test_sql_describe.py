"""`prbench sql --describe` and `--cookbook`: the database says what it holds, and which questions are ready."""

import csv
import io
import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import sql
from flows.cli.main import main
from flows.cli.output import show_table
from sql.cookbook import recipes
from tests.builders import row
from warehouse import Warehouse
from warehouse.contracts.columns import COLUMNS
from warehouse.contracts.tables import TABLES


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("warehouse")
    warehouse = Warehouse(folder)
    warehouse.write("runs", [row("runs", command="run")])
    warehouse.write("verdicts", [
        row("verdicts", verdict_id=f"v{i}", criterion_id=f"c{i}", model="a-model", status=status, error=error)
        for i, (status, error) in enumerate([("met", None), ("server_error", "503"), ("server_error", "503")])
    ])  # fmt: skip
    warehouse.publish()
    return folder


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("empty")
    Warehouse(folder).publish()
    return folder


def _sql(folder: Path, *arguments: str) -> int:
    return main(["sql", *arguments, "--warehouse", str(folder)])


def test_every_mart_and_stored_table_is_listed_with_what_a_row_is_and_no_helper(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _sql(folder, "--describe", "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert {entry["table"] for entry in listed} == sql.schema()["marts"].keys() | TABLES.keys()
    names = [entry["table"] for entry in listed]
    assert names[:6] == ["leaderboard", "scores", "verdict_details", "tasks", "responses", "run_costs"]
    assert {"intervals", "agreement_measures", "debiased_measures"} <= set(names[-10:])
    rest = [entry["origin"] for entry in listed[6:]]
    assert rest == sorted(rest)
    assert all(entry["meaning"] and entry["columns"] > 0 for entry in listed)
    runs = next(entry for entry in listed if entry["table"] == "runs")
    assert runs == {
        "table": "runs", "origin": "stored", "columns": len(TABLES["runs"].columns), "meaning": TABLES["runs"].meaning,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["runs", "RUNS"])
def test_a_table_is_described_by_its_columns_in_their_order(
    folder: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _sql(folder, "--describe", name, "--json") == 0
    described = json.loads(capsys.readouterr().out)
    assert [column["column"] for column in described] == list(TABLES["runs"].columns)
    assert [column["meaning"] for column in described] == [COLUMNS[column][1] for column in TABLES["runs"].columns]
    assert {column["column"]: column["type"] for column in described}["started_at"] == "TIMESTAMP WITH TIME ZONE"


def test_the_publishers_own_tables_are_described_when_they_are_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _sql(folder, "--describe", "published_parts", "--format", "jsonl") == 0
    assert capsys.readouterr().out


def test_users_see_no_relation_of_staging(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _sql(folder, "show tables", "--json") == 0
    shown = {row["name"] for row in json.loads(capsys.readouterr().out)}
    assert shown - {"published_parts", "published_from"} == sql.schema()["marts"].keys() | TABLES.keys()
    assert _sql(folder, "--describe", "model_runs") == 2
    assert "there is no table or view model_runs" in capsys.readouterr().err


def test_a_table_for_people_says_what_a_row_is_and_cuts_no_meaning(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _sql(folder, "--describe", "leaderboard") == 0
    said = capsys.readouterr().out
    assert said.splitlines()[0] == f"leaderboard: {sql.schema()['marts']['leaderboard']['meaning']}"
    assert "…" not in said
    assert COLUMNS["cost_usd"][1] in said


def test_a_description_comes_in_every_format(folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert _sql(folder, "--describe", "runs", "--format", "csv") == 0
    written = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [line["column"] for line in written] == list(TABLES["runs"].columns)
    assert _sql(folder, "--describe", "--format", "parquet", "-o", str(tmp_path / "tables.parquet")) == 0
    assert "leaderboard" in pq.read_table(tmp_path / "tables.parquet")["table"].to_pylist()


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("leaderbord", "did you mean leaderboard"), ("published_part", "did you mean published_parts"),
        ("zzzz", "known: leaderboard, scores, "), ("x' or 'a' = 'a", "known: "),
    ],
)  # fmt: skip
def test_an_unknown_table_is_refused_in_one_line_with_what_there_is(
    folder: Path, name: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _sql(folder, "--describe", name) == 2
    said = capsys.readouterr()
    assert (said.out, len(said.err.splitlines())) == ("", 1)
    assert name in said.err
    assert told in said.err


@pytest.mark.parametrize(
    "arguments",
    [
        ["select 1", "--describe"], ["--describe", "runs", "select 1"], ["-f", "query.sql", "--describe"],
        ["select 1", "-f", "query.sql"], ["--describe", "--cookbook"], ["--cookbook", "ranking", "select 1"],
        ["--show"], ["--cookbook", "--show"], ["--cookbook", "rankin"], ["--describe", "--json", "--format", "csv"],
    ],
)  # fmt: skip
def test_two_questions_at_once_are_refused_in_one_line(
    folder: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _sql(folder, *arguments) == 2
    said = capsys.readouterr()
    assert (said.out, len(said.err.splitlines())) == ("", 1)


def test_where_nothing_is_published_it_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _sql(tmp_path, "--describe") == 1
    assert "nothing is published here yet" in capsys.readouterr().err


def test_the_cookbook_lists_its_questions_in_order(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _sql(folder, "--cookbook", "--json") == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed == [{"name": recipe.name, "question": recipe.question} for recipe in recipes()]
    assert [entry["name"] for entry in listed][:1] == ["ranking"]
    assert all(entry["question"].endswith("?") for entry in listed)
    assert len({entry["name"] for entry in listed}) == len(listed)


@pytest.mark.parametrize("name", [recipe.name for recipe in recipes()])
def test_every_recipe_runs_where_there_is_nothing_yet(
    empty: Path, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _sql(empty, "--cookbook", name, "--json") == 0
    assert isinstance(json.loads(capsys.readouterr().out), list)


def test_a_recipe_answers_its_question(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _sql(folder, "--cookbook", "failed-calls", "--json") == 0
    (answer,) = json.loads(capsys.readouterr().out)
    assert (answer["what"], answer["status"], answer["error"], answer["calls"]) == ("verdict", "server_error", "503", 2)


def test_what_show_prints_is_the_recipe_and_can_be_asked(
    folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert _sql(folder, "--cookbook", "failed-calls", "--show") == 0
    shown = capsys.readouterr().out
    assert shown.startswith("-- Which calls failed, and why?\nwith calls as")
    (tmp_path / "mine.sql").write_text(shown, encoding="utf-8")
    assert _sql(folder, "-f", str(tmp_path / "mine.sql"), "--json") == 0
    assert len(json.loads(capsys.readouterr().out)) == 1


def test_a_table_too_wide_for_the_terminal_is_shown_row_by_row(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = [f"a_column_{i}" for i in range(12)]
    rows = [[f"cell-{i}" for i in range(12)], [1.5] * 12]
    monkeypatch.setenv("COLUMNS", "80")
    show_table(columns, rows)
    assert "row 1" not in capsys.readouterr().out
    # Rich takes this for a real terminal.
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    show_table(columns, rows)
    lines = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in lines if line.startswith("a_column_3 ")] == ["a_column_3   cell-3", "a_column_3   1.5"]
    assert max(map(len, lines)) <= 80
    show_table(columns[:3], rows_of_three := [row[:3] for row in rows])
    assert len(rows_of_three) == 2
    assert "row 1" not in capsys.readouterr().out
