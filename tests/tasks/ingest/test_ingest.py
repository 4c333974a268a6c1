"""Ingest: rows of a file become tasks, criteria and split members of one revision."""

import hashlib
import json
import os
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.benchmarks import load_benchmark
from tasks.ingest import ingest
from tasks.rules.errors import PipelineError, UsageError
from tests.kit import (
    Row,
    good_row,
    good_rubric,
    job_on,
    one_line,
    rows_in,
    values_in,
    write_jsonl,
)
from tests.tasks.dataset.rows import HUB_SCHEMA

pytestmark = pytest.mark.usefixtures("without_scores")


def write_parquet(path: Path, rows: list[Row]) -> Path:
    pq.write_table(pa.Table.from_pylist(rows, schema=HUB_SCHEMA), path)
    return path


def parts_of(root: Path) -> list[str]:
    return sorted(
        str(path.relative_to(root)) for path in (root / "parts").rglob("*.parquet")
    )


@pytest.fixture
def root(tmp_path) -> Path:
    return tmp_path / "warehouse"


ROWS = [good_row("t1"), good_row("t2", rubric=good_rubric("t2", 12))]


@pytest.mark.parametrize(
    ("write", "name"),
    [(write_jsonl, "finance.jsonl"), (write_parquet, "finance.parquet")],
)
def test_a_file_becomes_tasks_criteria_and_members_of_the_split_of_its_name(
    tmp_path,
    root,
    write,
    name,
):
    file = write(tmp_path / name, ROWS)

    ingest(job_on(file, root))

    columns = "task_id, n_criteria, positive_weight, splits, is_admitted"
    assert values_in(root, f"select {columns} from tasks order by 1") == [
        ("t1", 10, 50.0, ["finance"], False),
        ("t2", 12, 60.0, ["finance"], False),
    ]
    query = "select task_id, count(*) from criteria group by 1 order by 1"
    assert values_in(root, query) == [("t1", 10), ("t2", 12)]


def test_the_revision_of_a_file_is_a_hash_of_its_bytes(tmp_path, root):
    file = write_jsonl(tmp_path / "finance.jsonl", ROWS)

    ingest(job_on(file, root))

    revision = hashlib.sha256(file.read_bytes()).hexdigest()[:40]
    query = "select distinct dataset_revision from tasks"
    assert values_in(root, query) == [(revision,)]


def test_a_configured_split_names_the_file(tmp_path, root):
    file = write_jsonl(tmp_path / "rows.jsonl", ROWS)
    # A byte order mark is skipped.
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())

    ingest(job_on("", root, dataset={"source": str(file), "splits": ["legal_hard"]}))

    query = "select distinct split from split_members"
    assert values_in(root, query) == [("legal_hard",)]


def test_a_folder_is_a_data_set_with_a_split_for_each_file(tmp_path, root):
    folder = tmp_path / "data"
    folder.mkdir()
    write_jsonl(folder / "finance.jsonl", ROWS)
    write_jsonl(folder / "finance_hard.jsonl", ROWS[1:])

    ingest(job_on(folder, root))

    query = "select task_id, splits, n_rows from tasks order by task_id"
    assert values_in(root, query) == [
        ("t1", ["finance"], 1),
        ("t2", ["finance", "finance_hard"], 1),
    ]


def test_the_same_revision_again_changes_no_part(tmp_path, root):
    job = job_on(write_jsonl(tmp_path / "finance.jsonl", ROWS), root)
    ingest(job)
    parts = parts_of(root)

    ingest(job)

    assert parts_of(root) == parts


def test_another_revision_is_stored_beside_the_earlier_one(tmp_path, root):
    ingest(job_on(write_jsonl(tmp_path / "finance.jsonl", ROWS), root))
    ingest(job_on(write_jsonl(tmp_path / "finance.jsonl", ROWS[:1]), root))

    query = "select task_id, count(*) from tasks group by 1 order by 1"
    assert values_in(root, query) == [("t1", 2), ("t2", 1)]


def test_a_canary_stands_in_no_table_with_a_text_and_the_authors_notes_nowhere(
    tmp_path, root
):
    row = good_row("t", scratchpad="planted-notes")

    ingest(job_on(write_jsonl(tmp_path / "finance.jsonl", [row]), root))

    columns = rows_in(root, "from information_schema.columns")
    tables = [
        column["table_name"]
        for column in columns
        if column["column_name"] == "canary"
    ]
    assert tables == ["split_members"]
    text = str([pq.read_table(root / part).to_pylist() for part in parts_of(root)])
    assert "planted-notes" not in text
    assert "What does t cost?" in text


# mistakes of users


def lacking(row: Row, column: str) -> list[Row]:
    return [{name: value for name, value in row.items() if name != column}]


def bytes_file(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


GOOD_LINE = json.dumps(good_row("t")).encode()
BROKEN = {
    "a missing column": (
        lambda p: write_jsonl(p / "x.jsonl", lacking(good_row("t"), "rubric")),
        "lacks the column rubric",
    ),
    "a broken line": (
        lambda p: bytes_file(p / "x.jsonl", GOOD_LINE + b"\n\n{broken\n"),
        "x.jsonl:3: not a JSON",
    ),
    "a line that is a list": (
        lambda p: write_jsonl(p / "x.jsonl", [[1]]),
        "x.jsonl:1: not a JSON object but list",
    ),
    "a key twice": (
        lambda p: bytes_file(
            p / "x.jsonl",
            GOOD_LINE + b"\n" + GOOD_LINE[:-1] + b', "task": "another"}\n',
        ),
        "x.jsonl:2: not a JSON object (key 'task' appears twice",
    ),
    "a value nested deeply": (
        lambda p: bytes_file(
            p / "x.jsonl",
            GOOD_LINE[:-1] + b', "more": ' + b"[" * 950 + b"]" * 950 + b"}",
        ),
        "x.jsonl:1: not a JSON",
    ),
    "another encoding": (
        lambda p: bytes_file(p / "x.jsonl", '{"é": 1}'.encode("latin-1")),
        "not UTF-8",
    ),
    "an empty file": (lambda p: bytes_file(p / "x.jsonl", b""), "there is no row"),
    "a Parquet file that is none": (
        lambda p: bytes_file(p / "x.parquet", b"PAR? no"),
        "cannot be read as Parquet",
    ),
    "a row without an id": (
        lambda p: write_jsonl(p / "x.jsonl", [good_row("t"), good_row("t", task="")]),
        "row 2: ",
    ),
}


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_be_read_is_refused_in_one_line_and_nothing_of_it_is_stored(
    tmp_path,
    root,
    case,
):
    make, reason = BROKEN[case]
    file = make(tmp_path)

    with pytest.raises(PipelineError, match=one_line(reason)) as caught:
        ingest(job_on(file, root))

    assert str(file) in str(caught.value)
    for part in parts_of(root):
        assert "task" not in part
        assert "criteria" not in part


def test_a_benchmark_s_own_mistake_names_the_row_that_showed_it(
    tmp_path,
    root,
    monkeypatch,
):
    rows = [good_row("good"), good_row("bad") | {"rubric": 7}]
    source = write_jsonl(tmp_path / "x.jsonl", rows)
    benchmark = load_benchmark("prbench")
    careless = replace(
        benchmark,
        parse_row=lambda row: benchmark.parse_row(row | {"rubric": [*row["rubric"]]}),
    )
    ingest_module = import_module("tasks.ingest")
    monkeypatch.setattr(ingest_module, "load_benchmark", lambda _: careless)

    reason = r"x\.jsonl: row 2: prbench\.parse_row: TypeError: "
    with pytest.raises(PipelineError, match=reason):
        ingest(job_on(source, root))


def test_a_turn_count_that_no_table_can_hold_harms_no_other_task(tmp_path, root):
    rows = [good_row("bad", turns=1e300), good_row("good")]

    ingest(job_on(write_jsonl(tmp_path / "x.jsonl", rows), root))

    tasks = rows_in(root, "from tasks order by task_id")
    assert [task["turns"] for task in tasks] == [None, 1]


@pytest.mark.parametrize(
    ("dataset", "reason"),
    [
        ({"source": "no/such/file.jsonl"}, "is not a file"),
        ({"source": "rows.csv"}, "unknown kind of file; use one of .parquet, .jsonl"),
        ({"source": "x.jsonl", "splits": ["a", "b"]}, "can be one split, not 2"),
        ({"source": "empty"}, "has no .parquet or .jsonl file"),
        ({"source": "sample", "splits": ["finance"]}, "has no split 'finance'"),
    ],
)
def test_a_data_set_that_is_named_wrongly_is_a_usage_error_of_one_line(
    tmp_path,
    root,
    monkeypatch,
    dataset,
    reason,
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.csv").write_text("task\n")
    (tmp_path / "empty").mkdir()
    write_jsonl(tmp_path / "x.jsonl", [good_row("t")])

    with pytest.raises(UsageError, match=one_line(reason)):
        ingest(job_on("", root, dataset=dataset))


@pytest.mark.parametrize("name", ["legal.jsonl", "prompts.tsv"])
def test_a_pipe_in_a_data_set_s_folder_is_refused_and_not_waited_for(
    tmp_path,
    root,
    name,
):
    folder = tmp_path / "folder"
    folder.mkdir()
    write_jsonl(folder / "finance.jsonl", [good_row("t")])
    os.mkfifo(folder / name)

    with pytest.raises(PipelineError, match=f"{name}: is not a regular file"):
        ingest(job_on(folder, root))
