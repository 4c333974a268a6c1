"""Imports of responses and verdicts made elsewhere: of all rows, or refused in one line."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.config.job import Job
from tasks.imports.files import batches, retract
from tasks.imports.responses import import_responses
from tasks.imports.verdicts import import_verdicts
from tasks.ingest import ingest
from tasks.rules.errors import PipelineError, UsageError
from tests.faults.server import FaultServer
from tests.kit import (
    good_row,
    good_rubric,
    job_on,
    judged,
    one_line,
    prepared,
    row,
    rows_in,
    values_in,
    write_jsonl,
    written,
)
from tests.tasks.imports.conftest import ingested

pytestmark = pytest.mark.usefixtures("without_scores")

Given = dict[str, Any]
Write = Callable[[list[Given]], Path]
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
def shared(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """Two tasks, one response, one verdict; tests must not change them."""
    folder = tmp_path_factory.mktemp("imports")
    job = ingested(folder, "t1", "t2")
    import_responses(job, write_jsonl(folder / "responses.jsonl", [RESPONSE]))
    import_verdicts(job, write_jsonl(folder / "verdicts.jsonl", [VERDICT]))
    return job


@pytest.fixture
def file(tmp_path: Path) -> Write:
    """Write rows as JSON Lines."""
    return lambda rows: write_jsonl(tmp_path / "rows.jsonl", rows)


def refuse(job: Job, bring_in: Callable[[Job, Path], object], file: Path, reason: str) -> None:
    """Assert that a file is refused in one line with this reason, and that nothing of it is
    stored.
    """
    before = set((job.warehouse / "parts").rglob("*.parquet"))
    with pytest.raises(PipelineError, match=one_line(reason)):
        bring_in(job, file)
    assert before == set((job.warehouse / "parts").rglob("*.parquet"))


# responses


def test_a_row_is_stored_once_as_given_and_marked_as_imported(shared: Job, file: Write) -> None:
    assert (
        0
        == import_responses(shared, file([RESPONSE])).rows
        == import_verdicts(shared, file([VERDICT])).rows
    )
    columns = "model, trial, text, status, source, chars_alnum, attempts"
    expected = ("ada", 1, "A response.", "ok", "imported", 9, 0)
    assert [expected] == values_in(shared, f"select {columns} from responses")
    columns = "judge, judge_config_hash, template_hash, source, judge_trial"
    assert values_in(shared, f"select {columns} from verdicts") == [("imported",) * 4 + (1,)]


LONG = "word " * 40_000


@pytest.mark.parametrize(
    ("name", "text", "response"),
    [
        ("an object by task.json", json.dumps({"t2": "Two."}), "Two."),
        ("a list of rows.json", json.dumps([{"task": "t2", "response": "Two."}]), "Two."),
        ("lines.jsonl", json.dumps({"task": "t2", "response": "Two."}), "Two."),
        *(
            (f"{name}.csv", f"{mark}task,response\nt2,{cell}\n", cell.strip('"'))
            for name, mark, cell in (
                ("plain", "", '"Two."'),
                ("byte order mark", "\ufeff", '"Two."'),
                ("long", "", LONG),
            )
        ),
    ],
)
def test_every_form_of_file_says_the_same(
    job: Job, tmp_path: Path, name: str, text: str, response: str
) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8")
    import_responses(job, tmp_path / name, model="bell")

    assert [("t2", response)] == values_in(
        job, "select task_id, text from responses where model = 'bell'"
    )


REFUSED_RESPONSES: list[tuple[list[Given], str]] = [
    ([{"task": "t1", "response": "x"}], "`model` is missing"),
    ([{"task": "t1", "model": "ada"}], "`response` is missing"),
    *(
        ([RESPONSE | changed], reason)
        for changed, reason in (
            ({"trial": 0}, "`trial` is 0"),
            ({"trial": "²"}, "`trial` is '²'"),
            ({"response": "Another."}, "row 1"),
            ({"trial": 10**9}, "row 1: `trial` is 1000000000; it is a whole number"),
        )
    ),
    ([{**RESPONSE, "trial": 2}, {**RESPONSE, "task": "t9"}], "row 2"),
]


def test_a_response_has_the_vintage_of_its_row_or_of_the_job_and_an_empty_one_failed(
    job: Job, file: Write
) -> None:
    rows = [
        RESPONSE
        | {
            "model": "bell",
            "vintage": vintage,
            "response": vintage,
        }
        for vintage in ("2026-11-03", " ")
    ]
    import_responses(job.model_copy(update={"vintage": "later"}), file(rows))

    actual = values_in(
        job, "select vintage, status, text from responses where model = 'bell' order by vintage"
    )
    assert actual == [("2026-11-03", "ok", "2026-11-03"), ("later", "empty", None)]


def _twice() -> bytes:
    columns = [pa.array(["t2"])] * 3
    buffer = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_arrays(columns, names=["task", "response", "response"]), buffer)
    return bytes(buffer.getvalue())


UNREADABLE: dict[str, tuple[str, bytes, str]] = {
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
    "text after a quote": ("x.csv", b'task,response\nt2,"A."B\n', "x.csv: row 1: a quote"),
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
    "a workbook": ("x.csv", b"PK\x03\x04\x14\0\6\0\x08", "x.csv: not CSV but a workbook"),
    "a workbook of old Excel": (
        "x.csv",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1",
        "x.csv: not CSV but a workbook",
    ),
    "Parquet with another ending": ("x.csv", b"PAR1\x15\4\x15", "x.csv: not CSV but Parquet"),
    "a page": (
        "x.csv",
        b"\xef\xbb\xbf\r\n <!DOCTYPE html>\n<table>\n",
        "x.csv: not CSV but HTML or XML",
    ),
    "a column twice in Parquet": (
        "x.parquet",
        _twice(),
        "x.parquet: has the column 'response' twice",
    ),
    "a cell less": ("x.csv", b'task,response\nt2,"A\nB"\n\nt1\n', "row 2: has fewer or more cells"),
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
def test_a_file_that_cannot_be_read_is_refused_in_one_line(
    shared: Job, tmp_path: Path, case: str
) -> None:
    name, content, reason = UNREADABLE[case]
    (tmp_path / name).write_bytes(content)
    refuse(shared, lambda job, f: import_responses(job, f, "ada"), tmp_path / name, reason)


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
def test_a_csv_cell_is_the_text_that_is_written_there(job: Job, tmp_path: Path, end: str) -> None:
    cells = [
        '"{}"'.format(text.replace('"', '""')) if set(text) & set('"\r') else text
        for text in AS_WRITTEN
    ]
    lines = [
        "",
        "task,model,response",
        *(f"t2,{number:03},{cell}" for number, cell in enumerate(cells)),
        "",
        't2,empty,""',
    ]
    (tmp_path / "x.csv").write_bytes(end.join(lines).encode())
    import_responses(job, tmp_path / "x.csv")

    actual = values_in(job, "select model, text from responses where task_id = 't2' order by model")
    assert [
        *((f"{number:03}", text) for number, text in enumerate(AS_WRITTEN)),
        ("empty", None),
    ] == actual


# verdicts

DECISIONS: list[tuple[Given, float]] = [
    ({"criteria_met": True}, 1.0),
    ({"criteria_met": False}, 0.0),
    ({"criteria_met": None, "value": 1}, 1.0),
    ({"value": "0"}, 0.0),
    ({"criteria_met": "TRUE"}, 1.0),
    ({"criteria_met": "", "value": "0.0"}, 0.0),
]


def test_a_decision_is_read_in_every_way_of_writing_it_beside_the_response_that_was_read(
    job: Job, file: Write
) -> None:
    without = {name: of for name, of in VERDICT.items() if name != "criteria_met"} | {
        "response": "A response."
    }
    rows = [
        without | decision | {"judge": f"judge-{i}"} for i, (decision, _) in enumerate(DECISIONS)
    ]
    import_verdicts(job, file(rows))

    actual = values_in(
        job, "select value, status from verdicts where judge <> 'imported' order by judge"
    )
    assert [(value, "met" if value else "unmet") for _, value in DECISIONS] == actual


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
    job: Job, file: Write, column: str
) -> None:
    rows = [
        {
            **VERDICT,
            "criteria_met": None,
            column: word,
            "judge": f"judge-{i:02}",
        }
        for i, word in enumerate(WORDS)
    ]
    import_verdicts(job, file(rows), grading="ternary")

    actual = values_in(job, "select value from verdicts where judge <> 'imported' order by judge")
    assert [(value,) for value in WORDS.values()] == actual
    with pytest.raises(PipelineError, match="the decision is 'unsatisfied'"):
        import_verdicts(
            job,
            file(
                [
                    {
                        **VERDICT,
                        "criteria_met": None,
                        column: "unsatisfied",
                    }
                ]
            ),
            grading="ternary",
        )


def test_the_same_file_for_another_judge_is_another_batch(job: Job, file: Write) -> None:
    rows = file([{**VERDICT, "judge": None}])
    for judge in ("dora", "emil"):
        import_verdicts(job, rows, judge=judge)
    ((wrong,),) = values_in(job, "select import_batch from verdicts where judge = 'dora'")
    retract(job, wrong)

    assert values_in(job, "select judge from verdicts where judge <> 'imported'") == [("emil",)]


REFUSED_VERDICTS: list[tuple[list[Given], str]] = [
    *(
        ([VERDICT | changed], reason)
        for changed, reason in (
            ({"task": "t9"}, "t9"),
            ({"criterion": "t2-c0"}, "no criterion 't2-c0'"),
            ({"model": "bell"}, "bell"),
            ({"judge_trial": 10**9}, "row 1: `judge_trial` is 1000000000"),
            (
                {"vintage": "2026-11-03"},
                (
                    "no usable response of ada to task t1, trial 1, in vintage 2026-11-03; import"
                    " it first"
                ),
            ),
            ({"response": "Another response."}, "`response` is not the stored response of ada"),
            ({"criteria_met": None, "value": 0.5}, "0.5"),
            ({"criteria_met": "maybe"}, "maybe"),
            ({"criteria_met": None}, "missing"),
            (
                {"criteria_met": False},
                "row 1: a different verdict already exists (judge imported, value 1, import batch ",
            ),
        )
    ),
    (
        [VERDICT | {"judge": "dora"}, VERDICT | {"judge": "dora", "criteria_met": False}],
        "row 2: a different verdict already exists (judge dora, value 1, earlier in this import)",
    ),
]


@pytest.mark.parametrize(
    ("bring_in", "rows", "reason"),
    [
        *((import_responses, *of) for of in REFUSED_RESPONSES),
        *((import_verdicts, *of) for of in REFUSED_VERDICTS),
    ],
)
def test_rows_that_do_not_fit_are_refused_in_one_line_and_not_stored(
    shared: Job,
    file: Write,
    bring_in: Callable[[Job, Path], object],
    rows: list[Given],
    reason: str,
) -> None:
    refuse(shared, bring_in, file(rows), reason)


def test_rows_on_tasks_and_criteria_that_are_not_here_are_left_out_where_that_is_asked(
    job: Job, file: Write
) -> None:
    responses = file([RESPONSE | {"task": task, "model": "bell"} for task in ("t9", "t1", "t8")])
    report = import_responses(job, responses, skip_unknown=True)
    assert report.rows == 1
    assert report.notes[-1] == "2 rows skipped whose task or criterion is not in the data set"

    verdicts = file(
        [
            VERDICT | {"model": "bell", **other}
            for other in ({"task": "t9"}, {}, {"criterion": "t2-c0"})
        ]
    )
    with pytest.raises(
        PipelineError, match=r"row 1: task 't9' is not in revision .* \(--skip-unknown skips"
    ):
        import_verdicts(job, verdicts)
    report = import_verdicts(job, verdicts, skip_unknown=True)
    assert report.rows == 1
    assert report.notes[-1] == "2 rows skipped whose task or criterion is not in the data set"


def test_who_decided_and_in_how_many_steps_can_be_said_for_rows_that_do_not(
    job: Job, file: Write
) -> None:
    rows = [
        {
            **VERDICT,
            "criteria_met": None,
            "value": 1,
        },
        {
            **VERDICT,
            "judge": "dora",
            "grading": "binary",
        },
    ]
    with pytest.raises(
        PipelineError, match=r"`task` is missing; add it \(--task ID gives it to all rows\)"
    ):
        import_verdicts(job, file([{**row, "task": ""} for row in rows]))
    import_verdicts(
        job,
        file([{**row, "task": ""} for row in rows]),
        task="t1",
        judge="emil",
        grading="ternary",
    )

    actual = values_in(
        job, "select judge, grading from verdicts where judge <> 'imported' order by all"
    )
    assert actual == [("dora", "binary"), ("emil", "ternary")]


def test_of_criteria_with_the_same_words_the_occurrence_tells_which_is_meant(
    tmp_path: Path, file: Write
) -> None:
    rubric = good_rubric("t1")
    rubric[2]["title"] = rubric[0]["title"]
    job = job_on(
        write_jsonl(tmp_path / "finance.jsonl", [good_row("t1", rubric=rubric)]),
        tmp_path / "warehouse",
    )
    ingest(job)
    import_responses(job, file([RESPONSE]))
    row = {**VERDICT, "criterion": rubric[0]["title"]}

    for reason, more in (
        (r"asks .* twice; give its id, its `category` or its `occurrence`", {}),
        ("has no criterion", {"occurrence": 3}),
    ):
        with pytest.raises(PipelineError, match=reason):
            import_verdicts(job, file([{**row, **more}]))
    # An unknown category is ignored: other data may name categories differently.
    second = {
        **row,
        "occurrence": "2",
        "category": "Other",
        "criteria_met": False,
    }
    import_verdicts(job, file([{**row, "occurrence": 1}, second]))

    query = (
        "select position, value from verdicts inner join criteria using (task_id, criterion_id)"
        " order by all"
    )
    assert values_in(job, query) == [(0, 1.0), (2, 0.0)]


def counts(job: Job) -> list[tuple[int, int]]:
    """Numbers of published responses and verdicts."""
    return values_in(
        job, "select (select count(*) from responses), (select count(*) from verdicts)"
    )


def batch_of(job: Job, table: str = "responses") -> str:
    ((batch,),) = values_in(job, f"select distinct import_batch from {table} where model = 'ada'")
    return str(batch)


@pytest.mark.parametrize(
    ("table", "goes", "n_left"),
    [
        ("responses", "1 responses and 1 verdicts", 1),
        ("verdicts", ": 1 verdicts", 2),
    ],
)
def test_a_retracted_import_goes_with_verdicts_on_it(
    table: str, goes: str, n_left: int, job: Job, file: Write
) -> None:
    import_responses(job, file([RESPONSE | {"model": "bell"}]))
    with pytest.raises(UsageError, match="no such batch"):
        retract(job, "deadbeef")

    batch = batch_of(job, table)
    assert f"{goes} retracted" in retract(job, batch).line
    assert "is already retracted" in retract(job, batch).line
    assert [(n_left, 0)] == counts(job)


def test_batches_are_listed_with_their_rows_times_and_files_also_when_they_are_retracted(
    job: Job, file: Write
) -> None:
    command = "prbench import responses rows.jsonl"
    later = job.model_copy(update={"run_id": "a-later-run"})
    written(job.warehouse, {"runs": [row("runs", run_id="a-later-run", command=command)]})
    import_responses(
        later, file([RESPONSE | {"task": "t2"}, RESPONSE | {"task": "t2", "trial": 2}])
    )
    retract(job, batch_of(job, "verdicts"))

    latest, of_verdict, of_response = batches(job)

    assert latest["command"] == command
    assert latest["n_responses"] == 2
    assert latest["imported_at"] > of_verdict["imported_at"] > of_response["imported_at"]
    assert of_verdict["n_verdicts"] == 1
    assert of_verdict["is_retracted"]
    assert of_verdict["command"] is None
    assert not of_response["is_retracted"]


@pytest.mark.slow
def test_importing_a_file_again_restores_its_rows_and_verdicts(
    job: Job, file: Write, server: FaultServer
) -> None:
    judge = {
        "name": "openai/judge",
        "label": "judge",
        "api_base": server.api_base,
        "max_tokens": 1000,
    }
    job = prepared(job_on(job.settings.dataset.source, job.warehouse, judges=[judge]))
    judged(job)
    queries = [
        f"select * exclude (cost_usd) from {table} order by all"
        for table in ("responses", "verdicts")
    ]
    before = [rows_in(job, query) for query in queries]
    retract(job, batch_of(job))
    assert counts(job) == [(0, 0)]
    judged(job)
    report = import_responses(job, file([RESPONSE]))
    judged(job)

    assert "1 responses and 11 verdicts restored" in report.line
    assert counts(job) == [(1, 11)]
    assert before == [rows_in(job, query) for query in queries]
    assert len(server.book) == 10
