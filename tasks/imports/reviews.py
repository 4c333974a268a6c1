"""Importing reviews of criteria: what people entered in sheets that `prbench export review` wrote."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from tasks.benchmarks import load_benchmark
from tasks.benchmarks.rows import as_text
from tasks.config.job import Job
from tasks.config.models import ORIGINAL
from tasks.imports.criteria import Criteria, Wording
from tasks.imports.files import (
    Given,
    ImportRefused,
    batch_of,
    given_rows,
    of_what_is_here,
    origin_of,
    required_text,
    store,
)
from tasks.rules.identity import review_id
from tasks.rules.text.cells import as_before, readings, shows
from tasks.rules.text.characters import is_blank, storable
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse

REVIEW_SHEET_COLUMN = "how_to_fill_in"
"""The column of a sheet that says what to enter."""
_DECISIONS = {"agree": 1.0, "disagree": 0.0}
_WORDS = {value: word for word, value in _DECISIONS.items()}
_ENTERED = ("reason", "better_wording")
_SHORT = 12
Row = dict[str, Any]


class _Sheet(NamedTuple):
    """A file that was read: its batch, its decided rows, those without a decision, and those on unknown criteria."""

    batch: str
    rows: list[Row]
    n_undecided: int
    n_with_notes: int
    n_unknown: int


def import_reviews(
    job: Job, files: Sequence[Path], *, reviewer: str | None = None, skip_unknown: bool = False
) -> list[StageReport]:
    """Bring reviews in: rows `task, criterion, decision[, reviewer, reason, better_wording, sample, criterion_hash]`.

    Every row of every file is looked at before the first is stored. Rows without a decision are left out and counted.
    `reviewer` stands in where a row names none; `criterion` is an id or a criterion's text. A row that names a sample
    must be in it. With `skip_unknown` rows on tasks or criteria that the data set does not have are left out.

    Returns:
        A report for each file.

    Raises:
        ImportRefused: a row fits no criterion, is about another wording, does not say what it must, or differs from a
            stored review of the same criterion by the same reviewer.
    """
    with Warehouse(job.warehouse).reader() as reader:
        known = _Known(job, reader)
    sheets = [_read(job, known, file, reviewer, skip_unknown=skip_unknown) for file in files]
    return [_stored(job, known, sheet) for sheet in sheets]


class _Known:
    """What reviews are held against: criteria with their titles, samples, and the reviews stored or just read."""

    def __init__(self, job: Job, reader: Reader) -> None:
        benchmark, data = load_benchmark(job.settings.benchmark), job.data
        self.key = {"benchmark": benchmark.name, "dataset_revision": data.revision}
        self.criteria = Criteria(reader, self.key)
        if not self.criteria:
            raise ImportRefused(
                f"revision {data.revision[:_SHORT]} of {data.name} is not ingested; run `prbench ingest` first"
            )
        titles = "select task_id, criterion_id, title from criteria where benchmark = ? and dataset_revision = ?"
        found = reader.rows(titles, list(self.key.values()))
        self.titles = {(row["task_id"], row["criterion_id"]): row["title"] for row in found}
        sampled = reader.rows("select sample_id, task_id, criterion_id from review_samples")
        self.sampled = {tuple(row.values()) for row in sampled}
        self.samples = {row["sample_id"] for row in sampled}
        self.stored = {row["review_id"]: row for row in reader.rows("select * from expert_reviews")}
        self.rows: dict[str, Row] = dict(self.stored)


def _read(job: Job, known: _Known, file: Path, reviewer: str | None, *, skip_unknown: bool) -> _Sheet:
    batch = batch_of(file, "reviews", reviewer)
    given = list(given_rows(file, reviewer=reviewer))
    if given and not any("decision" in row for _, row in given):
        raise ImportRefused(f"{file}: no column `decision`; import a sheet that `prbench export review` wrote")
    decided = [each for each in given if not is_blank(as_text(each[1].get("decision")))]
    placed = list(of_what_is_here(decided, lambda each: known.criteria.of(*each), skip_unknown=skip_unknown))
    rows: dict[str, Row] = {}
    for (where, row), wording in placed:
        _refuse_other_wording(where, row, wording, known.titles)
        made = _review_row(job, known, batch, where, row, wording)
        before = known.rows.setdefault(made["review_id"], made)
        if any(made[name] != before[name] for name in ("value", "explanation", "better_wording")):
            raise ImportRefused(
                f"{where}: a different review already exists ({made['reviewer']}: {_WORDS[before['value']]}, "
                f"{origin_of(before, batch)}); to replace it, correct the file or retract that batch"
            )
        rows[made["review_id"]] = made
    undecided = [row for _, row in given if is_blank(as_text(row.get("decision")))]
    n_with_notes = sum(any(not is_blank(as_text(row.get(name))) for name in _ENTERED) for row in undecided)
    return _Sheet(batch, list(rows.values()), len(undecided), n_with_notes, len(decided) - len(placed))


def _stored(job: Job, known: _Known, sheet: _Sheet) -> StageReport:
    new = [row for row in sheet.rows if row["review_id"] not in known.stored]
    report = store(job, {"expert_reviews": new}, {"expert_reviews": len(sheet.rows)}, sheet.batch, called="reviews")
    known.stored |= {row["review_id"]: row for row in new}
    if sheet.n_undecided:
        notes = f", {sheet.n_with_notes} of them with a reason or a wording" if sheet.n_with_notes else ""
        report.notes.append(f"{sheet.n_undecided} rows without a decision skipped{notes}")
    if sheet.n_unknown:
        report.notes.append(f"{sheet.n_unknown} rows skipped whose task or criterion is not in the data set")
    return report


def _review_row(job: Job, known: _Known, batch: str, where: str, given: Given, wording: Wording) -> Row:
    value = _decision(where, given)
    reviewer = required_text(where, given, "reviewer", "--by NAME").strip()
    reason = _entered(given, "reason")
    if not value and reason is None:
        raise ImportRefused(f"{where}: disagrees without a `reason`; enter why")
    return {
        **known.key,
        "review_id": review_id(known.key, wording.task_id, wording.criterion_id, wording.content_hash, reviewer),
        "task_id": wording.task_id,
        "criterion_id": wording.criterion_id,
        "criterion_hash": wording.content_hash,
        "reviewer": reviewer,
        "sample_id": _sample(where, given, wording, known),
        "import_batch": batch,
        "value": value,
        "explanation": reason,
        "better_wording": _entered(given, "better_wording"),
        "run_id": job.run_id,
        "created_at": datetime.now(UTC),
    }


def _decision(where: str, given: Given) -> float:
    said = (as_text(given.get("decision")) or "").strip()
    value = _DECISIONS.get(said.lower())
    if value is None:
        raise ImportRefused(f"{where}: `decision` is {said[:40]!r}; enter {' or '.join(_DECISIONS)}")
    return value


def _entered(given: Given, name: str) -> str | None:
    text = as_text(given.get(name))
    return None if text is None or is_blank(text) else storable(as_before(text).strip())


def _sample(where: str, given: Given, wording: Wording, known: _Known) -> str | None:
    """The sample that a row is of, if it names one."""
    sample = (as_text(given.get("sample")) or "").strip()
    if not sample:
        return None
    if sample not in known.samples:
        raise ImportRefused(f"{where}: no sample {sample[:40]!r} in this warehouse; leave `sample` as it was written")
    if (sample, wording.task_id, wording.criterion_id) not in known.sampled:
        raise ImportRefused(
            f"{where}: criterion {wording.criterion_id} of task {wording.task_id} is not in sample {sample[:_SHORT]}; "
            "leave the columns `sample`, `task` and `criterion` as they were written"
        )
    return sample


def _refuse_other_wording(where: str, given: Given, wording: Wording, titles: Mapping[tuple[str, str], str]) -> None:
    """Refuse a review of other words than the criterion has: they were changed in the sheet, or in the data set."""
    if wording.rubric != ORIGINAL:
        raise ImportRefused(f"{where}: {wording.criterion_id} is a rewritten criterion; reviews are of original ones")
    criterion_hash = (as_text(given.get("criterion_hash")) or "").strip()
    title = as_text(given.get("title"))
    is_other = criterion_hash and not any(text == wording.content_hash for text in readings(criterion_hash))
    if is_other or not (is_blank(title) or shows(title or "", titles[wording.task_id, wording.criterion_id])):
        raise ImportRefused(
            f"{where}: criterion {wording.criterion_id} of task {wording.task_id} has other words in the data set than "
            "in the sheet; export a new sheet, and enter proposals as `better_wording`"
        )
