"""Results in Python: the rows of the commands as data frames, and the example notebook, run in an
empty folder.
"""

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
from tests.kit import admitted, job_on, one_line, written
from warehouse import DATABASE, WarehouseError

KINDS = {
    "polars": pl.DataFrame,
    "arrow": pa.Table,
    "pandas": pd.DataFrame,
}
HEAVY_LIBRARIES = {
    "polars",
    "pandas",
    "pyarrow",
    "duckdb",
    "litellm",
    "prefect",
    "great_expectations",
}


@pytest.fixture
def results(world_job: Job) -> Iterator[Results]:
    with open_results(world_job.warehouse) as opened:
        yield opened


def test_importing_takes_no_heavy_library():
    script = "import sys, tasks.results; print(*sys.modules)"
    process = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        check=True,
    )

    assert HEAVY_LIBRARIES & set(process.stdout.decode().split()) == set()


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_has_all_its_rows_in_every_kind_of_frame(results, world_job, kind):
    database = str(world_job.warehouse / DATABASE)
    with duckdb.connect(database, read_only=True) as connection:
        expected = connection.sql("from leaderboard").to_arrow_table()

    table = results.table("leaderboard", format=kind)  # type: ignore[arg-type]

    assert isinstance(table, KINDS[kind])
    assert len(table) > 0
    assert len(table) == expected.num_rows
    columns = table.column_names if kind == "arrow" else list(table.columns)
    assert columns == expected.column_names


def test_every_listed_table_is_there_and_says_what_a_row_is(results):
    tables = results.tables()

    query = (
        "select table_name from information_schema.tables where table_schema = 'main'"
    )
    assert set(tables["name"]) <= set(results.sql(query)["table_name"])
    assert set(tables["kind"]) == {"mart", "stored"}
    assert tables["meaning"].null_count() == 0
    assert set(tables["name"]) > {
        "leaderboard",
        "verdicts",
        "verdict_details",
        "tasks",
    }
    for name in ("leaderboard", "runs"):
        assert isinstance(results.table(name), pl.DataFrame)


def test_a_query_takes_parameters_by_position(results):
    assert results.sql("select ? + 1 as n", [1])["n"].to_list() == [2]


def test_a_query_takes_parameters_by_name(results):
    frame = results.sql(
        "select $n + 1 as n",
        {"n": 1},
        format="pandas",
    )

    assert frame["n"].tolist() == [2]


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
def test_what_is_no_single_reading_query_is_refused(results, query):
    with pytest.raises(UsageError, match=r"^sql: [^\n]*$"):
        results.sql(query)


def test_the_leaderboard_is_that_of_the_command(results, world_job):
    assert results.leaderboard().to_dicts() == leaderboard(world_job)


def test_a_narrowed_leaderboard_is_that_of_the_command(results, world_job):
    choice = {"named_models": ("birch-2",), "named_judges": ("strict-judge",)}
    expected = leaderboard(world_job.model_copy(update=choice), by="category")

    board = results.leaderboard(
        by="category",
        judges=["strict-judge"],
        models=["birch-2"],
        format="arrow",
    )

    assert board.to_pylist() == expected
    assert board.num_rows > 1


def test_a_difference_is_second_minus_first_with_its_sentence(results):
    differences = results.diff(
        "alder-large",
        "cedar-mini",
        judges=["strict-judge"],
    )

    differences = differences.filter(first_judge_trial=1, second_judge_trial=1)
    assert set(differences["split"]) == set(results.splits)
    [difference] = differences.filter(split="legal").to_dicts()
    assert difference["first"] == "alder-large"
    assert difference["second_model"] == "cedar-mini"
    assert difference["first_judge"] == "strict-judge"
    expected = difference["second_mean"] - difference["first_mean"]
    assert difference["difference"] == pytest.approx(expected)
    assert difference["ci_low"] < difference["difference"] < difference["ci_high"]
    assert "cedar-mini" in difference["sentence"]


@pytest.mark.parametrize(
    ("read", "reason"),
    [
        (
            lambda results: results.table("leaderbord"),
            "no table or view leaderbord (did you mean `leaderboard`?)",
        ),
        (
            lambda results: results.leaderboard(models=["nobody"]),
            "nobody: not found; known: alder-large",
        ),
        (lambda results: results.leaderboard(by="colour"), "no such breakdown"),
        (
            lambda results: results.leaderboard(vintage="never"),
            "never: not found; known: ",
        ),
        (lambda results: results.diff("alder-large"), "at least two names"),
        (
            lambda results: results.table("tasks", format="xml"),
            "must be polars, arrow or pandas",
        ),
    ],
)
def test_a_mistake_is_one_line_that_names_what_there_is(results, read, reason):
    with pytest.raises(UsageError, match=one_line(reason)):
        read(results)


def test_a_folder_that_does_not_exist_is_refused(tmp_path):
    with pytest.raises(UsageError, match=one_line("run `prbench run` first")):
        open_results(tmp_path / "nowhere")


def test_a_benchmark_that_is_not_stored_is_refused(world_job):
    with pytest.raises(UsageError, match=one_line("it has prbench")):
        open_results(world_job.warehouse, benchmark="other")


def test_a_folder_without_results_is_refused(tmp_path):
    with pytest.raises(WarehouseError, match="nothing is published here yet"):
        open_results(tmp_path)


@pytest.mark.parametrize(
    ("choice", "has_rows"),
    [
        ({"judges": ["lawyers"]}, True),
        ({"vintage": "2026-10-05", "models": ["birch-2"]}, False),
    ],
)
def test_columns_of_a_leaderboard_have_their_types_without_any_value(
    results,
    choice,
    has_rows,
):
    board = results.leaderboard(**choice)

    assert board["ci_low"].null_count() == len(board)
    assert (len(board) > 0) == has_rows
    assert board.schema["ci_low"] == pl.Float64
    assert board.schema["mean_score"] == pl.Float64
    assert board.schema["cost_usd"] == pl.Float64
    assert board.schema["rank"] == pl.Int64
    assert board.schema["is_below_bar"] == pl.Boolean
    assert board.schema["model"] == pl.String


def test_columns_of_a_difference_have_their_types_without_any_value(results):
    differences = results.diff(
        "alder-large",
        "birch-2",
        judges=["lawyers"],
    )

    assert differences["ci_low"].null_count() == len(differences)
    assert differences.schema["ci_low"] == pl.Float64
    assert differences.schema["p_adjusted"] == pl.Float64
    assert differences.schema["is_significant"] == pl.Boolean


@pytest.fixture
def published(tmp_path) -> Job:
    job = job_on("sample", tmp_path / "warehouse")
    written(job.warehouse, admitted(["t1", "t2"])).publish()
    return job


def task_ids_in(location: str | Path) -> list[str]:
    with open_results(location) as results:
        return sorted(results.table("tasks")["task_id"])


def test_a_warehouse_and_a_copied_file_hold_the_same(published, tmp_path):
    copy = tmp_path / "copied.duckdb"
    copy.write_bytes((published.warehouse / DATABASE).read_bytes())

    assert task_ids_in(published.warehouse) == ["t1", "t2"]
    assert task_ids_in(copy) == ["t1", "t2"]


def test_a_publication_in_a_folder_or_a_store_holds_the_same(published, tmp_path):
    for location in (str(tmp_path / "board"), "memory://board"):
        publish(published, open_location(location))

        assert task_ids_in(location) == ["t1", "t2"]


def test_a_copy_from_a_store_is_deleted_when_it_is_closed(
    published,
    tmp_path,
    monkeypatch,
):
    publish(published, open_location("memory://other"))
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))

    results = open_results("memory://other")
    assert list(temporary.rglob(DATABASE))

    results.close()
    assert list(temporary.iterdir()) == []


NOTEBOOK = Path(tasks.results.__file__).parent / "example.ipynb"


def read_notebook() -> Any:
    return nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]


def run_notebook(folder: Path) -> list[Any]:
    """Run the notebook in a folder, and return the data of its outputs."""
    notebook = read_notebook()
    NotebookClient(
        notebook,
        timeout=300,
        resources={"metadata": {"path": str(folder)}},
    ).execute()
    outputs = []
    for cell in notebook.cells:
        outputs += [output["data"] for output in cell.get("outputs", ())]
    return outputs


def test_the_notebook_is_kept_without_outputs():
    notebook = read_notebook()

    nbformat.validate(notebook)  # type: ignore[no-untyped-call]
    for cell in notebook.cells:
        assert not cell.get("outputs")
        assert not cell.get("execution_count")


@pytest.mark.slow
def test_the_notebook_shows_the_leaderboard_and_charts(
    world_job,
    tmp_path,
    monkeypatch,
):
    monkeypatch.setenv("PRBENCH_WAREHOUSE", str(world_job.warehouse))

    outputs = run_notebook(tmp_path)

    texts = [output["text/plain"] for output in outputs]
    assert "prbench" in texts[0]
    assert "birch-2" in texts[1]
    assert any("label" in text and "mean_score" in text for text in texts)
    assert sum("vegaEmbed" in output.get("text/html", "") for output in outputs) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_without_results_the_notebook_says_what_to_run(tmp_path, monkeypatch):
    monkeypatch.delenv("PRBENCH_WAREHOUSE", raising=False)

    with pytest.raises(CellExecutionError, match="run `prbench run` first"):
        run_notebook(tmp_path)
