"""Aggregate: scores and leaderboards are SQL, built at every publishing; here what takes resampling is added."""

from collections import Counter
from datetime import UTC, datetime

from tasks.compare.conditions import new_conditions, unknown_labels
from tasks.config.job import Job
from tasks.console import progress
from tasks.measures import MEASURES, PROGRESS, SCORE, TRIALS, Row
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse

_OF_LEADERBOARDS = {SCORE.name, TRIALS.name}


def aggregate(job: Job) -> StageReport:
    """Publish what is stored, and measure what has changed: intervals of figures, agreement of graders."""
    warehouse = Warehouse(job.warehouse)
    warehouse.publish()
    with warehouse.reader() as reader:
        warehouse.write("grader_sets", _new_majorities(reader, job))
        warehouse.write("condition_sets", new_conditions(reader, job))
    warehouse.publish()
    with warehouse.reader() as reader:
        stale = [(measure, measure.stale(reader)) for measure in MEASURES]
        with progress(PROGRESS, {"": sum(len(figures) for _, figures in stale)}, is_quiet=job.is_quiet):
            rows = [row for measure, figures in stale for row in measure.rows(reader, figures)]
    warehouse.write("measures", rows)
    warehouse.publish()
    computed = Counter(measure.name for measure, figures in stale for _ in figures)
    with warehouse.reader() as reader:
        n_rows = reader.value("select count(*) from leaderboard where benchmark = ?", [job.settings.benchmark])
        report = StageReport("aggregate", rows=n_rows)
        report.warnings = [*unknown_labels(reader, job), *_unknown_members(reader, job)]
    report.notes = [f"{n_rows} leaderboard rows, {computed[SCORE.name]} intervals computed"]
    if others := [f"{n} {name.replace('_', ' ')}" for name, n in computed.items() if name not in _OF_LEADERBOARDS]:
        report.notes.append(f"other measures computed: {', '.join(others)}")
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
    new = (_new_majorities(reader, job), new_conditions(reader, job))
    return any(new) or any(measure.stale(reader) for measure in MEASURES)


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
