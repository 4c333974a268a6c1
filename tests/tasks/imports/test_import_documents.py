"""Responses that are documents: listed in a table, or described by file names in a folder."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.config.job import Job
from tasks.imports import documents
from tasks.imports.files import retract
from tasks.imports.responses import import_responses, pattern_parts, readings_of
from tasks.rules.errors import PipelineError, UsageError
from tests.kit import rows_in, values_in, write_jsonl
from tests.tasks.imports.conftest import job_with_tasks, refusal
from tests.tasks.imports.written_documents import (
    body,
    heading,
    write_docx,
    write_locked_pdf,
    write_pdf,
    write_scan,
)

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_scores")]

RESPONSES = (
    "select model, task_id, trial, vintage, status, text from responses order by all"
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory) -> Job:
    """Three tasks, one of which has an underscore in its name."""
    return job_with_tasks(
        tmp_path_factory.mktemp("documents"),
        "t1",
        "t2",
        "b_t2",
    )


@pytest.fixture
def folder(tmp_path) -> Path:
    return tmp_path / "reports"


def write(folder: Path, **texts: str) -> Path:
    """Write Markdown files; `__` in a name separates folders."""
    for name, text in texts.items():
        file = folder / f"{name.replace('__', '/')}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return folder


def test_a_folder_holds_a_response_for_each_model_and_task(job, folder):
    write_pdf(
        folder / "ada" / "t1.pdf",
        heading("Rates"),
        body("All about Köln."),
    )
    write_docx(folder / "bell" / "t1.DOCX", "From Word.")
    (folder / "bell" / "t2.TXT").write_text("\ufeffżółć")
    report = import_responses(job, write(folder, ada__t2="# As\r\n\nit *is*\n"))

    assert values_in(job, RESPONSES) == [
        ("ada", "t1", 1, "base", "ok", "# Rates\n\nAll about Köln.\n"),
        ("ada", "t2", 1, "base", "ok", "# As\r\n\nit *is*\n"),
        ("bell", "t1", 1, "base", "ok", "From Word.\n"),
        ("bell", "t2", 1, "base", "ok", "żółć"),
    ]
    libraries = "mammoth 1.*, markdownify .*, pdfplumber "
    assert "4 responses imported" in report.line
    assert re.search(f"4 documents read with {libraries}", report.line)


def test_a_table_names_documents_beside_rows_with_responses(job, tmp_path):
    write(tmp_path, lists__more__a="A.", lists__b="B.")
    table = tmp_path / "lists" / "files.csv"
    lines = [
        "task,model,file,response,trial,vintage",
        "t1,x/y,more/a.md,,2,older",
        "t2,x/y,,In a row.,,",
        "t2,z,more/../b.md,,,",
    ]
    table.write_text("\n".join(lines))

    import_responses(job, table)

    assert values_in(job, RESPONSES) == [
        ("x/y", "t1", 2, "older", "ok", "A."),
        ("x/y", "t2", 1, "base", "ok", "In a row."),
        ("z", "t2", 1, "base", "ok", "B."),
    ]


@pytest.mark.parametrize(
    ("name", "model", "pattern", "row"),
    [
        (
            "may__ada (run 2) on t1",
            None,
            "{vintage}/{model} (run {trial}) on {task}",
            ("ada", "t1", 2, "may"),
        ),
        (
            "t1",
            "x/y",
            None,
            ("x/y", "t1", 1, "base"),
        ),
        (
            "a_b_t1",
            None,
            "{model}_{task}",
            ("a_b", "t1", 1, "base"),
        ),
    ],
)
def test_the_name_of_a_file_says_what_it_is(job, folder, name, model, pattern, row):
    write(folder, **{name: "A."})

    import_responses(job, folder, model, pattern=pattern)

    assert values_in(job, RESPONSES) == [(*row, "ok", "A.")]


def test_other_files_are_skipped_only_on_demand_and_then_counted(job, folder):
    write(folder, ada__t1="A.", notes="Not a response.")
    (folder / ".DS_Store").write_bytes(b"\0")

    with pytest.raises(PipelineError, match=f"{folder / '.DS_Store'}, and 1 more"):
        import_responses(job, folder)
    assert values_in(job, RESPONSES) == []

    report = import_responses(job, folder, skip_other=True)

    assert "2 other files skipped" in report.line
    assert len(values_in(job, RESPONSES)) == 1


def test_a_scan_is_an_empty_response_with_its_cause(job, folder):
    write_scan(folder / "ada" / "t1.pdf")

    report = import_responses(job, folder)

    [stored_response] = rows_in(job, "from responses")
    cause = "t1.pdf has no text: it is empty, or has only pictures"
    assert "1 of them without text" in report.line
    assert stored_response["status"] == "empty"
    assert stored_response["text"] is None
    assert stored_response["error"] == cause


def test_a_document_with_text_replaces_a_scan(job, folder):
    import_responses(job, write_scan(folder / "ada" / "t1.pdf").parents[1])
    assert import_responses(job, folder).rows == 0

    write_pdf(folder / "ada" / "t1.pdf", body("Read by a machine."))

    assert import_responses(job, folder).rows == 1
    [stored_response] = rows_in(job, "from responses")
    assert stored_response["status"] == "ok"
    assert stored_response["text"] == "Read by a machine.\n"


def test_the_same_folder_again_converts_nothing(job, folder, monkeypatch):
    write_docx(folder / "ada" / "t1.docx", "From Word.")
    assert (
        "1 response imported, 0 already present" in import_responses(job, folder).line
    )
    monkeypatch.setattr(documents, "LONGEST_S", 0.0)

    report = import_responses(job, folder)

    assert "0 responses imported, 1 already present" in report.line


def test_two_files_for_one_response_are_refused_unless_they_are_equal(job, folder):
    write(folder, ada__t1="A.")
    (folder / "ada" / "t1.txt").write_text("A.")
    assert import_responses(job, folder).rows == 1
    (folder / "ada" / "t2.txt").write_text("A.")

    write(folder, ada__t2="B.")
    reason = r"a different .* \(model ada, trial 1, earlier in this import\)"
    with pytest.raises(PipelineError, match=rf"t2\.txt: {reason}"):
        import_responses(job, folder)


def test_a_table_is_another_batch_once_a_document_changes(job, tmp_path):
    write(tmp_path, a="A.")
    row = {"task": "t1", "model": "ada", "file": "a.md"}
    table = write_jsonl(tmp_path / "m.jsonl", [row])
    import_responses(job, table)
    ((batch,),) = values_in(job, "select import_batch from responses")
    retract(job, batch)

    write(tmp_path, a="B.")
    import_responses(job, table)

    [stored_response] = rows_in(job, "from responses")
    assert stored_response["text"] == "B."
    assert stored_response["import_batch"] != batch


def _row(**values: Any) -> Callable[[Path], Path]:
    rows = [
        {"task": "t2", "model": "ada", "file": "a.md"},
        {"task": "t1", "model": "ada", **values},
    ]
    return lambda folder: write_jsonl(write(folder, a="A.") / "m.jsonl", rows)


@pytest.mark.parametrize(
    ("make", "pattern", "reason"),
    [
        (
            _row(file="a.md", response="B."),
            None,
            "row 2: has both `response` and `file`",
        ),
        (_row(file="gone.md"), None, "`file`: "),
        (_row(file="a.md/b.md"), None, "row 2: `file`: "),
        (_row(file="a.xlsx"), None, "is not a document"),
        (
            lambda folder: write_locked_pdf(
                write(folder, ada__t2="A.") / "ada" / "t1.pdf",
                password="x",
            ).parents[1],
            None,
            "t1.pdf: cannot be read as PDF",
        ),
        (
            lambda folder: folder.mkdir() or folder,
            None,
            "has no document",
        ),
        (
            lambda folder: write(folder, ada__t1__one="A."),
            "{model}/{task}/{trial}",
            "`trial` is 'one'",
        ),
        (
            lambda folder: write(folder, a_b_t2="A."),
            "{model}_{task}",
            "task 'b_t2' or task 't2'",
        ),
    ],
)
def test_what_does_not_fit_is_refused_in_one_line_and_nothing_is_stored(
    shared,
    folder,
    make,
    pattern,
    reason,
):
    source = make(folder)

    assert reason in refusal(import_responses, shared, source, pattern=pattern)


def test_options_for_folders_are_refused_with_a_file(job, tmp_path):
    (tmp_path / "x.json").write_text(json.dumps({"t1": "A."}))

    with pytest.raises(UsageError, match="--pattern: works only with a folder"):
        import_responses(job, tmp_path / "x.json", "ada", pattern="{task}")
    with pytest.raises(UsageError, match="--skip-other: works only with a folder"):
        import_responses(job, tmp_path / "x.json", "ada", skip_other=True)


@pytest.mark.parametrize(
    "text",
    [
        "{model}",
        "{task}",
        "{model}{task}",
        "{model}/{task}.pdf",
        "{model}/{task}.{ext}",
        "{model}/{name}-{task}",
        "{model}/{task",
    ],
)
def test_a_pattern_that_cannot_tell_what_is_what_is_refused(text):
    reason = "with text between two fields and without the files' ending"
    with pytest.raises(UsageError, match=reason):
        pattern_parts(text, None)


@pytest.mark.parametrize(
    ("pattern", "path", "readings"),
    [
        (
            "{task}/v1.0 [{model}]",
            "t/v1.0 [m.x].pdf",
            [{"task": "t", "model": "m.x"}],
        ),
        ("{task}/v1.0 [{model}]", "t/v1x0 [m].pdf", []),
        ("{task}/v1.0 [{model}]", "deep/t/v1.0 [m].pdf", []),
        (
            "{task}/{task}_{model}",
            "a_b/a_b_m.md",
            [{"task": "a_b", "model": "m"}],
        ),
        ("{task}/{task}_{model}", "a/b_m.md", []),
    ],
)
def test_a_field_of_a_pattern_stands_for_one_name(pattern, path, readings):
    parts = pattern_parts(pattern, None)

    assert list(readings_of(path.rpartition(".")[0], parts, {})) == readings
