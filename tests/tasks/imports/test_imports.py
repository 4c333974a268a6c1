"""Imports of responses and verdicts made elsewhere: all rows of a file are stored, or it is refused
in one line.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.config.job import Job
from tasks.imports.files import batches, retract
from tasks.imports.responses import import_responses
from tasks.imports.verdicts import import_verdicts
from tasks.ingest import ingest
from tasks.rules.errors import PipelineError, UsageError
from tests.kit import (
    Row,
    few_published,
    good_row,
    good_rubric,
    job_on,
    judged,
    prepared,
    row,
    rows_in,
    values_in,
    write_jsonl,
    written,
)
from tests.tasks.imports.conftest import job_with_tasks, refusal

pytestmark = pytest.mark.usefixtures("without_scores")

WriteRows = Callable[[list[Row]], Path]
RESPONSE = {
    "task": "t1",
    "model": "ada",
    "response": "A response.",
}
VERDICT = {
    "task": "t1",
    "model": "ada",
    "criterion": "t1-c0",
    "criteria_met": True,
}


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Job:
    """Two tasks, one response, one verdict; tests must not change them."""
    folder = tmp_path_factory.mktemp("imports")
    job = job_with_tasks(folder, "t1", "t2")
    with few_published():
        import_responses(job, write_jsonl(folder / "responses.jsonl", [RESPONSE]))
        import_verdicts(job, write_jsonl(folder / "verdicts.jsonl", [VERDICT]))
    return job


@pytest.fixture
def write_rows(tmp_path) -> WriteRows:
    """Write rows as JSON Lines, and return the path of the file."""
    return lambda rows: write_jsonl(tmp_path / "rows.jsonl", rows)


# responses


def test_a_row_is_stored_as_it_is_and_marked_as_imported(shared):
    columns = "model, trial, text, status, source, chars_alnum, attempts"
    assert values_in(shared, f"select {columns} from responses") == [
        ("ada", 1, "A response.", "ok", "imported", 9, 0)
    ]
    columns = "judge, judge_config_hash, template_hash, source, judge_trial"
    assert values_in(shared, f"select {columns} from verdicts") == [
        ("imported", "imported", "imported", "imported", 1)
    ]


def test_a_row_is_stored_once(shared, write_rows):
    assert import_responses(shared, write_rows([RESPONSE])).rows == 0
    assert import_verdicts(shared, write_rows([VERDICT])).rows == 0


LONG = "word " * 40_000


@pytest.mark.parametrize(
    ("name", "text", "response"),
    [
        (
            "an object by task.json",
            json.dumps({"t2": "Two."}),
            "Two.",
        ),
        (
            "a list of rows.json",
            json.dumps([{"task": "t2", "response": "Two."}]),
            "Two.",
        ),
        ("long.csv", f"task,response\nt2,{LONG}\n", LONG),
    ],
)
def test_a_response_is_read_from_every_form_of_file(
    job,
    tmp_path,
    name,
    text,
    response,
):
    (tmp_path / name).write_text(text)

    import_responses(job, tmp_path / name, model="bell")

    query = "select task_id, text from responses where model = 'bell'"
    assert values_in(job, query) == [("t2", response)]


def test_a_response_has_the_vintage_of_its_row_or_of_the_job(job, write_rows):
    dated = RESPONSE | {"model": "bell", "vintage": "2026-11-03"}
    undated = RESPONSE | {"model": "bell", "vintage": " "}

    later_job = job.model_copy(update={"vintage": "later"})

    import_responses(later_job, write_rows([dated, undated]))

    query = "select vintage from responses where model = 'bell' order by vintage"
    assert values_in(job, query) == [("2026-11-03",), ("later",)]


def test_an_empty_response_has_failed(job, write_rows):
    import_responses(job, write_rows([RESPONSE | {"model": "bell", "response": " "}]))

    query = "select status, text from responses where model = 'bell'"
    assert values_in(job, query) == [("empty", None)]


def _parquet_with_a_column_twice() -> bytes:
    """The content of a Parquet file with two columns of one name."""
    columns = [pa.array(["t2"])] * 3
    table = pa.Table.from_arrays(columns, names=["task", "response", "response"])
    buffer = pa.BufferOutputStream()
    pq.write_table(table, buffer)
    return bytes(buffer.getvalue())


UNREADABLE = {
    "broken JSON": ("x.json", b"{broken", "not JSON"),
    "CSV in another encoding": (
        "x.csv",
        "task,model,response\nt2,bell,é\n".encode("latin-1"),
        "not CSV in UTF-8",
    ),
    "another kind of file": ("x.txt", b"t2\n", "unknown kind of file"),
    "a list of texts": ("x.json", b'["t2"]', "not an object but str"),
    "a key twice in a row": (
        "x.jsonl",
        b'{"task": "t1", "response": "A."}\n\n{"task": "t2", "response": "", "task": "t1"}',
        ":3: ",
    ),
    "a column twice": (
        "x.csv",
        b"task,response,response\nt2,A.,B.\n",
        "x.csv: has the column 'response' twice",
    ),
    "a quote that is closed too late": (
        "x.csv",
        b'task,response\nt2,"A.\nt1,B.\nt1,"C"\n',
        "x.csv: row 1: a quote",
    ),
    "text after a quote": (
        "x.csv",
        b'task,response\nt2,"A."B\n',
        "x.csv: row 1: a quote",
    ),
    "a quote that is never closed": (
        "x.csv",
        b'task,response\nt1,A.\n\nt2,"B.\nt1,C.\nt1,D.\n',
        "x.csv: row 2: a quote",
    ),
    "a quote that is never closed in the headings": (
        "x.csv",
        b'task,"response\nt1,A.\n',
        "x.csv: its headings: a quote",
    ),
    "a workbook": (
        "x.csv",
        b"PK\x03\x04\x14\0\6\0\x08",
        "x.csv: not CSV but a workbook",
    ),
    "a workbook of old Excel": (
        "x.csv",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "x.csv: not CSV but a workbook",
    ),
    "Parquet with another ending": (
        "x.csv",
        b"PAR1\x15\4\x15",
        "x.csv: not CSV but Parquet",
    ),
    "a page": (
        "x.csv",
        b"\xef\xbb\xbf\r\n <!DOCTYPE html>\n<table>\n",
        "x.csv: not CSV but HTML or XML",
    ),
    "a column twice in Parquet": (
        "x.parquet",
        _parquet_with_a_column_twice(),
        "x.parquet: has the column 'response' twice",
    ),
    "a cell less": (
        "x.csv",
        b'task,response\nt2,"A\nB"\n\nt1\n',
        "row 2: has fewer or more cells",
    ),
    "a cell more": (
        "x.csv",
        b'task,response\nt2,"A\nB"\n\nt1,B.,C.\n',
        "row 2: has fewer or more cells",
    ),
    "a blank line": (
        "x.csv",
        b'task,response\nt2,"A\nB"\n\n  \n',
        "row 2: has fewer or more cells",
    ),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_a_file_that_cannot_be_read_is_refused_in_one_line(shared, tmp_path, case):
    name, content, reason = UNREADABLE[case]
    (tmp_path / name).write_bytes(content)

    assert reason in refusal(import_responses, shared, tmp_path / name, "ada")


AS_WRITTEN = [
    "007",
    "1e5",
    "true",
    "null",
    "NaN",
    "2026-11-03",
    " a ",
    'a "b" c',
    "a\r\nb",
    "x\u2028y",
    "A\x00.",
]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_a_csv_cell_is_the_text_that_is_written_there(job, tmp_path, end):
    """A cell is quoted only if it must be. Blank lines are left out, and a quoted empty cell is an
    empty response, whose text is NULL.
    """
    lines = ["", "task,trial,response"]
    for trial, text in enumerate(AS_WRITTEN, start=1):
        quoted_text = text.replace('"', '""')
        cell = f'"{quoted_text}"' if set(text) & set('"\r') else text
        lines.append(f"t2,{trial},{cell}")
    (tmp_path / "x.csv").write_bytes(end.join([*lines, "", 't2,99,""']).encode())

    import_responses(job, tmp_path / "x.csv", "bell")

    responses = rows_in(job, "from responses where model = 'bell' order by trial")
    assert [row["text"] for row in responses] == [*AS_WRITTEN, None]


REFUSED_RESPONSES = [
    ([{"task": "t1", "response": "x"}], "`model` is missing"),
    ([{"task": "t1", "model": "ada"}], "`response` is missing"),
    ([RESPONSE | {"trial": 0}], "`trial` is 0"),
    ([RESPONSE | {"trial": "²"}], "`trial` is '²'"),
    (
        [RESPONSE | {"response": "Another."}],
        "row 1: a different response already exists",
    ),
    (
        [RESPONSE | {"trial": 10**9}],
        "row 1: `trial` is 1000000000; it is a whole number",
    ),
    (
        [RESPONSE | {"trial": 2}, RESPONSE | {"task": "t9"}],
        "row 2: task 't9' is not in revision",
    ),
    (
        [RESPONSE | {"vintage": "2026-13-45"}],
        "vintage '2026-13-45' is not a date",
    ),
]


@pytest.mark.parametrize(("rows", "reason"), REFUSED_RESPONSES)
def test_responses_that_do_not_fit_are_refused_in_one_line_and_not_stored(
    shared,
    write_rows,
    rows,
    reason,
):
    assert reason in refusal(import_responses, shared, write_rows(rows))


# verdicts

DECISIONS = [
    ({"criteria_met": True}, (1.0, "met")),
    ({"criteria_met": False}, (0.0, "unmet")),
    ({"criteria_met": None, "value": 1}, (1.0, "met")),
    ({"value": "0"}, (0.0, "unmet")),
    ({"criteria_met": "TRUE"}, (1.0, "met")),
    ({"criteria_met": "", "value": "0.0"}, (0.0, "unmet")),
]


def test_a_decision_is_read_in_every_way_of_writing_it(job, write_rows):
    cell = {"task": "t1", "model": "ada", "criterion": "t1-c0"}
    # Each decision has a judge of its own, so that no two are the same verdict.
    rows = [
        cell | decision | {"judge": f"judge {index}"}
        for index, (decision, _) in enumerate(DECISIONS)
    ]

    import_verdicts(job, write_rows(rows))

    query = (
        "select value, status from verdicts where judge <> 'imported' order by judge"
    )
    assert values_in(job, query) == [outcome for _, outcome in DECISIONS]


WORDS = {
    " SATISFIED ": 1.0,
    "met": 1.0,
    "partially_satisfied": 0.5,
    "Partially  satisfied": 0.5,
    "partial": 0.5,
    "Not-Satisfied": 0.0,
    "unmet": 0.0,
}


@pytest.mark.parametrize("column", ["verdict", "value", "criteria_met"])
def test_a_decision_in_three_steps_is_read_in_every_way_of_writing_its_word(
    job,
    write_rows,
    column,
):
    undecided = VERDICT | {"criteria_met": None}
    # Each word is the judge of its row, too, so that no two are the same verdict.
    rows = [undecided | {column: word, "judge": word} for word in WORDS]

    import_verdicts(job, write_rows(rows), grading="ternary")

    query = "select judge, value from verdicts where judge <> 'imported'"
    values = {word.strip(): value for word, value in WORDS.items()}
    assert dict(values_in(job, query)) == values


def test_a_word_that_is_no_decision_is_refused(shared, write_rows):
    rows = [VERDICT | {"criteria_met": "unsatisfied"}]

    with pytest.raises(PipelineError, match="the decision is 'unsatisfied'"):
        import_verdicts(shared, write_rows(rows), grading="ternary")


def test_the_same_file_for_another_judge_is_another_batch(job, write_rows):
    path = write_rows([VERDICT | {"judge": None}])
    for judge in ("dora", "emil"):
        import_verdicts(job, path, judge=judge)

    [verdict] = rows_in(job, "from verdicts where judge = 'dora'")
    retract(job, verdict["import_batch"])

    [verdict_left] = rows_in(job, "from verdicts where judge <> 'imported'")
    assert verdict_left["judge"] == "emil"


REFUSED_VERDICTS = [
    ([VERDICT | {"task": "t9"}], "t9"),
    ([VERDICT | {"criterion": "t2-c0"}], "no criterion 't2-c0'"),
    ([VERDICT | {"model": "bell"}], "bell"),
    ([VERDICT | {"judge_trial": 10**9}], "row 1: `judge_trial` is 1000000000"),
    (
        [VERDICT | {"vintage": "2026-11-03"}],
        "no usable response of ada to task t1, trial 1, in vintage 2026-11-03; import it first",
    ),
    (
        [VERDICT | {"response": "Another response."}],
        "`response` is not the stored response of ada",
    ),
    ([VERDICT | {"criteria_met": None, "value": 0.5}], "0.5"),
    ([VERDICT | {"criteria_met": "maybe"}], "maybe"),
    ([VERDICT | {"criteria_met": None}], "missing"),
    (
        [VERDICT | {"criteria_met": False}],
        "row 1: a different verdict already exists (judge imported, value 1, import batch ",
    ),
    (
        [
            VERDICT | {"judge": "dora"},
            VERDICT | {"judge": "dora", "criteria_met": False},
        ],
        "row 2: a different verdict already exists (judge dora, value 1, earlier in this import)",
    ),
]


@pytest.mark.parametrize(("rows", "reason"), REFUSED_VERDICTS)
def test_verdicts_that_do_not_fit_are_refused_in_one_line_and_not_stored(
    shared,
    write_rows,
    rows,
    reason,
):
    assert reason in refusal(import_verdicts, shared, write_rows(rows))


UNKNOWN = "2 rows skipped: the task or criterion is not in the data set"


def test_responses_to_unknown_tasks_are_skipped_on_demand(job, write_rows):
    rows = [RESPONSE | {"task": task, "model": "bell"} for task in ("t9", "t1", "t8")]

    report = import_responses(job, write_rows(rows), skip_unknown=True)

    assert report.rows == 1
    assert report.notes[-1] == UNKNOWN


def test_verdicts_on_unknown_tasks_and_criteria_are_skipped_on_demand(
    job, write_rows
):
    verdict = VERDICT | {"judge": "dora"}
    path = write_rows(
        [verdict | {"task": "t9"}, verdict, verdict | {"criterion": "t2-c0"}]
    )

    reason = r"task 't9' is not in revision .* \(--skip-unknown skips"
    with pytest.raises(PipelineError, match=f"row 1: {reason}"):
        import_verdicts(job, path)
    report = import_verdicts(job, path, skip_unknown=True)

    assert report.rows == 1
    assert report.notes[-1] == UNKNOWN


def test_options_give_task_judge_and_grading_to_rows_without_them(job, write_rows):
    path = write_rows(
        [
            {
                "task": "",
                "model": "ada",
                "criterion": "t1-c0",
                "value": 1,
            },
            VERDICT
            | {
                "task": "",
                "judge": "dora",
                "grading": "binary",
            },
        ]
    )

    reason = r"`task` is missing; add it \(--task ID gives it to all rows\)"
    with pytest.raises(PipelineError, match=reason):
        import_verdicts(job, path)
    import_verdicts(
        job,
        path,
        task="t1",
        judge="emil",
        grading="ternary",
    )

    query = (
        "select judge, grading from verdicts where judge <> 'imported' order by all"
    )
    assert values_in(job, query) == [("dora", "binary"), ("emil", "ternary")]


def test_the_occurrence_identifies_one_of_several_criteria_with_the_same_text(
    tmp_path, write_rows
):
    rubric = good_rubric("t1")
    title = rubric[0]["title"]
    rubric[2]["title"] = title
    data = write_jsonl(tmp_path / "finance.jsonl", [good_row("t1", rubric=rubric)])
    job = job_on(data, tmp_path / "warehouse")
    ingest(job)
    import_responses(job, write_rows([RESPONSE]))
    verdict = VERDICT | {"criterion": title}

    reason = (
        "has the criterion .* twice; give its id, its `category` or its `occurrence`"
    )
    with pytest.raises(PipelineError, match=reason):
        import_verdicts(job, write_rows([verdict]))
    with pytest.raises(PipelineError, match="has no criterion"):
        import_verdicts(job, write_rows([verdict | {"occurrence": 3}]))
    # An unknown category is ignored: other data may name categories differently.
    unmet = {"occurrence": "2", "category": "Other", "criteria_met": False}
    import_verdicts(job, write_rows([verdict | {"occurrence": 1}, verdict | unmet]))

    query = """
        select position, value
        from verdicts
        inner join criteria using (task_id, criterion_id)
        order by all
    """
    assert values_in(job, query) == [(0, 1.0), (2, 0.0)]


def counts(job: Job) -> tuple[int, int]:
    """Numbers of published responses and verdicts."""
    return len(rows_in(job, "from responses")), len(rows_in(job, "from verdicts"))


def batch_of(job: Job, table: str = "responses") -> str:
    [row] = rows_in(job, f"from {table} where model = 'ada'")
    return str(row["import_batch"])


@pytest.mark.parametrize(
    ("table", "content", "n_responses"),
    [
        ("responses", "1 response and 1 verdict", 1),
        ("verdicts", ": 1 verdict", 2),  # without "0 responses and"
    ],
)
def test_a_retracted_import_goes_with_verdicts_on_it(
    table,
    content,
    n_responses,
    job,
    write_rows,
):
    import_responses(job, write_rows([RESPONSE | {"model": "bell"}]))
    batch = batch_of(job, table)

    assert f"{content} retracted" in retract(job, batch).line
    assert "is already retracted" in retract(job, batch).line
    assert counts(job) == (n_responses, 0)


def test_an_unknown_batch_is_not_retracted(shared):
    with pytest.raises(UsageError, match="no such batch"):
        retract(shared, "deadbeef")


def test_batches_are_listed_with_their_rows_times_and_files_also_when_they_are_retracted(
    job, write_rows
):
    command = "prbench import responses rows.jsonl"
    run = row("runs", run_id="a-later-run", command=command)
    written(job.warehouse, {"runs": [run]})
    path = write_rows(
        [RESPONSE | {"task": "t2"}, RESPONSE | {"task": "t2", "trial": 2}]
    )
    import_responses(job.model_copy(update={"run_id": "a-later-run"}), path)
    retract(job, batch_of(job, "verdicts"))

    later_batch, verdict_batch, response_batch = batches(job)

    assert later_batch["command"] == command
    assert later_batch["n_responses"] == 2
    assert later_batch["imported_at"] > verdict_batch["imported_at"]
    assert verdict_batch["imported_at"] > response_batch["imported_at"]
    assert verdict_batch["n_verdicts"] == 1
    assert verdict_batch["is_retracted"]
    assert verdict_batch["command"] is None
    assert not response_batch["is_retracted"]


RESPONSES = "select * exclude (cost_usd) from responses order by all"
VERDICTS = "select * exclude (cost_usd) from verdicts order by all"


@pytest.mark.slow
def test_importing_a_file_again_restores_its_rows_and_verdicts(
    job, write_rows, server
):
    judge = {
        "name": "openai/judge",
        "label": "judge",
        "api_base": server.api_base,
        "max_tokens": 1000,
    }
    job = prepared(job_on(job.settings.dataset.source, job.warehouse, judges=[judge]))
    judged(job)
    responses = rows_in(job, RESPONSES)
    verdicts = rows_in(job, VERDICTS)
    retract(job, batch_of(job))
    assert counts(job) == (0, 0)

    judged(job)
    report = import_responses(job, write_rows([RESPONSE]))
    judged(job)

    # One imported verdict, and ten of the judge, who was called only in the beginning.
    assert "1 response and 11 verdicts restored" in report.line
    assert rows_in(job, RESPONSES) == responses
    assert rows_in(job, VERDICTS) == verdicts
    assert len(verdicts) == 11
    assert len(server.book) == 10
