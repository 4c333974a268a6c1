"""The whole job, one line a stage."""

from prefect import flow

from flows.stages import aggregate_flow, assemble_flow, ingest_flow, judge_flow, sample_flow, select_hard_flow
from tasks.coverage import coverage
from tasks.desk import calling
from tasks.progress import say
from tasks.reports import StageReport
from tasks.settings import Job


@flow(name="evaluate")
async def evaluate(job: Job, retry_failed: bool = False) -> list[StageReport]:
    """Ingest, assemble, sample, judge, aggregate and select; each stage does only what is missing."""
    async with calling(job):  # one budget for sampling and judging
        return [
            await ingest_flow(job),
            await assemble_flow(job),
            await sample_flow(job, retry_failed),
            await judge_flow(job, retry_failed),
            await aggregate_flow(job),
            await select_hard_flow(job, must_select=False),
            coverage_report(job),
        ]


def coverage_report(job: Job, stage: str = "evaluate") -> StageReport:
    """Whether what a stage was to do (or all stages) is there, to the configured bar."""
    report = StageReport("coverage")
    configured = {judge.label for judge in job.settings.judges}
    for covered in coverage(job):
        is_asked = covered.judge in configured if covered.judge else stage != "judge"
        if is_asked and covered.share < job.settings.coverage.min and (stage != "sample" or not covered.judge):
            by = f"verdicts of {covered.judge} on" if covered.judge else "responses of"
            causes = ", ".join(f"{count} {status}" for status, count in sorted(covered.failures.items()))
            report.is_below_bar = True
            report.warnings.append(
                f"{by} {covered.model}, trial {covered.trial}: {covered.done} of {covered.wanted} are there "
                f"({covered.share:.1%}, the bar is {job.settings.coverage.min:.1%}); {causes or 'the rest is missing'}"
            )
    if not job.is_quiet:
        for warning in report.warnings:
            say(f"  {warning}")
    return report
