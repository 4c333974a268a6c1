"""The import of responses: texts in rows, and documents that rows or their own names identify."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.dataset.foreign_files import (
    UnsafeFile,
    files_inside,
    hash_inside,
    open_inside,
    read_regular,
)
from tasks.imports import files
from tasks.imports.documents import SUFFIXES, Converted, convert, converters
from tasks.imports.files import ImportRefused, LocatedRow, NotInDataSet, StoredRow
from tasks.llm.replies import EMPTY, OK
from tasks.rules.errors import UsageError
from tasks.rules.identity import IMPORTED, is_impossible_date, response_id
from tasks.rules.text.characters import count_alphanumeric, shows_nothing
from tasks.rules.text.numbers import counted, list_text
from tasks.run.writing import NO_CALL, StageReport, call_columns
from warehouse import Warehouse

FIELDS = ("task", "model", "trial", "vintage")
"""The fields that a pattern of file names can have."""
_COLUMNS: files.Columns = {
    ("task",): "",
    ("model",): "--as LABEL",
    ("response", "file"): "",
}


def pattern_parts(pattern: str, model: str | None) -> tuple[str, ...]:
    """Return the parts of a pattern of paths: literal texts alternating with names of fields.

    The first and the last part are literal texts.

    Raises:
        UsageError: the pattern lacks the task or the model, or is ambiguous.
    """
    parts = tuple(re.split(r"\{([^{}]*)\}", pattern))
    literals = parts[::2]
    fields = set(parts[1::2])
    needed = {"task"} if model is not None else {"task", "model"}
    has_wrong_fields = not needed <= fields <= set(FIELDS)
    has_fields_side_by_side = not all(literals[1:-1])
    has_stray_brace = not {"{", "}"}.isdisjoint("".join(literals))
    has_suffix = literals[-1].lower().endswith(SUFFIXES)
    if has_wrong_fields or has_fields_side_by_side or has_stray_brace or has_suffix:
        allowed = "{task}, {model} (or --as LABEL), {trial} and {vintage}"
        raise UsageError(
            f"--pattern {pattern}: use {allowed}, with text between two fields and without the"
            " files' ending"
        )
    return parts


def readings_of(
    path: str,
    parts: Sequence[str],
    fields: dict[str, str],
) -> Iterator[dict[str, str]]:
    """Yield all possible values of a pattern's fields for a file's path without its suffix.

    A value is one or more characters within the name of one folder or file. There are several
    readings if the text between two fields also occurs within a value. `parts` are those of the
    pattern (see `pattern_parts`), `fields` the values before `path`, which a field that occurs
    again must repeat; each call reads one literal text and one field, and calls itself for the
    rest.
    """
    if not path.startswith(parts[0]):
        return
    rest = path.removeprefix(parts[0])
    if len(parts) == 1:
        if not rest:
            yield fields
        return
    name = parts[1]
    longest_value = rest.partition("/")[0]
    for length in range(1, len(longest_value) + 1):
        value = rest[:length]
        if fields.get(name, value) == value:
            yield from readings_of(rest[length:], parts[2:], fields | {name: value})


class SourceContent(NamedTuple):
    """The content of a source to import: of a file, or of a folder of documents.

    Attributes:
        rows: all rows to import.
        folder: the folder with all documents.
        batch: a hash of all input: of a file and the documents that it names; or of the documents
            of a folder, their names, and the pattern.
        n_skipped: number of files in the folder that are no documents to import.
    """

    rows: Sequence[LocatedRow]
    folder: Path
    batch: str
    n_skipped: int


def read_source(
    source: Path,
    model: str | None,
    pattern: str | None,
    benchmark: Benchmark,
    *,
    skip_other: bool,
    tasks: Collection[str],
) -> SourceContent:
    """Return the responses in a file, or the documents in a folder.

    `benchmark` converts rows in its own shape; `tasks` are the known tasks, which decide between
    several readings of a file name.

    Raises:
        UsageError: the path does not exist, or an option does not apply to it.
        ImportRefused: a file of the folder does not match the pattern, or a row names a file that
            is not a document.
    """
    if source.is_dir():
        pattern = pattern or ("{model}/{task}" if model is None else "{task}")
        return _read_folder(source, pattern, model, skip_other=skip_other, tasks=tasks)
    if pattern is not None or skip_other:
        option = "--skip-other" if pattern is None else "--pattern"
        raise UsageError(
            f"{option}: works only with a folder of documents, and {source} is not a folder"
        )
    file_rows = files.rows_with_columns(source, _COLUMNS, benchmark, model=model)
    rows = [located._replace(document=_document(source, located)) for located in file_rows]
    batch = files.batch_of(read_regular(source), model)
    folder = source.parent
    documents = _documents(rows)
    if documents:
        hashes = [hash_inside(folder, file.relative_to(folder)) for file in documents]
        batch = _batch_of_texts([batch, *hashes])
    return SourceContent(rows, folder, batch, n_skipped=0)


def _documents(rows: Sequence[LocatedRow]) -> list[Path]:
    """Return every document that rows name, each once."""
    return list(dict.fromkeys(row.document for row in rows if row.document is not None))


def _document(source: Path, located: LocatedRow) -> Path | None:
    """Return the path of the document that a row names, in the folder of the row's file; None if it
    names none.
    """
    name = files.text_in(located.row, "file")
    if name is None:
        return None
    where = located.where
    if files.text_in(located.row, "response"):
        raise ImportRefused(f"{where}: has both `response` and `file`; remove one")
    path = Path(name)
    if path.suffix.lower() not in SUFFIXES:
        raise ImportRefused(
            f"{where}: `file` {name} is not a document; documents end in {', '.join(SUFFIXES)}"
        )
    try:
        open_inside(source.parent, name).close()
    except (OSError, UnsafeFile) as error:
        raise ImportRefused(
            f"{where}: `file`: {error}; paths start in the folder of {source.name}"
        ) from error
    if path.is_absolute():
        path = path.resolve().relative_to(source.parent.resolve())
    return source.parent / path


def _read_folder(
    folder: Path,
    pattern: str,
    model: str | None,
    *,
    skip_other: bool,
    tasks: Collection[str],
) -> SourceContent:
    parts = pattern_parts(pattern, model)
    rows = []
    other_files = []
    for file in files_inside(folder):
        fields = _fields_in_name(folder, file, parts, tasks)
        if fields is None:
            other_files.append(str(file))
        else:
            rows.append(LocatedRow(str(file), {"model": model, **fields}, file))
    expected = f"document ({', '.join(SUFFIXES)}) named like {pattern}"
    if other_files and not skip_other:
        raise ImportRefused(
            f"{list_text(other_files, 1)}: not a {expected}; give --pattern, list the files in a"
            " table with a column `file`, or give --skip-other"
        )
    if not rows:
        raise ImportRefused(
            f"{folder}: has no {expected}; give --pattern, or list the files in a table with a"
            " column `file`"
        )
    hashed_texts = [pattern]
    for document in _documents(rows):
        name = document.relative_to(folder).as_posix()
        hashed_texts += [name, hash_inside(folder, name)]
    return SourceContent(rows, folder, _batch_of_texts(hashed_texts), len(other_files))


def _fields_in_name(
    folder: Path,
    file: Path,
    parts: Sequence[str],
    tasks: Collection[str],
) -> dict[str, str] | None:
    """Return the fields in a file's name; None if the name does not match.

    A reading with a known task is preferred.
    """
    if file.suffix.lower() not in SUFFIXES:
        return None
    path = file.relative_to(folder).with_suffix("").as_posix()
    all_readings = list(readings_of(path, parts, {}))
    readings = [reading for reading in all_readings if reading["task"] in tasks] or all_readings
    if len(readings) > 1:
        candidates = " or ".join(f"task {reading['task']!r}" for reading in readings[:2])
        raise ImportRefused(
            f"{file}: its name fits {candidates}; list it in a table with a column `file`"
        )
    return readings[0] if readings else None


def _batch_of_texts(texts: Sequence[str]) -> str:
    """Return the id of an import batch; names of files may hold bytes that are not UTF-8."""
    return files.batch_of("\n".join(texts).encode(errors="surrogateescape"))


def import_responses(
    job: Job,
    source: Path,
    model: str | None = None,
    *,
    pattern: str | None = None,
    skip_other: bool = False,
    skip_unknown: bool = False,
) -> StageReport:
    """Import responses from a file of rows, a file with one object `{task: response}`, or a folder
    of documents.

    Rows are `task, model, response[, trial, vintage]`; `model` is the model of those without one.
    Instead of a response, a row may name a document in `file`. Each document of a folder counts as
    such a row, with the fields in its name.
    With `skip_other`, other files of the folder are skipped; with `skip_unknown`, rows and
    documents on tasks that the data set lacks. A row without a vintage gets that of the job. Texts
    are stored unchanged. Every row is checked before the first is stored. Responses to refused
    tasks are imported too, because the policy of a check may change.

    Raises:
        ImportRefused: a row names an unknown task or lacks a field, or a different text is stored
            for it.
        DocumentRefused: a document cannot be converted.
    """
    benchmark = load_benchmark(job.benchmark)
    with Warehouse(job.warehouse).reader() as reader:
        tasks = reader.select("tasks", "task_id, conversation_id", **job.key)
        stored_rows = files.imported_rows(reader, "responses")
    conversations = {row["task_id"]: row["conversation_id"] for row in tasks}
    files.refuse_not_ingested(job, conversations)
    content = read_source(
        source,
        model,
        pattern,
        benchmark,
        skip_other=skip_other,
        tasks=conversations,
    )
    matched, skipped = files.matched_rows(
        content.rows, partial(_columns_of_row, job, conversations), skip_unknown=skip_unknown
    )
    if not matched:
        files.raise_nothing_to_import(source, skipped)
    responses = files.RowsToImport("responses", stored_rows, content.batch)
    texts = _put_responses(job, content.folder, responses, matched)
    notes = [*_notes(texts, content.n_skipped), *skipped]
    return files.store_batch(job, [responses], notes)


def _put_responses(
    job: Job,
    folder: Path,
    responses: files.RowsToImport,
    matched: Sequence[tuple[LocatedRow, StoredRow]],
) -> Mapping[Path, Converted]:
    """Add the responses of rows, and return the documents of the folder that were converted for it.

    Imported documents are not converted again, because another library version may give another
    text.
    """
    new_rows = []
    for located, columns in matched:
        row_id = columns["response_id"]
        responses.ids.add(row_id)
        if located.document is None or not responses.is_in_batch(row_id):
            new_rows.append((located, columns))
    documents = _documents([located for located, _ in new_rows])
    texts = convert(documents, folder, is_quiet=job.is_quiet)
    for located, columns in new_rows:
        responses.put(located.where, columns | _content_of(located, texts))
    return texts


def _content_of(located: LocatedRow, texts: Mapping[Path, Converted]) -> StoredRow:
    """Return the columns with the text of a row or of its document."""
    text = located.row.get("response")
    cause = None
    if located.document is not None:
        text = texts[located.document].text
        cause = f"{located.document.name} has no text: it is empty, or has only pictures"
    if text is not None and shows_nothing(text):
        text = None
    return content_columns(text, EMPTY, cause)


def _columns_of_row(job: Job, conversations: Mapping[str, str], located: LocatedRow) -> StoredRow:
    """Return all columns of the response of a row, except those of its text and the batch."""
    where, row, document = located
    task_id = files.required_text(where, row, "task")
    model = files.required_text(where, row, "model", "--as LABEL")
    if task_id not in conversations:
        raise NotInDataSet(f"{where}: task {task_id!r} is not in revision {job.data.revision[:12]}")
    if document is None and "response" not in row:
        raise ImportRefused(
            f"{where}: `response` is missing; add it (an empty one counts as a failed response)"
        )
    trial = files.number_of(where, row, "trial")
    vintage = files.text_in(row, "vintage") or job.vintage
    if is_impossible_date(vintage) and vintage != job.vintage:
        raise ImportRefused(f"{where}: vintage {vintage!r} is not a date; write 2026-11-22")
    return response_columns(job, task_id, conversations[task_id], model, trial, vintage)


def response_columns(
    job: Job,
    task_id: str,
    conversation_id: str,
    model: str,
    trial: int,
    vintage: str,
) -> StoredRow:
    """Return all columns of an imported response, except those of its text and the batch."""
    identity: StoredRow = {
        **job.key,
        "task_id": task_id,
        "conversation_id": conversation_id,
        "model": model,
        "model_config_hash": IMPORTED,
        "trial": trial,
        "vintage": vintage,
    }
    return {
        **identity,
        **call_columns(job, NO_CALL),
        "response_id": response_id(**identity),
        "source": "imported",
        "finish_reason": None,
        "degraded": False,
        "reasoning_tokens": None,
    }


def content_columns(text: str | None, failure: str, cause: str | None) -> StoredRow:
    """Return the columns with the text of a response, or with the failure if there is no text."""
    if text is None:
        return {
            "status": failure,
            "text": None,
            "chars_alnum": None,
            "error": cause,
        }
    return {
        "status": OK,
        "text": text,
        "chars_alnum": count_alphanumeric(text),
        "error": None,
    }


def _notes(texts: Mapping[Path, Converted], n_skipped: int) -> Iterator[str]:
    """Yield notes on converted documents and on skipped files."""
    if texts:
        note = f"{counted(len(texts), 'document')} read"
        libraries = ", ".join(converters(texts))
        if libraries:
            note += f" with {libraries}"
        yield note
    documents = texts.values()
    counts = {
        "of them without text are failed responses (`empty`)": sum(
            shows_nothing(document.text) for document in documents
        ),
        "pages without text": sum(document.n_pages_without_text for document in documents),
        "characters that could not be read from a PDF are U+FFFD": sum(
            document.n_unreadable for document in documents
        ),
        "DOCX files whose formulas were skipped": sum(
            document.lacks_formulas for document in documents
        ),
        "other files skipped": n_skipped,
    }
    yield from files.count_notes(counts)
