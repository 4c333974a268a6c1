"""Aggregate: scores and leaderboards are SQL, built at every publishing; here what takes resampling is added."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

from tasks.aggregate.agreement import (
    stale_agreement,
    stale_predictions,
    stale_reliability,
    stale_review_intervals,
    stale_reviewer_pairs,
    stale_reviewer_sets,
)
from tasks.aggregate.conditions import new_conditions, stale_condition_tests, unknown_labels
from tasks.aggregate.debiased import stale_debiased
from tasks.aggregate.intervals import Row, has_stale_figures, stale_intervals
from tasks.config.job import Job
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse

_MEASURED: Mapping[str, Sequence[Callable[[Reader], list[Row]]]] = {
    "intervals": (stale_intervals, stale_review_intervals),
    "agreement_measures": (stale_agreement, stale_reviewer_pairs),
    "reliability_measures": (stale_reliability, stale_reviewer_sets),
    "condition_tests": (stale_condition_tests,),
    "prediction_measures": (stale_predictions,),
    "debiased_measures": (stale_debiased,),
}
"""Table -> what finds the rows that it lacks."""
_OF_REVIEWS = (stale_review_intervals, stale_reviewer_pairs, stale_reviewer_sets, stale_predictions)


def aggregate(job: Job) -> StageReport:
    """Publish what is stored, and measure what has changed: intervals of figures, agreement of graders."""
    warehouse = Warehouse(job.warehouse)
    warehouse.publish()
    with warehouse.reader() as reader:
        warehouse.write("grader_sets", _new_majorities(reader, job))
        warehouse.write("condition_sets", new_conditions(reader, job))
    warehouse.publish()
    with warehouse.reader() as reader:
        rows = {find: find(reader) for finds in _MEASURED.values() for find in finds}
    for table, finds in _MEASURED.items():
        warehouse.write(table, [row for find in finds for row in rows[find]])
    warehouse.publish()
    n_corrected = sum(row["debiased"] is not None for row in rows[stale_debiased])
    notes = (
        (len(rows[stale_agreement]), "agreement figures computed"),
        (len(rows[stale_condition_tests]), "differences between conditions tested"),
        (sum(len(rows[find]) for find in _OF_REVIEWS), "figures of reviews computed"),
        (n_corrected, "figures corrected by labels"),
    )
    with warehouse.reader() as reader:
        n_rows = reader.value("select count(*) from leaderboard where benchmark = ?", [job.settings.benchmark])
        report = StageReport("aggregate", rows=n_rows)
        report.warnings = [*unknown_labels(reader, job), *_unknown_members(reader, job)]
    report.notes = [f"{n_rows} leaderboard rows, {len(rows[stale_intervals])} intervals computed"]
    report.notes += [f"{number} {what}" for number, what in notes if number]
    return report


def _unknown_members(reader: Reader, job: Job) -> list[str]:
    """One line for each member of a majority that has no verdict."""
    stored = reader.rows("select grader from graders where benchmark = ?", [job.settings.benchmark])
    graders = {row["grader"] for row in stored}
    return [
        f"majorities.{name}: {member!r} has no verdict; known graders: {', '.join(sorted(graders)) or 'none'}"
        for name, members in sorted(job.settings.majorities.items())
        for member in members
        if member not in graders
    ]


def has_stale_measures(reader: Reader, job: Job) -> bool:
    """Whether `aggregate` would store something: a configured set, or a measure of what has changed."""
    if has_stale_figures(reader) or _new_majorities(reader, job) or new_conditions(reader, job):
        return True
    return any(find(reader) for finds in _MEASURED.values() for find in finds)


def _new_majorities(reader: Reader, job: Job) -> list[Row]:
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
