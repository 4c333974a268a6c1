"""The import of verdicts of another judge, and of people's labels with how they were sampled."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tasks.benchmarks import load_benchmark
from tasks.benchmarks.rows import as_number
from tasks.config.job import Job
from tasks.config.models import ORIGINAL
from tasks.dataset.foreign_files import read_regular
from tasks.imports import files
from tasks.imports.files import FileRow, ImportRefused, LocatedRow, StoredRow
from tasks.imports.matching import Criteria, StoredResponses, Wording
from tasks.rules.identity import IMPORTED, digest, verdict_id
from tasks.rules.verdict import BINARY, GRADINGS, STATUSES, VALUES, WORDS, status_of
from tasks.run.writing import NO_CALL, StageReport, call_columns
from warehouse import Reader, Warehouse
from warehouse.tables import OF_SOME_JUDGES

_DECISION_COLUMNS = ("criteria_met", "value", "verdict")
"""Columns for the decision; a row needs one of them, and several must agree."""
SHEET_COLUMN = "how_to_fill_in"
"""A file with this column is a sheet for human graders, or for reviewers of criteria."""
_COLUMNS: files.Columns = {
    ("task",): "--task ID",
    ("model",): "--as LABEL",
    ("criterion",): "",
    _DECISION_COLUMNS: "",
}
_RESPONSE_COLUMNS = (
    "benchmark",
    "dataset_revision",
    "task_id",
    "model",
    "trial",
    "vintage",
)
"""Columns that a verdict has in common with its response, besides its id."""
BINARY_WORDS = {"true": 1.0, "false": 0.0, "yes": 1.0, "no": 0.0}
"""Words that are only used in binary grading."""
_WORDS = {
    **BINARY_WORDS,
    "1": 1.0,
    "1.0": 1.0,
    "0.5": 0.5,
    "0": 0.0,
    "0.0": 0.0,
    **VALUES,
}


def import_verdicts(
    job: Job,
    file: Path,
    model: str | None = None,
    *,
    task: str | None = None,
    judge: str | None = None,
    grading: str | None = None,
    skip_empty: bool = False,
    skip_unknown: bool = False,
    is_random_sample: bool = False,
) -> StageReport:
    """Import verdicts: rows with a decision, or rows in the benchmark's own shape.

    Rows have `task`, `model`, `criterion` and a decision: `criteria_met`, `value` (0, 0.5, 1) or
    `verdict` in words. Further columns are `judge, trial, vintage, judge_trial, grading, category,
    occurrence, explanation, confidence, response`. `task`, `model`, `judge` and `grading` are
    defaults for rows that lack them; the judge of a row without one is `imported`. `criterion` is
    an id or a criterion's text.

    Every row is checked before the first is stored. With `skip_empty`, rows without a decision are
    left out, as in a partly filled sheet; with `skip_unknown`, rows on tasks or criteria that the
    data set lacks. A row without a vintage gets that of the job. `response`, the text that the
    grader read, is compared with the stored response. With `is_random_sample` the user states that
    the rows are a simple random sample of all verdicts of their models.

    Raises:
        ImportRefused: a row matches no stored response or criterion, has another text than the
            stored response, or a different decision is stored for it.
    """
    batch = files.batch_of(read_regular(file), "verdicts", task, model, judge, grading)
    rows = files.rows_with_columns(
        file,
        _COLUMNS,
        load_benchmark(job.benchmark),
        task=task,
        model=model,
        judge=judge,
        grading=grading,
    )
    notes = list[str]()
    if skip_empty:
        rows, notes = files.decided_rows(rows, _decisions_in)
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        criteria = Criteria(job, reader)
        matched, skipped = files.matched_rows(rows, criteria.of_row, skip_unknown=skip_unknown)
        notes += skipped
        if not matched:
            files.raise_nothing_to_import(file, notes)
        verdicts = files.RowsToImport("verdicts", files.imported_rows(reader, "verdicts"), batch)
        labels = _put_verdicts(job, reader, verdicts, matched, are_labels=is_random_sample)
        tables = _labellers(job, reader, batch, labels)
        if is_random_sample:
            tables |= _stated_sample(job, reader, file, batch, labels)
    for table, table_rows in tables.items():
        warehouse.write(table, table_rows)
    return files.store_batch(job, [verdicts], notes)


def _put_verdicts(
    job: Job,
    reader: Reader,
    rows_to_import: files.RowsToImport,
    matched: Sequence[tuple[LocatedRow, Wording]],
    *,
    are_labels: bool,
) -> list[StoredRow]:
    """Add the verdict of each row, and return people's labels among them.

    Labels are all verdicts if `are_labels`; otherwise those in a sheet, and those of new people.
    """
    grading = load_benchmark(job.benchmark).grading
    responses = StoredResponses(job, reader, [located for located, _ in matched])
    verdicts = {}
    label_ids = set()
    for located, wording in matched:
        response = job.key | responses.of_row(located, wording.task_id)
        row = _verdict_row(job, grading, located, response, wording)
        row_id = row["verdict_id"]
        verdicts[row_id] = rows_to_import.put(located.where, row)
        if are_labels or SHEET_COLUMN in located.row:
            label_ids.add(row_id)
    people = _new_people(job, reader, rows_to_import.batch, verdicts.values())
    labels = []
    for row_id, verdict in verdicts.items():
        if row_id in label_ids or verdict["judge"] in people:
            verdict["may_hide_failures"] = False  # people make no calls, so none can fail
            labels.append(verdict)
    return labels


def _new_people(job: Job, reader: Reader, batch: str, verdicts: Iterable[StoredRow]) -> set[str]:
    """Return the graders of an import who are people although no row is from a sheet.

    A grader who decided only verdicts of one sheet is a person who filled it in, unless the name is
    that of a judge: one that is configured, or has stored verdicts of another import or run without
    being a person who labels.
    """
    benchmark = job.benchmark
    labellers = {row["judge"] for row in reader.select("labellers", "judge", benchmark=benchmark)}
    judges = set(job.settings.judge_labels)
    for row in reader.select("verdicts", "distinct judge, import_batch", benchmark=benchmark):
        if row["import_batch"] != batch and row["judge"] not in labellers:
            judges.add(row["judge"])
    verdicts_by_grader = defaultdict(list)
    for verdict in verdicts:
        verdicts_by_grader[verdict["judge"]].append(verdict)
    return {
        grader
        for grader, grader_verdicts in verdicts_by_grader.items()
        if grader not in judges and _are_on_one_sheet(reader, grader_verdicts)
    }


def _verdict_row(
    job: Job,
    benchmark_grading: str,
    located: LocatedRow,
    response: StoredRow,
    wording: Wording,
) -> StoredRow:
    """Return a verdict without its batch."""
    where, row, _ = located
    judge_trial = files.number_of(where, row, "judge_trial")
    judge = (files.text_in(row, "judge") or "").strip()
    decisions = _decisions_in(row)
    if not judge and SHEET_COLUMN in row and decisions:
        # Without names, two graders would count as one judge.
        raise ImportRefused(
            f"{where}: `judge` is empty; enter the grader's name, or give it with --by NAME"
        )
    grading = _grading_of(where, row, benchmark_grading)
    confidence = _confidence_of(where, row)
    value = _agreed_value(where, decisions, grading)
    return {
        **verdict_columns(job, response, wording, judge or IMPORTED, judge_trial, grading),
        "status": STATUSES[value],
        "value": value,
        "explanation": files.text_in(row, "explanation"),
        "confidence": confidence,
    }


def _grading_of(where: str, row: FileRow, benchmark_grading: str) -> str:
    grading = files.text_in(row, "grading")
    if grading is None:
        is_binary = str(row.get("criteria_met")).strip().lower() in BINARY_WORDS
        grading = BINARY if is_binary else benchmark_grading
    if grading not in GRADINGS:
        raise ImportRefused(f"{where}: `grading` is {grading!r}; it is {' or '.join(GRADINGS)}")
    return grading


def _confidence_of(where: str, row: FileRow) -> float | None:
    cell = row.get("confidence")
    if not files.is_filled(cell):
        return None
    confidence = None
    with suppress(ValueError):
        confidence = as_number(float(cell) if isinstance(cell, str) else cell)
    if confidence is None or not 0.0 <= confidence <= 1.0:
        raise ImportRefused(f"{where}: `confidence` is {cell!r}; it is a number from 0 to 1")
    return confidence


def _agreed_value(where: str, decisions: Sequence[Any], grading: str) -> float:
    """Return the value that all stated decisions of a row have."""
    values = {as_value(decision) for decision in decisions}
    value = values.pop() if len(values) == 1 else None
    if value is not None and not (value == 0.5 and grading == BINARY):
        return value
    stated = " and ".join(repr(decision)[:80] for decision in decisions)
    if not stated:
        stated = "missing (--skip-empty leaves such rows out)"
    allowed = f"0, 0.5 or 1, or {', '.join(WORDS)}"
    if grading == BINARY:
        allowed = "true or false, yes or no, or 1 or 0"
    raise ImportRefused(f"{where}: the decision is {stated}; a {grading} verdict is {allowed}")


def verdict_columns(
    job: Job,
    response: StoredRow,
    wording: Wording,
    judge: str,
    judge_trial: int,
    grading: str,
) -> StoredRow:
    """Return all columns of an imported verdict except decision and batch.

    `response` includes the data set's key.
    """
    # Verdicts on a rewritten rubric get another judge configuration.
    config_hash = IMPORTED if wording.rubric == ORIGINAL else f"{IMPORTED} {wording.rubric}"
    identity: StoredRow = {
        "response_id": response["response_id"],
        "criterion_id": wording.criterion_id,
        "criterion_hash": wording.content_hash,
        "judge": judge,
        "judge_config_hash": config_hash,
        "template_hash": IMPORTED,
        "grading": grading,
        "judge_trial": judge_trial,
    }
    return {
        **call_columns(job, NO_CALL),
        **{name: response[name] for name in _RESPONSE_COLUMNS},
        **identity,
        "verdict_id": verdict_id(**identity, response_text=response["text"]),
        "source": "imported",
        **dict.fromkeys(OF_SOME_JUDGES),  # NULL: columns of certain kinds of judges
        "decided_by": None,
        "escalated_because": None,
        "may_hide_failures": None,
        "members_usd": None,
    }


def _decisions_in(row: FileRow) -> list[Any]:
    """Return the cells of a row that state a decision, without empty ones."""
    return [row[name] for name in _DECISION_COLUMNS if files.is_filled(row.get(name))]


def as_value(decision: Any, words: Mapping[str, float] = _WORDS) -> float | None:
    """Return a decision, a number or a word, as 1, 0.5 or 0; None for anything else."""
    if isinstance(decision, bool):
        return float(decision)
    if isinstance(decision, str):
        status = status_of(decision)
        if status is not None:
            return VALUES[status]
        return words.get(re.sub("[ _-]+", " ", decision.strip().lower()))
    value = as_number(decision)
    return value if value in STATUSES else None


def _are_on_one_sheet(reader: Reader, verdicts: Iterable[StoredRow]) -> bool:
    """Return whether one sheet contains all of these verdicts."""
    subjects = sorted({_subject_of(verdict) for verdict in verdicts})
    parameters = {"subjects": list(map(list, subjects))}
    return bool(reader.query("queries/imports/sheets_of_verdicts", parameters))


_SUBJECT = ("response_id", "criterion_id", "criterion_hash")
"""The columns that say what a verdict is about."""


def _subject_of(verdict: StoredRow) -> tuple[str, ...]:
    return tuple(verdict[name] for name in _SUBJECT)


def _labellers(
    job: Job,
    reader: Reader,
    batch: str,
    labels: Iterable[StoredRow],
) -> dict[str, list[StoredRow]]:
    """Return the rows of `labellers`, for each person who gave a label and is not stored for this
    batch yet.
    """
    stored_people = {row["judge"] for row in reader.select("labellers", import_batch=batch)}
    people = {label["judge"] for label in labels} - stored_people
    columns = {
        "benchmark": job.benchmark,
        "import_batch": batch,
        "created_at": datetime.now(UTC),
    }
    return {"labellers": [{**columns, "judge": person} for person in sorted(people)]}


def _stated_sample(
    job: Job,
    reader: Reader,
    file: Path,
    batch: str,
    labels: Sequence[StoredRow],
) -> dict[str, list[StoredRow]]:
    """Return the rows that say how labels were sampled, as the user states it.

    Each model and vintage is a simple random sample of its own: the labelled verdicts, out of all
    verdicts on its usable responses to admitted tasks.

    Raises:
        ImportRefused: all rows are of one sampled sheet, whose probabilities are stored already.
    """
    if _are_on_one_sheet(reader, labels):
        raise ImportRefused(
            f"{file}: is a sheet whose probabilities are stored; leave --random-sample out"
        )
    labels_by_model: dict[tuple[str, str], dict[tuple[str, ...], StoredRow]] = defaultdict(dict)
    for label in labels:
        labels_by_model[label["model"], label["vintage"]][_subject_of(label)] = label
    sheets = []
    draws = []
    for (model, vintage), labels_by_subject in sorted(labels_by_model.items()):
        sheet = _stated_sheet(job, reader, batch, model, vintage, len(labels_by_subject))
        sheets.append(sheet)
        columns = {
            **job.key,
            "sheet_id": sheet["sheet_id"],
            "probability": min(1.0, sheet["n_drawn"] / sheet["n_population"]),
            "is_known": False,
        }
        for _, label in sorted(labels_by_subject.items()):
            draws.append(columns | {name: label[name] for name in ("task_id", *_SUBJECT)})
    return {"label_sheets": sheets, "label_draws": draws}


def _stated_sheet(
    job: Job,
    reader: Reader,
    batch: str,
    model: str,
    vintage: str,
    n_drawn: int,
) -> StoredRow:
    """Return the row of `label_sheets` for the labels of a model in a vintage."""
    key = {**job.key, "model": model, "vintage": vintage}
    (population,) = reader.query("queries/imports/population_of_model", key)
    return {
        **job.key,
        **population,
        "sheet_id": digest(
            "stated sample",
            batch,
            key["benchmark"],
            key["dataset_revision"],
            model,
            vintage,
        ),
        "design": f"stated to be a simple random sample of {n_drawn} of"
        f" {population['n_population']} verdicts on {model} in vintage {vintage}",
        "covered_breakdown": "all",
        "covered_label": "",
        "n_drawn": n_drawn,
        "seed": None,
        "run_id": job.run_id,
        "import_batch": batch,
        "created_at": datetime.now(UTC),
    }
