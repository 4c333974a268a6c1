"""The import of responses: texts in rows, and documents that rows name or that their file names
identify.
"""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.dataset.foreign_files import (
    NotInside,
    files_inside,
    hash_inside,
    open_inside,
    read_regular,
)
from tasks.imports import files
from tasks.imports.documents import SUFFIXES, Converted, convert, converters
from tasks.imports.files import Given, ImportRefused, NotHere, Row
from tasks.llm.replies import EMPTY, OK
from tasks.rules.errors import UsageError
from tasks.rules.identity import IMPORTED, is_impossible_date, response_id
from tasks.rules.text.characters import count_alphanumeric, shows_nothing
from tasks.rules.text.numbers import some
from tasks.run.writing import NO_CALL, StageReport, call_columns
from warehouse import Warehouse

FIELDS = ("task", "model", "trial", "vintage")


def parts_of(text: str, model: str | None) -> tuple[str, ...]:
    """Return the parts of a pattern of paths: literal texts alternating with names of fields,
    beginning with a text.

    Raises:
        UsageError: the pattern lacks the task or the model, or is ambiguous.
    """
    parts = tuple(re.split(r"\{([^{}]*)\}", text))
    literals = parts[::2]
    names = parts[1::2]
    if (
        {"task"} - {*names}
        or {*names} - {*FIELDS}
        or (model is None and "model" not in names)
        or not all(literals[1:-1])
        or {"{", "}"} & {*"".join(literals)}
        or literals[-1].lower().endswith(SUFFIXES)
    ):
        fields = "{task}, {model} (or --as LABEL), {trial} and {vintage}"
        raise UsageError(
            f"--pattern {text}: use {fields}, with text between two fields and without the files'"
            " ending"
        )
    return parts


def readings_of(
    rest: str, parts: Sequence[str], fields: dict[str, str]
) -> Iterator[dict[str, str]]:
    """Yield all possible readings of a file's path without its suffix: values for the fields of a
    pattern.

    A value is one or more characters within the name of one folder or file. There are several
    readings if the text between two fields also occurs within a value.
    """
    if not rest.startswith(parts[0]):
        return
    rest = rest.removeprefix(parts[0])
    if len(parts) == 1:
        if not rest:
            yield fields
        return
    name = parts[1]
    for length in range(1, len(rest.partition("/")[0]) + 1):
        value = rest[:length]
        if fields.get(name, value) == value:
            yield from readings_of(rest[length:], parts[2:], fields | {name: value})


class Offered(NamedTuple):
    """A row to import, its location, and the document that holds its response, if the row does
    not.
    """

    where: str
    row: Given
    document: Path | None


Offer = tuple[Sequence[Offered], Path, str, int]
"""All rows to import, the folder with all documents, the batch, and the number of files in the
folder that are skipped.

The batch is a hash of all input: a file and the documents that it names; or the documents of a
folder, their names, and the pattern.
"""


def offer_of(
    source: Path,
    model: str | None,
    pattern: str | None,
    benchmark: Benchmark,
    *,
    skip_other: bool,
    tasks: Collection[str],
) -> Offer:
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
        return _of_folder(source, pattern, model, skip_other=skip_other, tasks=tasks)
    if pattern is not None or skip_other:
        option = "--skip-other" if pattern is None else "--pattern"
        raise UsageError(
            f"{option}: works only with a folder of documents, and {source} is not a folder"
        )
    given = list(files.given_rows(source, benchmark, model=model))
    for names, option in ((["task"], ""), (["model"], "--as LABEL"), (["response", "file"], "")):
        files.refuse_missing_column(source, (row for _, row in given), names, option)
    rows = [Offered(where, row, _document(source, where, row)) for where, row in given]
    batch = files.batch_of(read_regular(source), model)
    documents = _documents(rows)
    if documents:
        batch = _batch(
            [
                batch,
                *(
                    hash_inside(source.parent, file.relative_to(source.parent))
                    for file in documents
                ),
            ]
        )
    return rows, source.parent, batch, 0


def _documents(rows: Sequence[Offered]) -> list[Path]:
    """Return every document that rows name, each once."""
    return list(dict.fromkeys(row.document for row in rows if row.document is not None))


def _document(source: Path, where: str, row: Given) -> Path | None:
    """Return the document that a row names, relative to the folder of the row's file."""
    name = files.text_in(row, "file")
    if name is None:
        return None
    if files.text_in(row, "response"):
        raise ImportRefused(f"{where}: has both `response` and `file`; remove one")
    document = source.parent / name
    if document.suffix.lower() not in SUFFIXES:
        raise ImportRefused(
            f"{where}: `file` {name} is not a document; documents end in {', '.join(SUFFIXES)}"
        )
    try:
        open_inside(source.parent, name).close()
    except (FileNotFoundError, NotInside) as error:
        raise ImportRefused(
            f"{where}: `file`: {error}; paths start in the folder of {source.name}"
        ) from error
    return document


def _of_folder(
    folder: Path, pattern: str, model: str | None, *, skip_other: bool, tasks: Collection[str]
) -> Offer:
    parts = parts_of(pattern, model)
    named = {file: _named(folder, file, parts, tasks) for file in files_inside(folder)}
    rows = [
        Offered(str(file), {"model": model, **row}, file)
        for file, row in named.items()
        if row is not None
    ]
    others = [str(file) for file, row in named.items() if row is None]
    if not rows or (others and not skip_other):
        advice = (
            "give --pattern, list the files in a table with a column `file`, or give --skip-other"
        )
        kinds = ", ".join(SUFFIXES)
        raise ImportRefused(
            f"{some(others, 1) or folder}: not a document ({kinds}) named like {pattern}; {advice}"
        )
    documents = _documents(rows)
    names = [file.relative_to(folder).as_posix() for file in documents]
    content = (part for name in names for part in (name, hash_inside(folder, name)))
    return rows, folder, _batch([pattern, *content]), len(others)


def _named(
    folder: Path, file: Path, parts: Sequence[str], tasks: Collection[str]
) -> dict[str, str] | None:
    """Return the fields in a file's name; None if the name does not match.

    A reading with a known task is preferred.
    """
    if file.suffix.lower() not in SUFFIXES:
        return None
    readings = list(readings_of(file.relative_to(folder).with_suffix("").as_posix(), parts, {}))
    known = [reading for reading in readings if reading["task"] in tasks] or readings
    if len(known) > 1:
        both = " or ".join(f"task {reading['task']!r}" for reading in known[:2])
        raise ImportRefused(
            f"{file}: its name fits {both}; list it in a table with a column `file`"
        )
    return known[0] if known else None


def _batch(parts: Sequence[str]) -> str:
    return files.batch_of("\n".join(parts).encode(errors="surrogateescape"))


def import_responses(
    job: Job,
    source: Path,
    model: str | None = None,
    *,
    pattern: str | None = None,
    skip_other: bool = False,
    skip_unknown: bool = False,
) -> StageReport:
    """Import responses: rows `task, model, response[, trial, vintage]`, or one object `{task:
    response}` and `model`.

    Instead of a response, a row may name a document in `file`. Each document of a folder counts as
    such a row, with the fields in its name. With `skip_other`, other files of the folder are
    skipped; with `skip_unknown`, rows and documents on tasks that the data set lacks. A row without
    a vintage gets that of the job. Texts are stored unchanged. Every row is checked before the
    first is stored. Responses to refused tasks are imported too, because the policy of a check may
    change.

    Raises:
        ImportRefused: a row names an unknown task or lacks a field, or a different text is stored
            for it.
        DocumentRefused: a document cannot be converted.
    """
    benchmark = load_benchmark(job.settings.benchmark)
    key = job.key
    with Warehouse(job.warehouse).reader() as reader:
        tasks = reader.select("tasks", "task_id, conversation_id", **key)
        stored = files.stored_cells(reader, "responses")
    conversations = {row["task_id"]: row["conversation_id"] for row in tasks}
    files.refuse_not_ingested(job, conversations)
    offer = offer_of(source, model, pattern, benchmark, skip_other=skip_other, tasks=conversations)
    rows, folder, batch, n_left_out = offer
    given, skipped = files.of_what_is_here(
        rows, partial(_cell, job, key, conversations), skip_unknown=skip_unknown
    )
    if not given:
        files.refuse_nothing(source, skipped)
    # Imported documents are not converted again, because another library version may give another
    # text.
    same = {identity for identity, row in stored.items() if row["import_batch"] == batch}
    new = [(o, cell) for o, cell in given if o.document is None or cell["response_id"] not in same]
    texts = convert(_documents([offered for offered, _ in new]), folder, is_quiet=job.is_quiet)
    cells = files.Cells("responses", stored, batch)
    for (where, row, document), cell in new:
        text = row.get("response")
        cause = None
        if document is not None:
            text = texts[document].text
            cause = f"{document.name} has no text: it is empty, or has only pictures"
        columns = content_columns(
            None if text is None or shows_nothing(text) else text, EMPTY, cause
        )
        cells.put(where, cell | columns | {"import_batch": batch})
    cells.given |= {cell["response_id"] for _, cell in given}
    return files.store(job, batch, {"responses": cells}, [*_notes(texts, n_left_out), *skipped])


def _cell(job: Job, key: Row, conversations: Mapping[str, str], offered: Offered) -> Row:
    """Return all columns of the response of a row, except those of its text and the batch."""
    where, given, document = offered
    task_id = files.required_text(where, given, "task")
    model = files.required_text(where, given, "model", "--as LABEL")
    if task_id not in conversations:
        raise NotHere(
            f"{where}: task {task_id!r} is not in revision {key['dataset_revision'][:12]}"
        )
    if document is None and "response" not in given:
        raise ImportRefused(
            f"{where}: `response` is missing; add it (an empty one counts as a failed response)"
        )
    trial = files.number_of(where, given, "trial")
    vintage = files.text_in(given, "vintage") or job.vintage
    if is_impossible_date(vintage) and vintage != job.vintage:
        raise ImportRefused(f"{where}: vintage {vintage!r} is not a date; write 2026-11-22")
    return response_cell(job, key, task_id, conversations[task_id], model, trial, vintage)


def response_cell(
    job: Job, key: Row, task_id: str, conversation: str, model: str, trial: int, vintage: str
) -> Row:
    """Return all columns of an imported response, except those of its text and the batch."""
    return {
        **key,
        **call_columns(job, NO_CALL),
        "response_id": response_id(
            benchmark=key["benchmark"],
            dataset_revision=key["dataset_revision"],
            task_id=task_id,
            conversation_id=conversation,
            model=model,
            model_config_hash=IMPORTED,
            trial=trial,
            vintage=vintage,
        ),
        "task_id": task_id,
        "conversation_id": conversation,
        "model": model,
        "model_config_hash": IMPORTED,
        "trial": trial,
        "vintage": vintage,
        "source": "imported",
        "finish_reason": None,
        "degraded": False,
        "reasoning_tokens": None,
    }


def content_columns(text: str | None, failure: str, cause: str | None) -> Row:
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


def _notes(texts: Mapping[Path, Converted], n_left_out: int) -> Iterator[str]:
    """Yield notes on converted documents and on skipped files."""
    if texts:
        libraries = converters(list(texts))
        yield f"{len(texts)} documents read" + (
            f" with {', '.join(libraries)}" if libraries else ""
        )
    read = texts.values()
    for what, n in (
        (
            "of them without text are failed responses (`empty`)",
            sum(shows_nothing(each.text) for each in read),
        ),
        ("pages without text", sum(each.n_pages_without_text for each in read)),
        (
            "characters that could not be read from a PDF are U+FFFD",
            sum(each.n_unreadable for each in read),
        ),
        ("DOCX files whose formulas were skipped", sum(each.lacks_formulas for each in read)),
        ("other files skipped", n_left_out),
    ):
        if n:
            yield f"{n} {what}"
