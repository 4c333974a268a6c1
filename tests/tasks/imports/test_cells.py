"""What a cell of a foreign file holds: a text, or what is refused with its row and type; and files
without a result.
"""

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.config.job import Job
from tasks.imports.files import NothingToImport, number_of, rows_of_file
from tasks.imports.responses import import_responses
from tasks.imports.reviews import import_reviews
from tasks.imports.verdicts import import_verdicts
from tasks.ingest import ingest
from tasks.rules.text.cells import csv_text, defused_formula
from tests.kit import (
    Row,
    Values,
    few_published,
    good_row,
    job_on,
    rows_in,
    values_in,
    write_jsonl,
)
from tests.tasks.imports.conftest import job_with_tasks, refusal

pytestmark = pytest.mark.usefixtures("without_scores")

CONVERSATION = [
    {"role": "user", "content": "A question."},
    {"role": "assistant", "content": "A response."},
]
IN_PARTS = [
    {"role": "assistant", "content": "An earlier response."},
    {"role": "user", "content": "More."},
    {
        "role": "assistant",
        "content": [
            {
                "type": "thinking",
                "thinking": "Hm.",
                "text": None,
            },
            {
                "type": "text",
                "thinking": None,
                "text": "Two ",
            },
            {
                "type": "output_text",
                "thinking": None,
                "text": "parts.",
            },
        ],
    },
]
WITH_AN_IMAGE = [{"type": "text", "text": "See"}, {"type": "image_url", "text": None}]
READ = {
    "binary": ("Überall".encode(), "Überall"),
    "large string": (pa.scalar("large", pa.large_string()), "large"),
    "dictionary": (
        pa.scalar("coded", pa.dictionary(pa.int8(), pa.string())),
        "coded",
    ),
    "null": (None, None),
    "NaN": (float("nan"), None),
    "messages": (CONVERSATION, "A response."),
    "content in parts": (IN_PARTS[-1:], "Two parts."),
    "messages as JSON": (json.dumps(IN_PARTS), "Two parts."),
    "messages as JSON in a text of JSON": (
        json.dumps(json.dumps(CONVERSATION)),
        "A response.",
    ),
    "JSON of no messages": (
        '[{"name": "Ann", "role": "assistant"}]',
        '[{"name": "Ann", "role": "assistant"}]',
    ),
    "JSON of messages of others": (
        '[{"role": "user", "content": "x"}]',
        '[{"role": "user", "content": "x"}]',
    ),
    "an image in an earlier message": (
        [
            {"role": "user", "content": WITH_AN_IMAGE},
            {"role": "assistant", "content": WITH_AN_IMAGE[:1]},
        ],
        "See",
    ),
    "a call of a tool alone": ([{"role": "assistant", "content": None}], None),
}
"""Case -> a cell, and the text that is read."""
REFUSED = {
    "binary in another encoding": (b"\xff\xfe", "bytes"),
    "a list": (["A response."], "list"),
    "an empty list": ([], "list"),
    "a struct": ({"text": "A response."}, "dict"),
    "a map": (
        pa.scalar([("text", "A response.")], pa.map_(pa.string(), pa.string())),
        "list",
    ),
    "a number": (3, "int"),
    "a number with decimals": (0.5, "float"),
    "a decimal": (Decimal("1.50"), "Decimal"),
    "a truth value": (True, "bool"),
    "a day": (date(2026, 11, 3), "date"),
    "a moment": (datetime(2026, 11, 3, tzinfo=UTC), "datetime"),
    "a number as content": ([{"role": "assistant", "content": 3}], "int"),
}
"""Case -> a cell, and the type that the refusal names."""


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Job:
    """Two tasks with one response."""
    folder = tmp_path_factory.mktemp("cells")
    job = job_with_tasks(folder, "t1", "t2")
    cells = {"task": "t1", "model": "ada", "response": "A response."}
    with few_published():
        import_responses(job, response_file(folder, **cells))
    return job


def parquet(path: Path, **columns: Any) -> Path:
    """A file of one row."""
    arrays = {}
    for name, value in columns.items():
        if isinstance(value, pa.Scalar):
            arrays[name] = pa.array([value.as_py()], value.type)
        else:
            arrays[name] = pa.array([value])
    pq.write_table(pa.table(arrays), path)
    return path


def response_file(folder: Path, **cells: Any) -> Path:
    """A file with one response."""
    row = {
        "task": "t2",
        "model": "bell",
        "response": "Two.",
    } | cells
    return write_jsonl(folder / "x.jsonl", [row])


@pytest.mark.parametrize("case", READ)
def test_a_cell_of_parquet_that_is_text_or_messages_is_read_as_text(tmp_path, case):
    cell, text = READ[case]

    [located] = rows_of_file(
        parquet(tmp_path / "x.parquet", task=b"t2", response=cell)
    )

    assert located.row == {"task": "t2", "response": text}


@pytest.mark.parametrize("case", REFUSED)
def test_a_cell_that_is_no_text_is_refused_with_its_row_and_type(
    shared,
    tmp_path,
    case,
):
    cell, type_name = REFUSED[case]
    file = parquet(
        tmp_path / "x.parquet",
        task="t2",
        model="bell",
        response=cell,
    )

    line = refusal(import_responses, shared, file)

    column = "content" if "content" in case else "response"
    assert f"x.parquet: row 1: `{column}` is not a text" in line
    assert f"(its type is {type_name})" in line


@pytest.mark.parametrize("kind", ["image_url", "input_audio", "tool_use"])
@pytest.mark.parametrize("form", [json.dumps, list])
def test_a_response_with_a_part_that_is_no_text_is_refused_with_the_type_of_the_part(
    shared,
    tmp_path,
    kind,
    form,
):
    parts = [{"type": kind}, {"type": "text", "text": "See above."}]
    response = [{"role": "assistant", "content": parts}]
    file = response_file(tmp_path, response=form(response))

    line = refusal(import_responses, shared, file)

    reason = f"`content` has a part that is not a text (its type is {kind})"
    assert f"x.jsonl: row 1: {reason}" in line


def test_the_last_message_of_the_assistant_is_the_response_in_json_too(job, tmp_path):
    (tmp_path / "x.json").write_text(json.dumps({"t2": IN_PARTS}))

    import_responses(job, tmp_path / "x.json", "bell")
    import_responses(
        job, response_file(tmp_path, model="cora", response=CONVERSATION)
    )

    query = "select model, text from responses where task_id = 't2' order by model"
    assert values_in(job, query) == [("bell", "Two parts."), ("cora", "A response.")]


def test_labels_find_a_stored_response_that_is_itself_messages_in_json(job, tmp_path):
    dialogue = json.dumps(CONVERSATION)
    response = [{"role": "assistant", "content": dialogue}]

    import_responses(job, response_file(tmp_path, response=response))
    label = {"criterion": "t2-c0", "criteria_met": True, "response": dialogue}
    import_verdicts(job, response_file(tmp_path, **label))

    [stored_response] = rows_in(job, "from responses where model = 'bell'")
    [stored_label] = rows_in(job, "from verdicts where criterion_id = 't2-c0'")
    assert stored_response["text"] == dialogue
    assert stored_label["value"] == 1.0


@pytest.mark.parametrize("name", ["explanation", "judge", "task", "criterion"])
def test_labels_with_a_cell_that_is_no_text_are_refused_with_their_row(
    shared,
    tmp_path,
    name,
):
    row = {
        "task": "t1",
        "model": "ada",
        "criterion": "t1-c0",
        "criteria_met": True,
    }
    wrong_row = row | {"criterion": "t1-c1", name: ["x"]}
    file = write_jsonl(tmp_path / "x.jsonl", [row, wrong_row])

    line = refusal(import_verdicts, shared, file)

    assert f"x.jsonl: row 2: `{name}` is not a text (its type is list)" in line


def test_an_id_may_be_a_number(tmp_path):
    job = job_with_tasks(tmp_path, "17")

    import_responses(job, response_file(tmp_path, task=17, model=4))

    assert values_in(job, "select task_id, model from responses") == [("17", "4")]


@pytest.mark.parametrize(
    ("changes", "column"),
    [
        ({"prompt_0": [{"role": "user", "content": "A question."}]}, "`prompt_0`"),
        ({"prompt_0": 5}, "`prompt_0`"),
        ({"task": {"id": 1}}, "`task`"),
        ({"rubric": [{"id": "c", "title": ["One."]}]}, "`title`"),
        ({"reference_texts_0": [["x"]]}, "`reference_texts_0`"),
    ],
)
def test_a_data_set_with_a_cell_that_is_no_text_is_refused(tmp_path, changes, column):
    rows = [good_row("t1"), good_row("t2") | changes]
    file = write_jsonl(tmp_path / "finance.jsonl", rows)
    job = job_on(file, tmp_path / "warehouse")

    line = refusal(lambda job, _: ingest(job), job, file)

    assert f"finance.jsonl: row 2: {column} is not a text" in line


def test_a_data_set_of_binary_columns_is_the_one_of_texts(tmp_path):
    texts = good_row("t1")
    binary_cells = dict(texts)
    for name, value in texts.items():
        if isinstance(value, str):
            binary_cells[name] = value.encode()

    tasks = tasks_in(tmp_path / "texts", texts)
    assert tasks_in(tmp_path / "binary", binary_cells) == tasks


def tasks_in(folder: Path, row: Row) -> Values:
    """Ingest a data set of one row, and return its task."""
    folder.mkdir()
    pq.write_table(pa.Table.from_pylist([row]), folder / "finance.parquet")
    job = job_on(folder / "finance.parquet", folder / "warehouse")
    ingest(job)
    return values_in(job, "select task_id, field, content_hash from tasks")


# CSV files

SHEETS = {
    "a bar": "task|model|response|trial\nt2|bell|Two.|2\n",
    "a bar and commas": "task|model|response, as given|response|trial\nt2|bell|x,y|Two.|2\n",
    "a tab": "task\tmodel\tresponse\ttrial\nt2\tbell\tTwo.\t2\n",
    "a stated separator": "sep=;\r\ntask;model;response;trial\r\nt2;bell;Two.;2\r\n",
    "a stated separator in quotes": '\ufeff"sep=|"\ntask|model|response|trial\nt2|bell|Two.|2\n',
    "semicolons in a quoted heading": (
        'task,model,"response; final; the; last; one",response,trial\nt2,bell,none,Two.,2\n'
    ),
    "a stated tab": "sep=\t\ntask\tmodel\tresponse\ttrial\nt2\tbell\tTwo.\t2\n",
    "a stated separator in capitals": "SEP=;\ntask;model;response;trial\nt2;bell;Two.;2\n",
    "a stated separator and spaces": "sep=; \ntask;model;response;trial\nt2;bell;Two.;2\n",
    "a stated tab in quotes and a tab": (
        '"Sep=\t"\t\ntask\tmodel\tresponse\ttrial\nt2\tbell\tTwo.\t2\n'
    ),
    "two byte order marks": "\ufeff\ufefftask,model,response,trial\nt2,bell,Two.,2\n",
    "byte order marks and a stated separator": (
        "\ufeff\ufeffsep=;\r\n\ufefftask;model;response;trial\r\nt2;bell;Two.;2\r\n"
    ),
    "blank lines around a stated separator": (
        "\n\nsep=;\n\n \ntask;model;response;trial\nt2;bell;Two.;2\n"
    ),
    "a number of pandas": "task,model,response,trial\nt2,bell,Two.,2.0\n",
    "spaces in the header": "task , model,response ,trial \nt2,bell,Two., 2\n",
    "empty columns at the end": "task,model,response,trial,,\nt2,bell,Two.,2,,\n",
    "empty cells at the end": "task,model,response,trial\nt2,bell,Two.,2,,\n",
    "quotes around all": '"task"|"model"|"response"|"trial"\n"t2"|"bell"|"Two."|"2"\n',
}


@pytest.mark.parametrize("case", SHEETS)
def test_a_sheet_is_read_however_a_spreadsheet_writes_it(tmp_path, case):
    (tmp_path / "x.csv").write_bytes(SHEETS[case].encode())

    [located] = rows_of_file(tmp_path / "x.csv")

    cells = {"task": "t2", "model": "bell", "response": "Two."}
    assert cells.items() <= located.row.items()
    assert number_of(located.where, located.row, "trial") == 2


@pytest.mark.parametrize(
    "trial", ["1.0", 1.0, "1.", " 1 ", float("nan"), None, "", Decimal("1.0")]
)
def test_a_first_trial_is_read_in_every_form(tmp_path, trial):
    [located] = rows_of_file(parquet(tmp_path / "x.parquet", trial=trial))

    assert number_of(located.where, located.row, "trial") == 1


@pytest.mark.parametrize("trial", ["1.5", "1.0e0", "one", "-1", "1,0"])
def test_what_is_no_whole_number_is_no_trial(shared, tmp_path, trial):
    line = refusal(import_responses, shared, response_file(tmp_path, trial=trial))

    assert f"row 1: `trial` is {trial!r}" in line


def test_a_response_that_left_as_csv_comes_back_as_it_was(tmp_path):
    texts = [
        "=1+1",
        "'=1+1",
        "- a list",
        " @x",
        "'2026-11-03",
        "plain",
        "a\r=1",
        "\r=1",
        "a\n=1",
        "\u200b=1",
        "a\r\n",
    ]
    content = csv_text([["response"], *([defused_formula(text)] for text in texts)])
    (tmp_path / "x.csv").write_bytes(content.encode())

    assert [
        row["response"] for _, row, _ in rows_of_file(tmp_path / "x.csv")
    ] == texts


# files that bring nothing

VERDICTS = "task,model,criterion,criteria_met\n"


def _skipping_empty(job: Job, file: Path) -> object:
    return import_verdicts(job, file, skip_empty=True)


def _reviews(job: Job, file: Path) -> object:
    return import_reviews(job, [file])


BRINGS_NOTHING = {
    "another heading of decisions": (
        _skipping_empty,
        VERDICTS.replace("criteria_met", "Criteria_met") + "t1,ada,t1-c0,yes\n",
        "`criteria_met` is missing (did you mean `Criteria_met`?)",
    ),
    "headings in capitals": (
        _skipping_empty,
        VERDICTS.upper() + "t1,ada,t1-c0,yes\n",
        "`task` is missing (did you mean `TASK`?)",
    ),
    "another heading of responses": (
        import_responses,
        "task,model,Response text\nt1,ada,x\n",
        "`response` is missing (did you mean `Response text`?)",
    ),
    "nothing like a model": (
        import_responses,
        "task,llm,response\nt1,ada,x\n",
        (
            "`model` is missing (the columns are task, llm, response); add the column, or give --as"
            " LABEL"
        ),
    ),
    "no decision": (
        _skipping_empty,
        VERDICTS + "t1,ada,t1-c0,\nt1,ada,t1-c1, \n",
        "2 rows without a decision skipped",
    ),
    "no row": (import_responses, "task,model,response\n", "it has no rows"),
    "an empty file": (import_verdicts, "", "it has no rows"),
    "no task that is here": (
        lambda job, file: import_responses(job, file, skip_unknown=True),
        "task,model,response\nt9,ada,x\n",
        "1 row skipped: the task or criterion is not in the data set",
    ),
    "another heading of reviews": (
        _reviews,
        "task,criterion,reviewer,decisions\nt1,t1-c0,eva,agree\n",
        "`decision` is missing (did you mean `decisions`?)",
    ),
    "no review": (
        _reviews,
        "task,criterion,reviewer,decision\nt1,t1-c0,eva,\n",
        "1 row without a decision skipped",
    ),
}


@pytest.mark.parametrize("case", BRINGS_NOTHING)
def test_a_file_that_brings_nothing_is_refused_with_the_reason(
    shared, tmp_path, case
):
    import_file, content, reason = BRINGS_NOTHING[case]
    (tmp_path / "x.csv").write_text(content)

    line = refusal(
        import_file, shared, tmp_path / "x.csv", error_type=NothingToImport
    )

    assert reason in line
    assert NothingToImport.exit_code == 2
