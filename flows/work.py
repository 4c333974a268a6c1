"""The flows that commands start, their kinds of work, and the report of a run without work.

Nothing here imports Prefect or a library that makes calls: a run without work does not load them.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from flows.report import is_up_to_date
from flows.run.outcomes import no_call_succeeded
from tasks.aggregate import has_stale_measures
from tasks.analyses import annotate, phrases, review
from tasks.analyses.node_scores import stale_analyses
from tasks.analyses.trees import nodes_to_name, trees_to_grow
from tasks.assemble import turns_to_assemble
from tasks.check import check, has_unchecked
from tasks.config.job import Job
from tasks.console import notice
from tasks.drift import lacks_verdicts
from tasks.hard_subset.select import has_new_selection
from tasks.judge.judge import plan_verdicts
from tasks.judge.neighbours import missing as missing_arrangements
from tasks.rules.errors import PipelineError
from tasks.run.calls import Analysis
from tasks.run.coverage import low_coverage
from tasks.run.missing_work import missing_splits, unworded_criteria, wanted_rubrics, wanted_tasks
from tasks.run.writing import CALLED_KINDS, STAGES, StageReport
from tasks.sample import plan_samples
from tasks.stopping import has_open_block
from warehouse import Reader, Warehouse, WarehouseError


def _asks(analysis: Analysis) -> Callable[[Job, Reader], bool]:
    """Return whether analysts have missing items, or are configured in another way than at their
    last call.
    """
    return lambda job, reader: (
        any(analysis.missing(job, reader).values()) or bool(analysis.changed_analysts(job, reader))
    )


def _is_new_night(job: Job, reader: Reader) -> bool:
    ended = (
        "select 1 from runs where night = ? and outcome in ('done', 'below_bar') and config ->>"
        " 'benchmark' = ?"
    )
    return not reader.rows(ended, [job.night, job.settings.benchmark])


def _may_select(job: Job, _: Reader) -> bool:
    """Return whether a run would select a hard subset; a run continues if none can be selected."""
    try:
        return job.limit is None and has_new_selection(job)
    except PipelineError:
        return False


def _has_capabilities(job: Job, reader: Reader) -> bool:
    """Return whether any capability must be described, named, grouped or measured."""
    return (
        any(
            _asks(each)(job, reader)
            for each in (phrases.PHRASES, phrases.EMBEDDINGS, phrases.NAMES)
        )
        or any(trees_to_grow(job, reader))
        or bool(nodes_to_name(job, reader))
        or any(stale_analyses(reader, wanted_tasks(job, reader).key))
    )


def _lacks_samples(job: Job, _: Reader | None = None) -> bool:
    return any(plan_samples(job).values())


def _lacks_verdicts(job: Job, _: Reader | None = None) -> bool:
    return any(responses for _, responses in plan_verdicts(job))


def has_calls(job: Job) -> bool:
    """Return whether a job lacks responses or verdicts."""
    return _lacks_samples(job) or _lacks_verdicts(job)


WORK: dict[str, Callable[[Job, Reader], bool]] = {
    "night": _is_new_night,
    "controls": lacks_verdicts,
    "data": lambda job, reader: bool(missing_splits(job, reader)) or has_unchecked(job, reader),
    "turns": lambda job, reader: bool(turns_to_assemble(reader, wanted_tasks(job, reader))),
    "samples": _lacks_samples,
    "rewordings": lambda job, reader: any(
        unworded_criteria(job, wanted_tasks(job, reader), reader, rubric)
        for rubric in wanted_rubrics(job)
    ),
    "verdicts": _lacks_verdicts,
    "blocks": lambda job, reader: has_open_block(
        job, wanted_tasks(job, reader).comparisons, reader
    ),
    "measures": lambda job, reader: has_stale_measures(reader, job),
    "selection": lambda job, _: has_new_selection(job),
    "possible selection": _may_select,
    "report": lambda job, _: job.settings.report.enabled and not is_up_to_date(job),
    "labels": _asks(annotate.ANNOTATION),
    "reviews": _asks(review.REVIEW),
    "capabilities": _has_capabilities,
    "arrangements": lambda job, reader: bool(missing_arrangements(job, reader)),
}
"""Kind of work -> whether a job has any of it."""


class Startable(NamedTuple):
    """A flow that a command starts.

    `path` names its module and function, `work` the kinds of work that it does (if empty, it always
    has work; with `data` it loads the data set), `calls` the kinds of models that it calls,
    `covers` names the stage whose coverage it reports, and `refuse` raises if the job lacks
    settings for it.
    """

    path: str
    work: Sequence[str] = ()
    calls: Sequence[str] = ()
    covers: str = ""
    refuse: Callable[[Job], None] = lambda _: None


_RUN = (
    "data",
    "turns",
    "samples",
    "rewordings",
    "verdicts",
    "blocks",
    "measures",
    "possible selection",
    "report",
)
FLOWS = {
    "evaluate": Startable("flows.pipeline:evaluate", _RUN, CALLED_KINDS, "evaluate"),
    "night": Startable(
        "flows.pipeline:night", ("night", "controls", *_RUN), CALLED_KINDS, "evaluate"
    ),
    "backfill": Startable("flows.pipeline:backfill", _RUN, CALLED_KINDS, "evaluate"),
    "ingest": Startable("flows.stages:ingest_flow", ("data",)),
    "assemble": Startable("flows.stages:assemble_flow", ("turns",)),
    "sample": Startable(
        "flows.pipeline:sample", ("samples",), STAGES["sample"].calls, covers="sample"
    ),
    "derive": Startable("flows.stages:derive_flow", ("rewordings",), STAGES["derive"].calls),
    "judge": Startable(
        "flows.pipeline:judge", ("verdicts",), STAGES["judge"].calls, covers="judge"
    ),
    "aggregate": Startable("flows.stages:aggregate_flow", ("measures",)),
    "select_hard": Startable("flows.stages:select_hard_flow", ("measures", "selection")),
    "annotate": Startable(
        "flows.stages:annotate_flow", ("labels",), refuse=annotate.refuse_unready
    ),
    "neighbours": Startable(
        "flows.stages:neighbours_flow", ("arrangements",), STAGES["neighbours"].calls
    ),
    "review": Startable("flows.stages:review_flow", ("reviews",), refuse=review.refuse_unready),
    "capabilities": Startable(
        "flows.stages:capabilities_flow",
        ("capabilities",),
        STAGES["capabilities"].calls,
        refuse=phrases.refuse_unready,
    ),
    "check": Startable("flows.stages:check_flow"),
    "compact": Startable("flows.stages:compact_flow"),
}
"""The flows by the names that commands use."""


def has_work(job: Job, name: str) -> bool:
    """Return whether a flow has work, from published data and configuration; work that this misses
    is not done.
    """
    kinds = FLOWS[name].work
    try:
        with Warehouse(job.warehouse).reader() as reader:
            return not kinds or any(WORK[kind](job, reader) for kind in kinds)
    except (
        PipelineError,
        WarehouseError,
    ):  # no data yet, or not the configured one: the flow reports it
        return True


def without_work(job: Job, name: str) -> list[StageReport]:
    """Return the reports of a run without work: its data and coverage may still be below the
    bar.
    """
    flow = FLOWS[name]
    report = StageReport("ingest" if "data" in flow.work else name.replace("_", "-"))
    report.notes.append("nothing is missing, no model call made")
    if report.stage == "ingest":
        report.add_messages(check(job, ("ingest",), reuse=True))
    for line in (
        () if job.is_quiet else (report.line, *(f"  {warning}" for warning in report.warnings))
    ):
        notice(line)
    return [report, *([coverage_report(job, flow.covers)] if flow.covers else [])]


def coverage_report(
    job: Job, stage: str = "evaluate", before: Sequence[StageReport] = ()
) -> StageReport:
    """Compare the coverage of a stage (or of all stages) with the configured bar.

    If no call of the stages before succeeded, or the budget or the stop time ended them, warnings
    are not printed: the cause has been reported, and the end of the run names what is missing.
    """
    report = StageReport("coverage", warnings=low_coverage(job, stage).lines)
    report.is_below_bar = bool(report.warnings)
    is_explained = no_call_succeeded(before) or any(
        each.is_at_budget or each.is_at_stop_time for each in before
    )
    if not (job.is_quiet or is_explained):
        for warning in report.warnings:
            notice(f"  {warning}")
    return report
