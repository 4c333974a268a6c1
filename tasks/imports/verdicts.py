"""Importing verdicts: another judge's, or people's labels."""

from datetime import UTC, datetime
from pathlib import Path
from textwrap import shorten
from typing import Any

from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.benchmarks.rows import as_number, as_text
from tasks.config.job import Job
from tasks.config.models import ORIGINAL
from tasks.imports.answers import Answers
from tasks.imports.criteria import Criteria, Wording
from tasks.imports.files import (
    Given,
    ImportRefused,
    batch_of,
    given_rows,
    in_known_shape,
    number_of,
    of_what_is_here,
    origin_of,
    refuse_conflict,
    store,
)
from tasks.imports.labels import labeller_rows, people_in_drawn_rows, refuse_drawn, stated_sample_rows
from tasks.rules.identity import IMPORTED, verdict_id
from tasks.rules.text.characters import is_blank
from tasks.rules.verdict import BINARY, GRADINGS, VALUES, WORDS, status_of
from tasks.run.writing import NO_CALL, StageReport
from warehouse import Reader, Warehouse

_NAMED_CHARS = 60
_STATUS = {value: status for status, value in VALUES.items()}
_YES_OR_NO = ("true", "false", "yes", "no")
"""What is said where there are two answers and no third."""
SHEET_COLUMN = "how_to_fill_in"
"""The column by which a sheet for human graders is known."""
_WORDS = {
    "true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0, "1": 1.0, "1.0": 1.0, "0.5": 0.5, "0": 0.0, "0.0": 0.0,
    **VALUES,
}  # fmt: skip


def import_verdicts(
    job: Job, file: Path, model: str | None = None, *, task: str | None = None, judge: str | None = None,
    grading: str | None = None, skip_empty: bool = False, skip_unknown: bool = False, is_random_sample: bool = False,
) -> StageReport:  # fmt: skip
    """Bring verdicts in: rows `task, model, criterion, criteria_met` (or `value` 0, 0.5, 1, or `verdict` in words)
    `[, judge, trial, vintage, judge_trial, grading, category, occurrence, explanation, confidence, response]`, or rows
    in the benchmark's own shape. `task`, `model`, `judge` (else `imported`) and `grading` stand in where a row has
    none; `criterion` is an id or a criterion's text.

    Every row is looked at before the first is stored. With `skip_empty` rows without a decision are left out, as in a
    sheet that is filled in halfway; with `skip_unknown` those on tasks or criteria that the data set does not have. A
    row without a vintage is of the job's; `response` is what was read, and is held against the stored answer. With
    `is_random_sample` the user states that the rows are a simple random sample of all verdicts of their models.

    Raises:
        ImportRefused: a row fits no stored response or criterion, shows another text than the stored answer, or another
            decision is stored in its place.
    """  # fmt: skip  # noqa: D205 - the list of columns takes three lines
    batch = batch_of(file, "verdicts", task, model, judge, grading)
    benchmark, data = load_benchmark(job.settings.benchmark), job.data
    key = {"benchmark": benchmark.name, "dataset_revision": data.revision}
    given = list(in_known_shape(benchmark, given_rows(file, task=task, model=model, judge=judge, grading=grading)))
    decided = [each for each in given if not skip_empty or _stated(each[1])]
    with Warehouse(job.warehouse).reader() as reader:
        criteria = Criteria(reader, key)
        answers = Answers(job, key, reader, (row for _, row in decided))
        stored = stored_verdicts(reader)
    if not criteria:
        raise ImportRefused(f"revision {data.revision[:12]} of {data.name} is not ingested; run `prbench ingest` first")
    placed = list(of_what_is_here(decided, lambda each: criteria.of(*each), skip_unknown=skip_unknown))
    rows: dict[str, dict[str, Any]] = {}
    made_from: dict[str, tuple[str, Given]] = {}
    for (where, row), wording in placed:
        made = _verdict_row(job, benchmark, batch, where, row, key | answers.of(where, row, wording.task_id), wording)
        for known in filter(None, (stored.get(made["verdict_id"]), rows.get(made["verdict_id"]))):
            about = f"judge {made['judge']}, value {known['value']:g}, {origin_of(known, batch)}"
            refuse_conflict(where, "verdict", made["value"], known["value"], about)
        rows[made["verdict_id"]] = made
        made_from[made["verdict_id"]] = (where, row)
    with Warehouse(job.warehouse).reader() as reader:
        people = people_in_drawn_rows(job, reader, batch, rows.values())
    of_people = [
        row for identity, row in rows.items()
        if is_random_sample or SHEET_COLUMN in made_from[identity][1] or row["judge"] in people
    ]  # fmt: skip
    for row in of_people:
        row["may_hide_failures"] = False  # no call of a person fails
    _store_labels(job, file, batch, of_people, is_random_sample=is_random_sample)
    report = store(job, {"verdicts": [r for i, r in rows.items() if i not in stored]}, {"verdicts": len(rows)}, batch)
    if skip_empty:
        report.notes.append(f"{len(given) - len(decided)} rows without a decision skipped")
    if skip_unknown:
        report.notes.append(f"{len(decided) - len(placed)} rows skipped whose task or criterion is not in the data set")
    return report


def stored_verdicts(reader: Reader) -> dict[str, dict[str, Any]]:
    """Imported verdicts by id: value and batch."""
    rows = reader.rows("select verdict_id, value, import_batch from verdicts where source = 'imported'")
    return {row["verdict_id"]: row for row in rows}


def _store_labels(job: Job, file: Path, batch: str, rows: list[dict[str, Any]], *, is_random_sample: bool) -> None:
    """Write down that some verdicts are people's labels, and how they were sampled if the user says so."""
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        labellers = labeller_rows(reader, batch, rows)
        sheets: list[dict[str, Any]] = []
        draws: list[dict[str, Any]] = []
        if is_random_sample:
            refuse_drawn(reader, file, rows)
            sheets, draws = stated_sample_rows(job, reader, batch, rows)
    for name, new in (("labellers", labellers), ("label_sheets", sheets), ("label_draws", draws)):
        warehouse.write(name, new)


def _verdict_row(
    job: Job, benchmark: Benchmark, batch: str, where: str, given: Given, response: dict[str, Any], wording: Wording
) -> dict[str, Any]:
    judge_trial = number_of(where, given, "judge_trial")
    grading = _grading(where, given, benchmark)
    criterion = shorten(as_text(given.get("criterion")) or "", _NAMED_CHARS, placeholder=" …")
    value = _value(f"{where}, {response['model']} on {criterion!r}", given, grading)
    cell = verdict_cell(job, response, wording, _judge(where, given), judge_trial, grading)
    return cell | {
        "import_batch": batch,
        "status": _STATUS[value],
        "value": value,
        "explanation": as_text(given.get("explanation")),
        "confidence": _confidence(where, given),
    }


def verdict_cell(
    job: Job, response: dict[str, Any], wording: Wording, judge: str, judge_trial: int, grading: str
) -> dict[str, Any]:
    """All of an imported verdict but the decision and the batch; `response` has the key of the data set too."""
    # Verdicts on another wording of the rubric count under a judge configuration of their own.
    config_hash = IMPORTED if wording.rubric == ORIGINAL else f"{IMPORTED} {wording.rubric}"
    identity = verdict_id(
        response["response_id"], response["text"], wording.criterion_id, wording.content_hash, judge, config_hash,
        IMPORTED, grading, judge_trial,
    )  # fmt: skip
    copied = ("benchmark", "dataset_revision", "response_id", "task_id", "model", "trial", "vintage")
    return {
        **{name: response[name] for name in copied},
        **NO_CALL,
        "verdict_id": identity,
        "criterion_id": wording.criterion_id,
        "criterion_hash": wording.content_hash,
        "judge": judge,
        "judge_config_hash": config_hash,
        "template_hash": IMPORTED,
        "grading": grading,
        "judge_trial": judge_trial,
        "source": "imported",
        "confidence": None,
        "decided_by": None,
        "escalated_because": None,
        "may_hide_failures": None,
        "run_id": job.run_id,
        "created_at": datetime.now(UTC),
    }


def _confidence(where: str, given: Given) -> float | None:
    """How sure the judge was of its decision; None where a row does not say."""
    stated = given.get("confidence")
    if stated is None or stated == "":
        return None
    confidence = as_number(stated)
    if confidence is None or not 0.0 <= confidence <= 1.0:
        raise ImportRefused(f"{where}: `confidence` is {stated!r}; it is a number from 0 to 1")
    return confidence


def _judge(where: str, given: Given) -> str:
    """Who decided; in a sheet for graders that has to be said, since two of them would be taken for one."""
    judge = (as_text(given.get("judge")) or "").strip()
    if not judge and SHEET_COLUMN in given and _stated(given):
        raise ImportRefused(f"{where}: `judge` is empty; enter the grader's name, or give it with --by NAME")
    return judge or IMPORTED


def _grading(where: str, given: Given, benchmark: Benchmark) -> str:
    is_yes_or_no = (as_text(given.get("criteria_met")) or "").strip().lower() in _YES_OR_NO
    grading = as_text(given.get("grading")) or (BINARY if is_yes_or_no else benchmark.grading)
    if grading not in GRADINGS:
        raise ImportRefused(f"{where}: `grading` is {grading!r}; it is {' or '.join(GRADINGS)}")
    return grading


def _value(where: str, given: Given, grading: str) -> float:
    """The decision of a row: true or false, or 0, 0.5 or 1 as a number or in words."""
    stated = _stated(given)
    values = {_as_value(raw) for raw in stated}
    value = values.pop() if len(values) == 1 else None
    if value is None or (value == 0.5 and grading == BINARY):
        said = " and ".join(map(repr, stated)) or "missing (--skip-empty leaves such rows out)"
        allowed = "true or false, yes or no, or 1 or 0" if grading == BINARY else f"0, 0.5 or 1, or {', '.join(WORDS)}"
        raise ImportRefused(f"{where}: the decision is {said}; a {grading} verdict is {allowed}")
    return value


def _stated(given: Given) -> list[Any]:
    """What a row says about the decision; nothing where its cells are empty."""
    cells = [given.get(name) for name in ("criteria_met", "value", "verdict")]
    return [cell for cell in cells if cell is not None and not (isinstance(cell, str) and is_blank(cell))]


def _as_value(raw: Any) -> float | None:
    if isinstance(raw, bool):
        return float(raw)
    if isinstance(raw, str):
        status = status_of(raw)
        return _WORDS.get(raw.strip().lower()) if status is None else VALUES[status]
    value = as_number(raw)
    return value if value in _STATUS else None
