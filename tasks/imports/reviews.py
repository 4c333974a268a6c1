"""The import of people's reviews of how criteria are written."""

from collections.abc import Sequence, Set
from datetime import UTC, datetime
from pathlib import Path

from tasks.config.job import Job
from tasks.config.models import ORIGINAL
from tasks.dataset.foreign_files import read_regular
from tasks.imports import files
from tasks.imports.files import FileRow, ImportRefused, LocatedRow, StoredRow
from tasks.imports.matching import Criteria, Wording
from tasks.rules.identity import review_id
from tasks.rules.text.cells import shows
from tasks.run.writing import StageReport
from warehouse import Warehouse

_VALUES = {"agree": 1.0, "disagree": 0.0}
"""The word that a reviewer enters -> the value of the review."""
_COLUMNS: files.Columns = {
    ("task",): "",
    ("criterion",): "",
    ("decision",): "",
    ("reviewer",): "--by NAME",
}


def import_reviews(
    job: Job,
    sheets: Sequence[Path],
    *,
    reviewer: str | None = None,
    skip_unknown: bool = False,
) -> list[StageReport]:
    """Import reviews and return a report for each file.

    Rows are `task, criterion, decision, reviewer[, reason, better_wording, sample, criterion_hash,
    title]`. Every row of every file is checked before the first is stored. Rows without a decision
    are left out and counted. `reviewer` is the default for rows without one; `criterion` is an id
    or a criterion's text. `criterion_hash` and `title`, if a row has them, must be those of the
    criterion in the data set. A row that names a sample must be in it. With `skip_unknown` rows on
    tasks or criteria that the data set lacks are left out.

    Raises:
        ImportRefused: a row matches no criterion, is about another wording, lacks a field, or
            differs from a stored review of the same criterion by the same reviewer.
    """
    with Warehouse(job.warehouse).reader() as reader:
        _, sample_rows = reader.table("select sample_id, task_id, criterion_id from review_samples")
        stored_rows = {row["review_id"]: row for row in reader.select("expert_reviews")}
        criteria = Criteria(job, reader)
    sampled_criteria = set(sample_rows)
    batches = []
    for file in sheets:
        rows = files.rows_with_columns(file, _COLUMNS, reviewer=reviewer)
        decided, empty_notes = files.decided_rows(rows, lambda row: files.text_in(row, "decision"))
        matched, notes = files.matched_rows(decided, criteria.of_row, skip_unknown=skip_unknown)
        notes += empty_notes
        if not matched:
            files.raise_nothing_to_import(file, notes)
        batch = files.batch_of(read_regular(file), "reviews", reviewer)
        reviews = files.RowsToImport("reviews", stored_rows, batch)
        for located, wording in matched:
            _refuse_other_criterion(located, wording, sampled_criteria)
            reviews.put(located.where, _review_row(job, located, wording))
        batches.append((reviews, notes))
    return [files.store_batch(job, [reviews], notes) for reviews, notes in batches]


def _refuse_other_criterion(
    located: LocatedRow,
    wording: Wording,
    sampled_criteria: Set[tuple[str, ...]],
) -> None:
    """Refuse a row whose criterion was reworded, or is not in the sample that the row names.

    `sampled_criteria` has sample, task and criterion of all samples.
    """
    where, row, _ = located
    if wording.rubric != ORIGINAL:
        raise ImportRefused(
            f"{where}: {wording.criterion_id} is a rewritten criterion; reviews are of original"
            " ones"
        )
    subject = f"criterion {wording.criterion_id} of task {wording.task_id}"
    content_hash = _entered(row, "criterion_hash") or wording.content_hash
    title = _entered(row, "title") or wording.title
    if content_hash != wording.content_hash or not shows(title, wording.title):
        raise ImportRefused(
            f"{where}: {subject} has other words in the data set than in the sheet; export it again"
        )
    sample = _entered(row, "sample")
    if sample and (sample, wording.task_id, wording.criterion_id) not in sampled_criteria:
        raise ImportRefused(
            f"{where}: {subject} is not in sample {sample[:40]!r}; restore the row as exported"
        )


def _review_row(job: Job, located: LocatedRow, wording: Wording) -> StoredRow:
    where, row, _ = located
    decision = files.required_text(where, row, "decision").strip()
    value = _VALUES.get(decision.lower())
    if value is None:
        raise ImportRefused(
            f"{where}: `decision` is {decision[:40]!r}; enter {' or '.join(_VALUES)}"
        )
    reviewer = files.required_text(where, row, "reviewer", "--by NAME").strip()
    reason = _entered(row, "reason")
    if not value and reason is None:
        raise ImportRefused(f"{where}: disagrees without a `reason`; enter why")
    identity = {
        "task_id": wording.task_id,
        "criterion_id": wording.criterion_id,
        "criterion_hash": wording.content_hash,
        "reviewer": reviewer,
    }
    return {
        **job.key,
        **identity,
        "run_id": job.run_id,
        "review_id": review_id(key=job.key, **identity),
        "sample_id": _entered(row, "sample"),
        "value": value,
        "explanation": reason,
        "better_wording": _entered(row, "better_wording"),
        "created_at": datetime.now(UTC),
    }


def _entered(row: FileRow, name: str) -> str | None:
    """Return the text of a cell without the space around it; None if nothing is left."""
    return (files.text_in(row, name) or "").strip() or None
