"""Importing responses: texts in rows, and documents."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tasks.benchmarks import load_benchmark
from tasks.benchmarks.rows import as_text
from tasks.config.job import Job
from tasks.imports.documents import Converted, convert, converters
from tasks.imports.files import (
    ImportRefused,
    NotHere,
    number_of,
    of_what_is_here,
    origin_of,
    refuse_conflict,
    refuse_unreadable,
    required_text,
    store,
    vintage_in,
)
from tasks.imports.offers import Offered, offer_of
from tasks.llm import EMPTY, OK
from tasks.rules.identity import IMPORTED, response_id
from tasks.rules.text.characters import count_alphanumeric, shows_nothing
from tasks.run.writing import NO_CALL, StageReport
from warehouse import Reader, Warehouse

Row = dict[str, Any]


def import_responses(
    job: Job,
    source: Path,
    model: str | None = None,
    *,
    pattern: str | None = None,
    skip_other: bool = False,
    skip_unknown: bool = False,
) -> StageReport:
    """Bring responses in: rows `task, model, response[, trial, vintage]`, or one object `{task: response}` and `model`.

    A row may name a document in `file` instead of having a response. Each document of a folder is such a row, as its
    name says by the pattern; with `skip_other` other files of the folder are left out, with `skip_unknown` rows and
    documents on tasks that the data set does not have. A row without a vintage is of the job's. Texts are stored as
    given. Every row is looked at before the first is stored. Tasks that are not admitted are taken too: should the
    policy change, their answers are here.

    Raises:
        ImportRefused: a row is of an unknown task or lacks something, or another text is stored in its place.
        DocumentRefused: a document cannot be read.
    """
    refuse_unreadable(source, may_be_folder=True)
    benchmark, data = load_benchmark(job.settings.benchmark), job.data
    key = {"benchmark": benchmark.name, "dataset_revision": data.revision}
    with Warehouse(job.warehouse).reader() as reader:
        conversations, stored = _conversations(reader, key), stored_responses(reader)
    if not conversations:
        raise ImportRefused(f"revision {data.revision[:12]} of {data.name} is not ingested; run `prbench ingest` first")
    offer = offer_of(source, model, pattern, benchmark, skip_other=skip_other, tasks=conversations)
    given = list(
        of_what_is_here(offer.rows, lambda row: _cell(job, key, row, conversations), skip_unknown=skip_unknown)
    )
    # What the same documents became stays, also where another version of a library would convert them otherwise.
    cells = [(offered, cell) for offered, cell in given if not _is_from(offer.batch, offered, cell, stored)]
    documents = list(dict.fromkeys(o.document for o, _ in cells if o.document is not None))
    texts = convert(documents, offer.folder, is_quiet=job.is_quiet)
    rows = _rows(cells, texts, stored, offer.batch)
    new = [row for row in rows if row["text"] != stored.get(row["response_id"], _NOT_THERE)["text"]]
    n_given = len({cell["response_id"] for _, cell in given})
    report = store(job, {"responses": new}, {"responses": n_given}, offer.batch)
    report.notes += _notes(texts, offer.n_left_out, len(offer.rows) - len(given))
    return report


_NOT_THERE = {"text": ...}


def _rows(
    cells: Sequence[tuple[Offered, Row]], texts: Mapping[Path, Converted], stored: Mapping[str, Row], batch: str
) -> list[Row]:
    """Cells with their answers, unless another answer is stored or stands earlier in the import."""
    rows: dict[str, Row] = {}
    for offered, cell in cells:
        place, answer = cell["response_id"], _answer(offered, texts)
        text, about = answer["text"] or "", f"model {cell['model']}, trial {cell['trial']}"
        if (before := stored.get(place)) is not None:
            about_stored = f"{about}, {origin_of(before, batch)}"
            refuse_conflict(offered.where, "response", text, before["text"], about_stored)
        if (earlier := rows.get(place)) is not None:
            about_earlier = f"{about}, earlier in this import"
            refuse_conflict(offered.where, "response", text, earlier["text"] or "", about_earlier)
        rows[place] = cell | answer | {"import_batch": batch}
    return list(rows.values())


def _conversations(reader: Reader, key: Mapping[str, str]) -> dict[str, str]:
    """Task -> its conversation, of a data set."""
    rows = reader.rows(
        "select task_id, conversation_id from tasks where benchmark = ? and dataset_revision = ?", list(key.values())
    )
    return {row["task_id"]: row["conversation_id"] for row in rows}


def stored_responses(reader: Reader) -> dict[str, Row]:
    """Imported responses by id: text (None where it was empty) and batch."""
    rows = reader.rows("select response_id, text, import_batch from responses where source = 'imported'")
    return {row["response_id"]: row for row in rows}


def _cell(job: Job, key: Mapping[str, str], offered: Offered, conversations: Mapping[str, str]) -> Row:
    """All of a response but the answer itself."""
    where, given, document = offered
    task_id, model = required_text(where, given, "task"), required_text(where, given, "model", "--as LABEL")
    if task_id not in conversations:
        raise NotHere(f"{where}: task {task_id!r} is not in revision {key['dataset_revision'][:12]}")
    if document is None and "response" not in given:
        raise ImportRefused(f"{where}: `response` is missing; add it (an empty one counts as a failed response)")
    trial, vintage = number_of(where, given, "trial"), vintage_in(given) or job.vintage
    return response_cell(job, key, task_id, conversations[task_id], model, trial, vintage)


def response_cell(
    job: Job, key: Mapping[str, str], task_id: str, conversation: str, model: str, trial: int, vintage: str
) -> Row:
    """All of an imported response but the answer and the batch."""
    return {
        **key,
        **NO_CALL,
        "response_id": response_id(
            key["benchmark"], key["dataset_revision"], task_id, conversation, model, IMPORTED, trial, vintage
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
        "run_id": job.run_id,
        "created_at": datetime.now(UTC),
    }


def _is_from(batch: str, offered: Offered, cell: Row, stored: Mapping[str, Row]) -> bool:
    """Whether a document of the same batch stands in a cell already."""
    before = stored.get(cell["response_id"])
    return offered.document is not None and before is not None and before["import_batch"] == batch


def _answer(offered: Offered, texts: Mapping[Path, Converted]) -> Row:
    document = offered.document
    text = as_text(offered.row["response"]) if document is None else texts[document].text
    if text is None or shows_nothing(text):
        cause = None if document is None else f"{document.name} holds no text: it is empty, or pictures only"
        return {"status": EMPTY, "text": None, "chars_alnum": None, "error": cause}
    return {"status": OK, "text": text, "chars_alnum": count_alphanumeric(text), "error": None}


def _notes(texts: Mapping[Path, Converted], n_left_out: int, n_unknown: int) -> Iterator[str]:
    """What people should know about what was read and what was not."""
    if texts:
        libraries = converters(list(texts))
        yield f"{len(texts)} documents read" + (f" with {', '.join(libraries)}" if libraries else "")
    found: Sequence[tuple[int, str]] = (
        (
            sum(shows_nothing(each.text) for each in texts.values()),
            "of them without text are failed responses (`empty`)",
        ),
        (sum(text.n_pages_without_text for text in texts.values()), "pages without text"),
        (sum(text.n_unreadable for text in texts.values()), "characters that could not be read from a PDF are U+FFFD"),
        (sum(text.lacks_formulas for text in texts.values()), "DOCX files whose formulas were skipped"),
        (n_left_out, "other files skipped"),
        (n_unknown, "rows skipped whose task is not in the data set"),
    )
    yield from (f"{n} {what}" for n, what in found if n)
