"""The report on the coverage that a run has reached."""

from collections.abc import Sequence

from flows.run.outcomes import no_call_was_served
from tasks.config.job import Job
from tasks.console import notice
from tasks.run.coverage import low_coverage
from tasks.run.writing import StageReport


def coverage_report(
    job: Job,
    stage: str,
    earlier_reports: Sequence[StageReport] = (),
) -> StageReport:
    """Compare the coverage of a stage (or of all stages) with the configured bar.

    If no call of the earlier stages succeeded, or the budget or the stop time ended them, warnings
    are not printed: the cause has been reported.
    """
    report = StageReport("coverage", warnings=low_coverage(job, stage).lines)
    report.is_below_bar = bool(report.warnings)
    is_explained = is_at_stop(earlier_reports) or no_call_was_served(earlier_reports)
    if not job.is_quiet and not is_explained:
        for warning in report.warnings:
            notice(f"  {warning}")
    return report


def is_at_stop(reports: Sequence[StageReport]) -> bool:
    """Return whether the budget or the stop time ended the work of a stage."""
    return any(report.is_at_budget or report.is_at_stop_time for report in reports)
