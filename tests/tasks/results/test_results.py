"""Results in Python: the rows of the commands as data frames, and the example notebook, run in an
empty folder.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import nbformat
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

import tasks.results
from tasks.bundles.stores import open_location
from tasks.config.job import Job
from tasks.exports.tables import publish
from tasks.figures.shown.leaderboard import leaderboard
from tasks.results import Results, open_results
from tasks.rules.errors import UsageError
from tests.kit import Patch, admitted, job_on, one_line, written
from warehouse import DATABASE, WarehouseError

KINDS = {
    "polars": pl.DataFrame,
    "arrow": pa.Table,
    "pandas": pd.DataFrame,
}


@pytest.fixture
def results(world_job: Job) -> Iterator[Results]:
    with open_results(world_job.warehouse) as opened:
        yield opened


def rows_of(job: Job, query: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(job.warehouse / DATABASE), read_only=True) as connection:
        return connection.execute(query).fetchall()


def test_importing_takes_no_heavy_library() -> None:
    script = "import sys, json, tasks.results; print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(
        subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout
    )
    assert not {
        "polars",
        "pandas",
        "pyarrow",
        "duckdb",
        "litellm",
        "prefect",
        "great_expectations",
    } & set(loaded)


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_has_all_its_rows_in_every_kind_of_frame(
    results: Results, world_job: Job, kind: str
) -> None:
    table = results.table("leaderboard", format=kind)  # type: ignore[arg-type]
    assert isinstance(table, KINDS[kind])
    columns = table.column_names if kind == "arrow" else list(table.columns)
    assert [row[0] for row in rows_of(world_job, "describe leaderboard")] == columns
    assert 0 < rows_of(world_job, "select count(*) from leaderboard")[0][0] == len(table)


def test_every_listed_table_can_be_read_and_says_what_a_row_is(results: Results) -> None:
    listed = results.tables()
    assert set(listed["kind"]) == {"mart", "stored"}
    assert listed["meaning"].null_count() == 0
    assert {"leaderboard", "verdicts", "verdict_details", "tasks"} <= set(listed["name"])
    for name in listed["name"]:
        assert isinstance(results.table(name), pl.DataFrame)


def test_a_query_takes_parameters_by_place_and_by_name(results: Results) -> None:
    assert results.sql("select ? + 1 as n", [1])["n"].to_list() == [2]
    assert results.sql("select $n + 1 as n", {"n": 1}, format="pandas")["n"].tolist() == [2]


@pytest.mark.parametrize(
    "query",
    [
        "create table x (a int)",
        "copy (select 1) to 'x.csv'",
        "select 1; select 2",
        "",
        "selec",
        "drop table x",
    ],
)
def test_what_is_no_single_reading_query_is_refused(results: Results, query: str) -> None:
    with pytest.raises(UsageError, match=r"^sql: [^\n]*$"):
        results.sql(query)


def test_the_leaderboard_is_that_of_the_command(results: Results, world_job: Job) -> None:
    assert leaderboard(world_job) == results.leaderboard().to_dicts()
    by_category = results.leaderboard(
        by="category",
        judges=["strict-judge"],
        models=["birch-2"],
        format="arrow",
    )
    narrowed = world_job.model_copy(
        update={"named_models": ("birch-2",), "named_judges": ("strict-judge",)}
    )
    assert leaderboard(narrowed, by="category") == by_category.to_pylist()
    assert by_category.num_rows > 1


def test_a_difference_is_second_minus_first_with_its_sentence(
    results: Results, world_job: Job
) -> None:
    rows = results.diff("alder-large", "cedar-mini", judges=["strict-judge"])
    rows = {
        row["split"]: row
        for row in rows.to_dicts()
        if row["first_judge_trial"] == row["second_judge_trial"] == 1
    }
    assert set(rows) == set(results.splits)
    row = rows["legal"]
    assert row["first"] == "alder-large"
    assert row["second_model"] == "cedar-mini"
    assert row["first_judge"] == "strict-judge"
    assert pytest.approx(row["second_mean"] - row["first_mean"]) == row["difference"]
    assert row["ci_low"] < row["difference"] < row["ci_high"]
    assert "cedar-mini" in row["sentence"]


def test_a_mistake_is_one_line_that_names_what_there_is(
    results: Results, world_job: Job, tmp_path: Path
) -> None:
    for wrong, reason in (
        (
            lambda: results.table("leaderbord"),
            "no table or view leaderbord (did you mean `leaderboard`?)",
        ),
        (lambda: results.leaderboard(models=["nobody"]), "nobody: not found; known: alder-large"),
        (lambda: results.leaderboard(by="colour"), "no such breakdown"),
        (lambda: results.leaderboard(vintage="never"), "never: not found; known: "),
        (lambda: results.diff("alder-large"), "at least two names"),
        (lambda: results.table("tasks", format="xml"), "must be polars, arrow or pandas"),  # type: ignore[arg-type]
        (lambda: open_results(tmp_path / "nowhere"), "run `prbench run` first"),
        (lambda: open_results(world_job.warehouse, benchmark="other"), "it has prbench"),
    ):
        with pytest.raises(UsageError, match=one_line(reason)):
            wrong()
    with pytest.raises(WarehouseError, match="nothing is published here yet"):
        open_results(tmp_path)


def test_columns_have_their_types_where_no_value_is_known_and_where_there_is_no_row(
    results: Results,
) -> None:
    lawyers = results.leaderboard(judges=["lawyers"])
    assert len(lawyers) == lawyers["ci_low"].null_count()
    nobody = results.leaderboard(vintage="2026-10-05", models=["birch-2"])
    assert len(nobody) == 0
    for board in (lawyers, nobody):
        types = dict(board.schema)
        assert types["ci_low"] == types["mean_score"] == types["cost_usd"] == pl.Float64
        assert types["rank"] == pl.Int64
        assert types["is_below_bar"] == pl.Boolean
        assert types["model"] == pl.String
    assert results.leaderboard(by="topic").schema["label"] == pl.String
    few = results.diff("alder-large", "birch-2", judges=["lawyers"])
    assert len(few) == few["ci_low"].null_count()
    types = dict(few.schema)
    assert pl.Float64 == types["ci_low"]
    assert pl.Float64 == types["p_adjusted"]
    assert pl.Boolean == types["is_significant"]


def published(tmp_path: Path) -> Job:
    job = job_on("sample", tmp_path / "warehouse")
    written(job.warehouse, admitted(["t1", "t2"])).publish()
    return job


def test_a_publication_a_store_and_a_copied_file_hold_the_same(tmp_path: Path) -> None:
    job = published(tmp_path)
    for target in (str(tmp_path / "board"), "memory://board"):
        publish(job, open_location(target), n_kept=None)
    copied = tmp_path / "copied.duckdb"
    copied.write_bytes((job.warehouse / DATABASE).read_bytes())
    for opened in (job.warehouse, tmp_path / "board", "memory://board", copied):
        with open_results(opened) as results:
            assert sorted(results.table("tasks")["task_id"]) == ["t1", "t2"]


def test_a_copy_from_a_store_is_deleted_when_it_is_closed(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    publish(published(tmp_path), open_location("memory://other"), n_kept=None)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    results = open_results("memory://other")
    assert list(temporary.rglob(DATABASE))
    results.close()
    assert not list(temporary.iterdir())


NOTEBOOK = Path(tasks.results.__file__).parent / "example.ipynb"


def run(folder: Path) -> Any:
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


def outputs(notebook: Any) -> list[Any]:
    return [
        output["data"]
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    ]


def test_it_is_kept_without_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)  # type: ignore[no-untyped-call]
    assert not [
        cell for cell in notebook.cells if cell.get("outputs") or cell.get("execution_count")
    ]


@pytest.mark.slow
def test_it_shows_the_leaderboard_and_charts(
    world_job: Job, tmp_path: Path, monkeypatch: Patch
) -> None:
    monkeypatch.setenv("PRBENCH_WAREHOUSE", str(world_job.warehouse))
    shown = outputs(run(tmp_path))
    texts = [each["text/plain"] for each in shown]
    assert "prbench" in texts[0]
    assert "birch-2" in texts[1]
    assert sum("vegaEmbed" in each.get("text/html", "") for each in shown) == 2
    assert any("label" in text and "mean_score" in text for text in texts)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_without_results_it_says_what_to_run(tmp_path: Path, monkeypatch: Patch) -> None:
    monkeypatch.delenv("PRBENCH_WAREHOUSE", raising=False)
    with pytest.raises(CellExecutionError, match="run `prbench run` first"):
        run(tmp_path)
