"""Aggregate: scores and leaderboards are SQL, built at every publishing; here what takes resampling is added."""

from datetime import UTC, datetime
from typing import Any

from tasks.aggregate.agreement import stale_agreement, stale_reliability
from tasks.aggregate.conditions import (
    Definitions,
    has_untested,
    new_conditions,
    stale_condition_tests,
    steps_on,
    stored_conditions,
    unknown_labels,
)
from tasks.aggregate.debiased import stale_debiased
from tasks.aggregate.intervals import has_stale_figures, stale_intervals
from tasks.aggregate.reviews import (
    stale_predictions,
    stale_review_intervals,
    stale_reviewer_pairs,
    stale_reviewer_sets,
)
from tasks.config import Job
from tasks.run import StageReport
from warehouse import Reader, Warehouse

__all__ = [
    "Definitions",
    "aggregate",
    "has_stale_figures",
    "has_stale_measures",
    "stale_condition_tests",
    "stale_intervals",
    "steps_on",
    "stored_conditions",
    "unknown_labels",
]


_OF_REVIEWS = (stale_review_intervals, stale_reviewer_pairs, stale_reviewer_sets)
_MEASURES = (stale_agreement, stale_reliability, stale_predictions, stale_debiased)


def aggregate(job: Job) -> StageReport:
    """Publish what is stored, and measure what has changed: intervals of figures, agreement of graders."""
    warehouse = Warehouse(job.warehouse)
    warehouse.publish()
    with warehouse.reader() as reader:
        warehouse.write("grader_sets", _new_majorities(reader, job))
        warehouse.write("condition_sets", new_conditions(reader, job))
    warehouse.publish()
    with warehouse.reader() as reader:
        intervals = stale_intervals(reader)
        agreement = stale_agreement(reader)
        reliability = stale_reliability(reader)
        conditions = stale_condition_tests(reader)
        shares, pairs, sets = (find(reader) for find in _OF_REVIEWS)
        predictions = stale_predictions(reader)
        debiased = stale_debiased(reader)
    warehouse.write("intervals", [*intervals, *shares])
    warehouse.write("agreement_measures", [*agreement, *pairs])
    warehouse.write("reliability_measures", [*reliability, *sets])
    warehouse.write("condition_tests", conditions)
    warehouse.write("prediction_measures", predictions)
    warehouse.write("debiased_measures", debiased)
    warehouse.publish()
    with warehouse.reader() as reader:
        n_rows = reader.value("select count(*) from leaderboard where benchmark = ?", [job.settings.benchmark])
        rows = reader.rows("select grader from graders where benchmark = ?", [job.settings.benchmark])
        graders = {row["grader"] for row in rows}
        unknown = unknown_labels(reader, job)
    note = f"{n_rows} leaderboard rows, {len(intervals)} intervals computed"
    report = StageReport("aggregate", rows=n_rows, notes=[note])
    if agreement:
        report.notes.append(f"{len(agreement)} agreement figures computed")
    if conditions:
        report.notes.append(f"{len(conditions)} differences between conditions tested")
    if n_of_reviews := sum(map(len, (shares, pairs, sets, predictions))):
        report.notes.append(f"{n_of_reviews} figures of reviews computed")
    if n_corrected := sum(row["debiased"] is not None for row in debiased):
        report.notes.append(f"{n_corrected} figures corrected by labels")
    report.warnings += unknown
    report.warnings += [
        f"majorities.{name}: {member!r} has no verdict; known graders: {', '.join(sorted(graders)) or 'none'}"
        for name, members in sorted(job.settings.majorities.items())
        for member in members
        if member not in graders
    ]
    return report


def has_stale_measures(reader: Reader, job: Job) -> bool:
    """Whether `aggregate` would store something: a configured set, or a measure of what has changed."""
    if has_stale_figures(reader) or has_untested(reader):
        return True
    if _new_majorities(reader, job) or new_conditions(reader, job):
        return True
    return any(any(True for _ in find(reader)) for find in (*_MEASURES, *_OF_REVIEWS))


def _new_majorities(reader: Reader, job: Job) -> list[dict[str, Any]]:
    """The configured majorities that are not stored yet, or with other members."""
    benchmark = job.settings.benchmark
    stored = {
        row["majority"]: row["members"]
        for row in reader.rows("select majority, members from grader_sets where benchmark = ?", [benchmark])
    }
    return [
        {"benchmark": benchmark, "majority": name, "members": sorted(members), "created_at": datetime.now(UTC)}
        for name, members in sorted(job.settings.majorities.items())
        if stored.get(name) != sorted(members)
    ]
