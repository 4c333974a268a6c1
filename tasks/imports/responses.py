"""Importing responses."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tasks.benchmarks.rows import as_text
from tasks.calls import NO_CALL
from tasks.imports.files import (
    Given,
    ImportRefused,
    batch_of,
    given_rows,
    number_of,
    refuse_conflict,
    required_text,
    store,
    vintage_in,
)
from tasks.llm.replies import EMPTY, OK
from tasks.reports import StageReport
from tasks.rules.identity import IMPORTED, response_id
from tasks.rules.text import count_alphanumeric, is_blank
from tasks.settings import Job
from tasks.sources import source_of
from warehouse import Warehouse


def import_responses(job: Job, file: Path, model: str | None = None) -> StageReport:
    """Bring responses in: rows `task, model, response[, trial, vintage]`, or one object `{task: response}` and `model`.

    A row without a vintage is of the job's. Texts are stored as given. Every row is looked at before the first is
    stored. Tasks that are not admitted are taken too: should the policy change, their answers are here.

    Raises:
        ImportRefused: a row is of an unknown task or lacks something, or another text is stored in its place.
    """
    benchmark, source = source_of(job)
    key = {"benchmark": benchmark.name, "dataset_revision": source.revision}
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        conversations = {
            row["task_id"]: row["conversation_id"]
            for row in reader.rows(
                "select task_id, conversation_id from tasks where benchmark = ? and dataset_revision = ?",
                list(key.values()),
            )
        }
        stored = {
            row["response_id"]: row["text"]
            for row in reader.rows(
                "select response_id, text from responses where source = 'imported' and status = 'ok'"
            )
        }
    if not conversations:
        raise ImportRefused(f"revision {source.revision[:12]} of {source.name} is not here; run `prbench ingest` first")
    rows: dict[str, dict[str, Any]] = {}
    batch = batch_of(file)
    for where, row in given_rows(file, model):
        made = _response_row(job, key, batch, where, row, conversations)
        earlier = rows.get(made["response_id"])
        refuse_conflict(where, made["text"] or "", stored.get(made["response_id"]), earlier and (earlier["text"] or ""))
        rows[made["response_id"]] = made
    return store(job, "responses", [r for i, r in rows.items() if i not in stored], len(rows), batch)


def _response_row(
    job: Job, key: dict[str, str], batch: str, where: str, given: Given, conversations: dict[str, str]
) -> dict[str, Any]:
    task_id, model = required_text(where, given, "task"), required_text(where, given, "model")
    if task_id not in conversations:
        raise ImportRefused(f"{where}: task {task_id!r} is not in revision {key['dataset_revision'][:12]}")
    if "response" not in given:
        raise ImportRefused(f"{where}: `response` is missing; add it (an empty one counts as a failed response)")
    text, trial = as_text(given["response"]), number_of(where, given, "trial")
    vintage, is_empty = vintage_in(given) or job.vintage, is_blank(text)
    conversation = conversations[task_id]
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
        "import_batch": batch,
        "status": EMPTY if is_empty else OK,
        "text": None if is_empty else text,
        "chars_alnum": None if text is None or is_empty else count_alphanumeric(text),
        "finish_reason": None,
        "degraded": False,
        "reasoning_tokens": None,
        "run_id": job.run_id,
        "created_at": datetime.now(UTC),
    }
