"""Importing verdicts: another judge's, or people's labels."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tasks.benchmarks.base import Benchmark
from tasks.benchmarks.rows import as_number, as_text
from tasks.calls import NO_CALL
from tasks.imports.answers import Answers
from tasks.imports.files import (
    Given,
    ImportRefused,
    batch_of,
    given_rows,
    number_of,
    refuse_conflict,
    required_text,
    store,
)
from tasks.reports import StageReport
from tasks.rules.cells import as_before
from tasks.rules.identity import IMPORTED, verdict_id
from tasks.rules.text import is_blank
from tasks.rules.verdict import MET, PARTIAL, UNMET
from tasks.settings import Job
from tasks.sources import source_of
from warehouse import Reader, Warehouse

_STATUS = {1.0: MET, 0.5: PARTIAL, 0.0: UNMET}
_WORDS = {"true": 1.0, "false": 0.0, "1": 1.0, "1.0": 1.0, "0.5": 0.5, "0": 0.0, "0.0": 0.0}


def import_verdicts(job: Job, file: Path, model: str | None = None, *, skip_empty: bool = False) -> StageReport:
    """Bring verdicts in: rows `task, model, criterion, criteria_met` (or `value` 0, 0.5, 1)
    `[, judge, trial, vintage, judge_trial, explanation, response]`; the judge is called `imported` where none is named.

    Every row is looked at before the first is stored. With `skip_empty` rows without a decision are left out, as in a
    sheet that is filled in halfway. A row without a vintage is of the job's; `response` is what was read, and is held
    against the stored answer.

    Raises:
        ImportRefused: a row fits no stored response or criterion, shows another text than the stored answer, or another
            decision is stored in its place.
    """  # noqa: D205 - the list of columns takes two lines
    benchmark, source = source_of(job)
    key = {"benchmark": benchmark.name, "dataset_revision": source.revision}
    warehouse = Warehouse(job.warehouse)
    batch = batch_of(file)
    given = list(given_rows(file, model))
    with warehouse.reader() as reader:
        answers = Answers(job, key, reader, (row for _, row in given))
        criteria = _criteria(reader, key)
        stored = {
            row["verdict_id"]: row["value"]
            for row in reader.rows("select verdict_id, value from verdicts where source = 'imported'")
        }
    if not criteria:
        raise ImportRefused(f"revision {source.revision[:12]} of {source.name} is not here; run `prbench ingest` first")
    rows: dict[str, dict[str, Any]] = {}
    n_empty = 0
    for where, row in given:
        if skip_empty and not _stated(row):
            n_empty += 1
            continue
        made = _verdict_row(job, benchmark, batch, where, row, key | answers.of(where, row), criteria)
        earlier = rows.get(made["verdict_id"])
        refuse_conflict(where, made["value"], stored.get(made["verdict_id"]), earlier and earlier["value"])
        rows[made["verdict_id"]] = made
    report = store(job, "verdicts", [r for i, r in rows.items() if i not in stored], len(rows), batch)
    if skip_empty:
        report.notes.append(f"{n_empty} rows without a decision left out")
    return report


def _criteria(reader: Reader, key: dict[str, str]) -> dict[tuple[str, str], str]:
    rows = reader.rows(
        "select task_id, criterion_id, content_hash from criteria where benchmark = ? and dataset_revision = ?",
        list(key.values()),
    )
    return {(row["task_id"], row["criterion_id"]): row["content_hash"] for row in rows}


def _verdict_row(
    job: Job, benchmark: Benchmark, batch: str, where: str, given: Given, response: dict[str, Any],
    criteria: dict[tuple[str, str], str],
) -> dict[str, Any]:  # fmt: skip
    criterion = required_text(where, given, "criterion")
    if (response["task_id"], criterion) not in criteria:
        criterion = as_before(criterion)
    content = criteria.get((response["task_id"], criterion))
    if content is None:
        raise ImportRefused(f"{where}: task {response['task_id']} has no criterion {criterion!r}")
    judge = as_text(given.get("judge")) or IMPORTED
    judge_trial = number_of(where, given, "judge_trial")
    value = _value(where, given, benchmark.grading)
    identity = verdict_id(
        response["response_id"], response["text"], criterion, content, judge, IMPORTED, IMPORTED, benchmark.grading,
        judge_trial,
    )  # fmt: skip
    copied = ("benchmark", "dataset_revision", "response_id", "task_id", "model", "trial", "vintage")
    return {
        **{name: response[name] for name in copied},
        **NO_CALL,
        "verdict_id": identity,
        "criterion_id": criterion,
        "criterion_hash": content,
        "judge": judge,
        "judge_config_hash": IMPORTED,
        "template_hash": IMPORTED,
        "grading": benchmark.grading,
        "judge_trial": judge_trial,
        "source": "imported",
        "import_batch": batch,
        "status": _STATUS[value],
        "value": value,
        "explanation": as_text(given.get("explanation")),
        "run_id": job.run_id,
        "created_at": datetime.now(UTC),
    }


def _value(where: str, given: Given, grading: str) -> float:
    """The decision of a row: true or false, or 0, 0.5 or 1 as a number or in words."""
    stated = _stated(given)
    values = {_as_value(raw) for raw in stated}
    value = values.pop() if len(values) == 1 else None
    if value is None or (value == 0.5 and grading == "binary"):
        said = " and ".join(map(repr, stated)) or "missing (--skip-empty leaves such rows out)"
        raise ImportRefused(f"{where}: criteria_met is {said}; a {grading} verdict is true or false, or 1 or 0")
    return value


def _stated(given: Given) -> list[Any]:
    """What a row says about the decision; nothing where its cells are empty."""
    cells = [given.get(name) for name in ("criteria_met", "value")]
    return [cell for cell in cells if cell is not None and not (isinstance(cell, str) and is_blank(cell))]


def _as_value(raw: Any) -> float | None:
    if isinstance(raw, bool):
        return float(raw)
    value = _WORDS.get(raw.strip().lower()) if isinstance(raw, str) else as_number(raw)
    return value if value in _STATUS else None
