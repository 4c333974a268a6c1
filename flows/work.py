"""The flows that commands start: whether they have work, which models they call, and their start.

Nothing here imports Prefect or a library that makes calls before there is work: a run without work
does not load them.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from flows.execution import Execution, execute, silence_libraries
from flows.report import is_up_to_date
from flows.run.config import refuse_every_vintage, refuse_unknown_names
from flows.run.coverage_report import coverage_report
from flows.run.outcomes import BELOW_BAR, DONE
from flows.run.record import runs_of_night
from flows.run.signals import run_interruptibly
from flows.server import server_of
from tasks.aggregate import has_stale_measures
from tasks.analyses import annotate, phrases, review
from tasks.analyses.node_scores import stale_analyses
from tasks.analyses.trees import nodes_to_name, trees_to_grow
from tasks.assemble import turns_to_assemble
from tasks.check import check, needs_check
from tasks.config.job import Job
from tasks.console import notice, working
from tasks.drift import lacks_control_verdicts
from tasks.hard_subset.select import has_new_selection
from tasks.judge.judge import missing_by_judge
from tasks.judge.neighbours import missing_arrangements
from tasks.judge.panels import lacks_panel_verdicts
from tasks.rules.errors import PipelineError, UsageError
from tasks.run.calls import Analysis
from tasks.run.missing_work import criteria_to_rewrite, missing_splits, wanted_rubrics, wanted_tasks
from tasks.run.run_context import refuse_uninstalled, refuse_unready
from tasks.run.writing import CALLED_KINDS, STAGES, StageReport
from tasks.sample import plan_samples
from tasks.stopping import is_unfinished
from tasks.succession.sample import is_done, refuse_impossible_succession, sample_of
from warehouse import Reader, Warehouse, WarehouseError

# Checks whether a job has work, from published data and configuration. Work that none of a flow's
# checks finds is never done.


def _lacks_data(job: Job, reader: Reader) -> bool:
    return bool(missing_splits(job, reader)) or needs_check(job, reader)


def _lacks_conversations(job: Job, reader: Reader) -> bool:
    return bool(turns_to_assemble(reader, wanted_tasks(job, reader)))


def _lacks_responses(job: Job, _: Reader) -> bool:
    return any(plan_samples(job).values())


def _lacks_rewritten_criteria(job: Job, reader: Reader) -> bool:
    tasks = wanted_tasks(job, reader)
    return any(criteria_to_rewrite(job, tasks, reader, rubric) for rubric in wanted_rubrics(job))


def _lacks_verdicts(job: Job, reader: Reader) -> bool:
    lacks_calls = any(responses for _, responses in missing_by_judge(job))
    return lacks_calls or lacks_panel_verdicts(job, reader)


def _lacks_looks(job: Job, reader: Reader) -> bool:
    return is_unfinished(job, wanted_tasks(job, reader).comparisons, reader)


def _lacks_selection(job: Job, _: Reader) -> bool:
    return has_new_selection(job)


def _lacks_possible_selection(job: Job, _: Reader) -> bool:
    """Return whether a run would select a hard subset; False, not an error, if none is possible."""
    try:
        return job.limit is None and has_new_selection(job)
    except PipelineError:
        return False


def _lacks_report(job: Job, _: Reader) -> bool:
    return job.settings.report.enabled and not is_up_to_date(job)


def _lacks_night(job: Job, _: Reader) -> bool:
    return not runs_of_night(job, outcome=[DONE, BELOW_BAR])


def _lacks_analysis(analysis: Analysis, job: Job, reader: Reader) -> bool:
    """Return whether analysts have missing items, or have been configured in another way since."""
    has_missing_items = any(analysis.missing(job, reader).values())
    return has_missing_items or bool(analysis.changed_analysts(job, reader))


def _lacks_succession(job: Job, reader: Reader) -> bool:
    """Return whether the sample of a succession is not stored, not judged, or may have to grow."""
    assert job.succession is not None
    if job.succession.width is not None or lacks_panel_verdicts(job, reader):
        return True
    return not is_done(sample_of(job, reader), reader)


def _lacks_capabilities(job: Job, reader: Reader) -> bool:
    """Return whether any capability must be described, named, grouped or measured."""
    for analysis in (phrases.PHRASES, phrases.EMBEDDINGS, phrases.NAMES):
        if _lacks_analysis(analysis, job, reader):
            return True
    if any(trees_to_grow(job, reader)) or nodes_to_name(job, reader):
        return True
    return any(stale_analyses(reader, wanted_tasks(job, reader).key))


# The flows


@dataclass(frozen=True)
class CommandFlow:
    """A flow that a command starts.

    Attributes:
        checks: each returns something true if there is work of one kind; without checks there
            is always work.
        calls: the kinds of models whose keys and names are checked before it starts; without any,
            keys are checked when the first batch opens the context of the run.
        covered_stage: the stage whose coverage it reports, if any; `evaluate`: all stages.
        refuse: raises if the job lacks settings for it.
    """

    checks: tuple[Callable[[Job, Reader], object], ...] = ()
    calls: tuple[str, ...] = ()
    covered_stage: str = ""
    refuse: Callable[[Job], None] = lambda _: None

    @property
    def loads_data(self) -> bool:
        """True if it loads the data set, so that nothing needs to be stored before."""
        return _lacks_data in self.checks


_WHOLE_RUN = CommandFlow(
    checks=(
        _lacks_data,
        _lacks_conversations,
        _lacks_responses,
        _lacks_rewritten_criteria,
        _lacks_verdicts,
        _lacks_looks,
        has_stale_measures,
        _lacks_possible_selection,
        _lacks_report,
    ),
    calls=CALLED_KINDS,
    covered_stage="evaluate",
)
FLOWS = {
    "evaluate": _WHOLE_RUN,
    "night": replace(
        _WHOLE_RUN,
        checks=(_lacks_night, lacks_control_verdicts, *_WHOLE_RUN.checks),
    ),
    "backfill": _WHOLE_RUN,
    "ingest": CommandFlow((_lacks_data,)),
    "assemble": CommandFlow((_lacks_conversations,)),
    "sample": CommandFlow(
        (_lacks_responses,),
        calls=STAGES["sample"].calls,
        covered_stage="sample",
    ),
    "derive": CommandFlow((_lacks_rewritten_criteria,), calls=STAGES["derive"].calls),
    "judge": CommandFlow(
        (_lacks_verdicts,),
        calls=STAGES["judge"].calls,
        covered_stage="judge",
    ),
    "aggregate": CommandFlow((has_stale_measures,)),
    "select_hard": CommandFlow((has_stale_measures, _lacks_selection)),
    "annotate": CommandFlow(
        (partial(_lacks_analysis, annotate.ANNOTATION),),
        refuse=annotate.refuse_unready_annotation,
    ),
    "neighbours": CommandFlow((missing_arrangements,), calls=STAGES["neighbours"].calls),
    "succeed": CommandFlow(
        (_lacks_succession,),
        calls=STAGES["judge"].calls,
        refuse=refuse_impossible_succession,
    ),
    "review": CommandFlow(
        (partial(_lacks_analysis, review.REVIEW),),
        refuse=review.refuse_unready_review,
    ),
    "capabilities": CommandFlow(
        (_lacks_capabilities,),
        refuse=phrases.refuse_unready_capabilities,
    ),
    "check": CommandFlow(),
    "compact": CommandFlow(),
}
"""The flows by the names that commands use."""


def prefect_flow(name: str) -> Any:
    """Return the flow of a name in `FLOWS`; importing it takes seconds."""
    from flows import analyses, pipeline, stages

    flows_by_name = {
        "evaluate": pipeline.evaluate,
        "night": pipeline.night,
        "backfill": pipeline.backfill,
        "ingest": stages.ingest_flow,
        "assemble": stages.assemble_flow,
        "sample": pipeline.sample,
        "derive": stages.derive_flow,
        "judge": pipeline.judge,
        "aggregate": stages.aggregate_flow,
        "select_hard": stages.select_hard_flow,
        "annotate": analyses.annotate_flow,
        "neighbours": analyses.neighbours_flow,
        "succeed": analyses.succeed_flow,
        "review": analyses.review_flow,
        "capabilities": analyses.capabilities_flow,
        "check": stages.check_flow,
        "compact": stages.compact_flow,
    }
    return flows_by_name[name]


def has_work(job: Job, name: str) -> bool:
    """Return whether a flow has work.

    Raises:
        UsageError: the job names something that the flow would refuse.
    """
    checks = FLOWS[name].checks
    try:
        with Warehouse(job.warehouse).reader() as reader:
            return not checks or any(finds_work(job, reader) for finds_work in checks)
    except UsageError:
        raise
    except (PipelineError, WarehouseError):
        return True  # no data yet, or not the configured one: the flow reports it


def without_work(job: Job, name: str) -> list[StageReport]:
    """Return the reports of a run without work: data and coverage may still be below the bar."""
    flow = FLOWS[name]
    stage = "ingest" if flow.loads_data else name.replace("_", "-")
    report = StageReport(stage, notes=["nothing is missing, no model call made"])
    if flow.loads_data:
        report.add_messages(check(job, ("ingest",), reuse=True))
    if not job.is_quiet:
        notice(report.line)
        for warning in report.warnings:
            notice(f"  {warning}")
    if not flow.covered_stage:
        return [report]
    return [report, coverage_report(job, flow.covered_stage)]


# Starting a flow


def execute_flow(job: Job, name: str, *, is_verbose: bool) -> Execution:
    """Run a flow as the work of an execution."""
    started_s = time.monotonic()
    flow = FLOWS[name]
    refuse_every_vintage(job)
    flow.refuse(job)
    if flow.calls:
        refuse_unknown_names(job)
        refuse_uninstalled(job)
        refuse_unready(job, flow.calls)
    silence_libraries(is_verbose=is_verbose)
    execution = execute(
        job,
        partial(_run, job, name),
        is_verified=name == "night",  # by `run_night`
        verifies_calls=name == "aggregate",  # the command that repairs
    )
    execution.flow = name
    execution.seconds = time.monotonic() - started_s
    return execution


def _run(job: Job, name: str) -> list[StageReport]:
    """Run a flow if it has work: recorded if Prefect's server responds, else as plain functions."""
    with working("looking for missing work", is_quiet=job.is_quiet):
        if not has_work(job, name):
            return without_work(job, name)
    with working("loading libraries", is_quiet=job.is_quiet):
        server = server_of(job)  # if the server must be started, it starts while the libraries load
        flow = prefect_flow(name)
        from flows.ui import run_recorded

        is_recorded = server is not None and server.wait_until_ready()
    if server is not None and not is_recorded:
        notice(
            f"no Prefect server responded at {server.host_and_port} within a minute; this run"
            " is not recorded"
        )
    elif server is not None and not job.is_quiet:
        notice(f"Prefect records this run: {server.host_and_port}")
    start = partial(run_recorded, flow) if is_recorded else flow.fn
    reports = run_interruptibly(partial(start, job))
    return reports if isinstance(reports, list) else [reports]
