"""Aggregate: store the measures that need resampling.

Scores and leaderboards are SQL, built at every publishing.
"""

from collections.abc import Iterator
from datetime import UTC, datetime

from tasks.compare.conditions import new_conditions, unknown_labels
from tasks.config.job import Job
from tasks.measures import MEASURES, SCORE, TRIALS, renew
from tasks.run.coverage_rules import new_coverage_rules, store_coverage_rules
from tasks.run.writing import StageReport
from warehouse import Reader, Row, Warehouse


def aggregate(job: Job) -> StageReport:
    """Publish the stored rows, store what is configured about them, and recompute measures that
    changed.
    """
    warehouse = Warehouse(job.warehouse)
    warehouse.publish_results()
    with warehouse.reader() as reader:
        warehouse.write("grader_sets", _new_majorities(reader, job))
        warehouse.write("condition_sets", new_conditions(reader, job))
    store_coverage_rules(job)
    warehouse.publish_results()
    computed = renew(job, MEASURES)
    with warehouse.reader() as reader:
        n_rows = reader.value(
            "select count(*) from leaderboard where benchmark = $benchmark"
            " and dataset_revision = $dataset_revision",
            job.key,
        )
        report = StageReport("aggregate", rows=n_rows)
        report.warnings = [*unknown_labels(reader, job), *_unknown_members(reader, job)]
    report.notes = [f"{n_rows} leaderboard rows, {computed[SCORE.name]} intervals computed"]
    other_counts = []
    for name, n_computed in computed.items():
        if name not in (SCORE.name, TRIALS.name):
            other_counts.append(f"{n_computed} {name.replace('_', ' ')}")
    if other_counts:
        report.notes.append(f"other measures computed: {', '.join(other_counts)}")
    return report


def _unknown_members(reader: Reader, job: Job) -> Iterator[str]:
    """Yield a warning for each member of a configured majority that has no verdict."""
    rows = reader.select("graders", benchmark=job.benchmark)
    graders = sorted({row["grader"] for row in rows})
    for name, members in sorted(job.settings.majorities.items()):
        for member in members:
            if member not in graders:
                yield (
                    f"majorities.{name}: {member!r} has no verdict; known graders:"
                    f" {', '.join(graders) or 'none'}"
                )


def has_stale_measures(job: Job, reader: Reader) -> bool:
    """Return whether `aggregate` would store something: a configured majority, condition or
    coverage rule, or a changed measure.
    """
    return bool(
        _new_majorities(reader, job)
        or new_conditions(reader, job)
        or new_coverage_rules(reader, job)
        or any(measure.stale(reader) for measure in MEASURES)
    )


def _new_majorities(reader: Reader, job: Job) -> list[Row]:
    """Return the configured majorities that are not stored, or are stored with other members."""
    benchmark = job.benchmark
    stored_rows = reader.select("grader_sets", benchmark=benchmark)
    stored_members = {row["majority"]: row["members"] for row in stored_rows}
    rows = []
    for name, members in sorted(job.settings.majorities.items()):
        if stored_members.get(name) != sorted(members):
            rows.append(
                {
                    "benchmark": benchmark,
                    "majority": name,
                    "members": sorted(members),
                    "created_at": datetime.now(UTC),
                }
            )
    return rows
