"""The import of reviews of criteria, which people entered in sheets from `prbench export review`."""

from collections.abc import Sequence, Set
from datetime import UTC, datetime
from pathlib import Path

from tasks.config.job import Job
from tasks.config.models import ORIGINAL
from tasks.imports import files
from tasks.imports.files import Given, ImportRefused, Row
from tasks.imports.verdicts import Criteria, Wording
from tasks.rules.identity import review_id
from tasks.rules.text.cells import shows
from tasks.run.writing import StageReport
from warehouse import Warehouse

_DECISIONS = {"agree": 1.0, "disagree": 0.0}


def import_reviews(
    job: Job, sheets: Sequence[Path], *, reviewer: str | None = None, skip_unknown: bool = False
) -> list[StageReport]:
    """Import reviews: rows `task, criterion, decision[, reviewer, reason, better_wording, sample, criterion_hash]`.

    Every row of every file is checked before the first is stored. Rows without a decision are left out and counted.
    `reviewer` is the default for rows without one; `criterion` is an id or a criterion's text. A row that names a
    sample must be in it. With `skip_unknown` rows on tasks or criteria that the data set lacks are left out.

    Returns:
        A report for each file.

    Raises:
        ImportRefused: a row matches no criterion, is about another wording, lacks a field, or differs from a stored
            review of the same criterion by the same reviewer.
    """
    with Warehouse(job.warehouse).reader() as reader:
        sampled = {tuple(r.values()) for r in reader.select("review_samples", "sample_id, task_id, criterion_id")}
        stored = {row["review_id"]: row for row in reader.select("expert_reviews")}
        criteria, common = Criteria(job, reader), {**files.key_of(job), "run_id": job.run_id}
    read = []
    for file in sheets:
        given = list(files.given_rows(file, reviewer=reviewer))
        if given and not any("decision" in row for _, row in given):
            raise ImportRefused(f"{file}: no column `decision`; import a sheet that `prbench export review` wrote")
        decided = [each for each in given if files.text_in(each[1], "decision")]
        matched, notes = files.of_what_is_here(decided, lambda each: criteria.of(*each), skip_unknown=skip_unknown)
        if n_empty := len(given) - len(decided):
            notes.append(f"{n_empty} rows without a decision skipped")
        batch = files.batch_of(file, "reviews", reviewer)
        cells = files.Cells("reviews", stored, batch)
        for (where, row), wording in matched:
            cells.put(where, _review_row({**common, "import_batch": batch}, sampled, where, row, wording))
        read.append((batch, cells, notes))
    reports = []
    for batch, cells, notes in read:
        reports.append(files.store(job, batch, {"reviews": cells}))
        reports[-1].notes += notes
    return reports


def _review_row(common: Row, sampled: Set[tuple[str, ...]], where: str, given: Given, wording: Wording) -> Row:
    if wording.rubric != ORIGINAL:
        raise ImportRefused(f"{where}: {wording.criterion_id} is a rewritten criterion; reviews are of original ones")
    subject = f"criterion {wording.criterion_id} of task {wording.task_id}"
    # The criterion may have been reworded, in the sheet or in the data set.
    hash_given, title, sample = (_entered(given, name) for name in ("criterion_hash", "title", "sample"))
    is_other = hash_given is not None and wording.content_hash != hash_given
    if is_other or not (title is None or shows(title, wording.title)):
        raise ImportRefused(f"{where}: {subject} has other words in the data set than in the sheet; export it again")
    if sample and (sample, wording.task_id, wording.criterion_id) not in sampled:
        raise ImportRefused(f"{where}: {subject} is not in sample {sample[:40]!r}; correct what was changed here")
    decision = files.required_text(where, given, "decision").strip()
    value = _DECISIONS.get(decision.lower())
    if value is None:
        raise ImportRefused(f"{where}: `decision` is {decision[:40]!r}; enter {' or '.join(_DECISIONS)}")
    reviewer, reason = files.required_text(where, given, "reviewer", "--by NAME").strip(), _entered(given, "reason")
    if not value and reason is None:
        raise ImportRefused(f"{where}: disagrees without a `reason`; enter why")
    key = {name: common[name] for name in ("benchmark", "dataset_revision")}
    return {
        **common,
        "review_id": review_id(key, wording.task_id, wording.criterion_id, wording.content_hash, reviewer),
        "task_id": wording.task_id, "criterion_id": wording.criterion_id, "criterion_hash": wording.content_hash,
        "reviewer": reviewer, "sample_id": sample, "value": value, "explanation": reason,
        "better_wording": _entered(given, "better_wording"), "created_at": datetime.now(UTC),
    }  # fmt: skip


def _entered(given: Given, name: str) -> str | None:
    return (files.text_in(given, name) or "").strip() or None
