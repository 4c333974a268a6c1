"""The flows that a command starts, what each could have to do, and what a run says that has nothing to do.

Nothing here imports Prefect or a library that makes calls: a run without work ends without them.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from flows.report import is_up_to_date
from flows.run.outcomes import no_call_succeeded
from flows.stopping import has_open_block
from tasks.aggregate import has_stale_measures
from tasks.analyses.annotate import ANNOTATION, has_unmeasured
from tasks.analyses.node_scores import stale_analyses
from tasks.analyses.phrases import EMBEDDINGS, NAMES, PHRASES, refuse_unready
from tasks.analyses.review import REVIEW
from tasks.analyses.trees import nodes_to_name, trees_to_grow
from tasks.assemble import turns_to_assemble
from tasks.check import check, has_unchecked
from tasks.config.job import Job
from tasks.console import notice
from tasks.drift.nights import lacks_verdicts
from tasks.hard_subset.select import has_new_selection
from tasks.judge.judge import plan_verdicts
from tasks.rules.errors import PipelineError
from tasks.rules.text.numbers import coverage_text
from tasks.run.asking import Analysis
from tasks.run.coverage import coverage
from tasks.run.missing_work import missing_splits, unworded_criteria, wanted_rubrics, wanted_tasks
from tasks.run.stages import CALLED_ROLES, STAGES
from tasks.run.writing import StageReport
from tasks.sample import plan_samples
from warehouse import Reader, Warehouse, WarehouseError

Question = Callable[[Job, Reader, bool], bool]
"""Whether something is to be done about a job; the last argument says whether failed work is."""


def _is_new_night(job: Job, reader: Reader, _: bool) -> bool:
    ended = reader.rows(
        "select 1 from runs where night = ? and outcome in ('done', 'below_bar') and config ->> 'benchmark' = ?",
        [job.night, job.settings.benchmark],
    )
    return not ended


def _has_no_data(job: Job, reader: Reader, _: bool) -> bool:
    return bool(missing_splits(job, reader)) or has_unchecked(job, reader)


def _has_turns(job: Job, reader: Reader, _: bool) -> bool:
    return bool(turns_to_assemble(reader, wanted_tasks(job, reader)))


def _has_samples(job: Job, _: Reader, retry_failed: bool) -> bool:
    return any(plan_samples(job, retry_failed=retry_failed).values())


def _has_rewordings(job: Job, reader: Reader, retry_failed: bool) -> bool:
    wanted = wanted_tasks(job, reader)
    return any(unworded_criteria(wanted, reader, rubric, retry_failed=retry_failed) for rubric in wanted_rubrics(job))


def _has_verdicts(job: Job, _: Reader, retry_failed: bool) -> bool:
    return any(responses for _, responses in plan_verdicts(job, retry_failed=retry_failed))


def _has_open_block(job: Job, _: Reader, __: bool) -> bool:
    return has_open_block(job)


def _has_measures(job: Job, reader: Reader, _: bool) -> bool:
    return has_stale_measures(reader, job)


def _has_selection(job: Job, _: Reader, __: bool) -> bool:
    return has_new_selection(job)


def _may_select(job: Job, _: Reader, __: bool) -> bool:
    """Whether a run would select a hard subset; where none can be selected, it goes on without."""
    try:
        return has_new_selection(job)
    except PipelineError:
        return False


def _has_no_report(job: Job, _: Reader, __: bool) -> bool:
    return job.settings.report.enabled and not is_up_to_date(job)


def _has_items(analysis: Analysis) -> Question:
    """Whether analysts are to be asked about something, or are configured otherwise than when they were last asked."""
    return lambda job, reader, retry_failed: (
        analysis.lacks_items(job, reader, retry_failed=retry_failed) or bool(analysis.changed_analysts(job, reader))
    )


def _has_unmeasured(_: Job, reader: Reader, __: bool) -> bool:
    return has_unmeasured(reader)


def _has_capabilities(job: Job, reader: Reader, retry_failed: bool) -> bool:
    """Whether something is to be described, named, grouped or measured; the flow refuses a job that is not ready."""
    refuse_unready(job)
    return (
        any(each.lacks_items(job, reader, retry_failed=retry_failed) for each in (PHRASES, EMBEDDINGS, NAMES))
        or any(trees_to_grow(job, reader))
        or bool(nodes_to_name(job, reader))
        or any(stale_analyses(reader, wanted_tasks(job, reader).key))
    )


def _lacks_control_verdicts(job: Job, reader: Reader, _: bool) -> bool:
    return lacks_verdicts(job, reader)


class Startable(NamedTuple):
    """A flow that a command starts.

    `path` is where the flow is, `questions` what it could have to do (without any it always has work), `calls` the
    roles that it calls, `loads` whether it loads the data set, and `covers` the stage whose coverage it measures.
    """

    path: str
    questions: Sequence[Question] = ()
    calls: Sequence[str] = ()
    loads: bool = False
    covers: str = ""


_RUN = (
    _has_no_data, _has_turns, _has_samples, _has_rewordings, _has_verdicts, _has_open_block, _has_measures,
    _may_select, _has_no_report,
)  # fmt: skip
FLOWS = {
    "evaluate": Startable("flows.pipeline:evaluate", _RUN, CALLED_ROLES, True, "evaluate"),
    "night": Startable(
        "flows.pipeline:night", (_is_new_night, _lacks_control_verdicts, *_RUN), CALLED_ROLES, True, "evaluate"
    ),
    "backfill": Startable("flows.pipeline:backfill", _RUN, CALLED_ROLES, True, "evaluate"),
    "ingest": Startable("flows.stages:ingest_flow", (_has_no_data,), loads=True),
    "assemble": Startable("flows.stages:assemble_flow", (_has_turns,)),
    "sample": Startable("flows.pipeline:sample", (_has_samples,), STAGES["sample"].calls, covers="sample"),
    "derive": Startable("flows.stages:derive_flow", (_has_rewordings,), STAGES["derive"].calls),
    "judge": Startable("flows.pipeline:judge", (_has_verdicts,), STAGES["judge"].calls, covers="judge"),
    "aggregate": Startable("flows.stages:aggregate_flow", (_has_measures,)),
    "select_hard": Startable("flows.stages:select_hard_flow", (_has_measures, _has_selection)),
    "annotate": Startable("flows.analyses:annotate_flow", (_has_items(ANNOTATION), _has_unmeasured)),
    "review": Startable("flows.analyses:review_flow", (_has_items(REVIEW),)),
    "capabilities": Startable("flows.analyses:capabilities_flow", (_has_capabilities,), STAGES["capabilities"].calls),
    "check": Startable("flows.stages:check_flow"),
    "compact": Startable("flows.stages:compact_flow"),
}
"""By the name that commands use."""


def has_work(job: Job, name: str, *, retry_failed: bool = False) -> bool:
    """Whether a flow has work, by what is published and configured: what this overlooks is not done."""
    questions = FLOWS[name].questions
    try:
        with Warehouse(job.warehouse).reader() as reader:
            return not questions or any(question(job, reader, retry_failed) for question in questions)
    except (PipelineError, WarehouseError):  # nothing is there yet, or not as configured: the flow will say so
        return True


def without_work(job: Job, name: str) -> list[StageReport]:
    """What a run says whose flow has nothing to do: its data and coverage may still be below the bar."""
    flow = FLOWS[name]
    report = StageReport("ingest" if flow.loads else name.replace("_", "-"))
    report.notes.append("nothing is missing, no model call made")
    if report.stage == "ingest":
        report.adopt(check(job, ("ingest",), reuse=True))
    for line in () if job.is_quiet else (report.line, *(f"  {warning}" for warning in report.warnings)):
        notice(line)
    return [report, *([coverage_report(job, flow.covers)] if flow.covers else [])]


def coverage_report(job: Job, stage: str = "evaluate", before: Sequence[StageReport] = ()) -> StageReport:
    """Compare what is stored of a stage's work (or of all stages') with the configured bar.

    Where no call of the stages before succeeded, the cause was said, and what follows from it is not.
    """
    report = StageReport("coverage")
    configured = {judge.label for judge in job.settings.judges}
    matrix = coverage(job)
    absent = {model.label for model in job.settings.models if model.is_imported} - {c.model for c in matrix if c.due}
    report.is_below_bar = bool(absent)
    report.warnings += [
        f"{label}: nothing is imported under this label; `prbench import responses`" for label in absent
    ]
    for covered in matrix:
        is_asked = covered.judge in configured if covered.judge else stage != "judge"
        if is_asked and covered.due_share < job.settings.coverage.min and (stage != "sample" or not covered.judge):
            by = f"verdicts of {covered.judge} on" if covered.judge else "responses of"
            causes = ", ".join(f"{count} {status}" for status, count in sorted(covered.failures.items()))
            report.is_below_bar = True
            report.warnings.append(
                f"{by} {covered.model_name}, trial {covered.trial}: {covered.done} of {covered.due} are done "
                f"({coverage_text(covered.due_share)}, the bar is {job.settings.coverage.min:.1%}); "
                f"{causes or 'the rest is missing'}"
            )
    if not (job.is_quiet or no_call_succeeded(before)):
        for warning in report.warnings:
            notice(f"  {warning}")
    return report
