"""Whether a flow has work to do: one that has none needs no server that records it, and no library that makes calls."""

from collections.abc import Callable

from flows.report_basis import is_up_to_date
from tasks.aggregate import has_stale_conditions
from tasks.aggregate.intervals import has_stale_figures
from tasks.analyses.annotate import ANNOTATION
from tasks.analyses.review import REVIEW
from tasks.assemble import turns_to_assemble
from tasks.config.job import Job
from tasks.hard_subset import has_new_selection
from tasks.judge.judge import plan_verdicts
from tasks.rules.errors import PipelineError
from tasks.run.asking import Analysis
from tasks.run.missing_work import missing_splits, unworded_criteria, wanted_rubrics, wanted_tasks
from tasks.sample import plan_samples
from warehouse import Warehouse, WarehouseError


def has_work(job: Job, flow_name: str, *, retry_failed: bool = False) -> bool:
    """Whether a flow has work, by what is published and configured.

    It only decides whether Prefect records the run: what it overlooks is done all the same.
    """
    questions = _QUESTIONS.get(flow_name)
    if questions is None:
        return True
    try:
        return any(question(job, retry_failed) for question in questions)
    except (PipelineError, WarehouseError):  # nothing is there yet, or not as configured: the flow will say so
        return True


def _is_new_night(job: Job, _: bool) -> bool:
    with Warehouse(job.warehouse).reader() as reader:
        ended = reader.rows(
            "select 1 from runs where night = ? and outcome in ('done', 'below_bar') and config ->> 'benchmark' = ?",
            [job.night, job.settings.benchmark],
        )
    return not ended


def _has_no_data(job: Job, _: bool) -> bool:
    with Warehouse(job.warehouse).reader() as reader:
        return bool(missing_splits(job, reader))


def _has_turns(job: Job, _: bool) -> bool:
    with Warehouse(job.warehouse).reader() as reader:
        return bool(turns_to_assemble(reader, wanted_tasks(job, reader)))


def _has_samples(job: Job, retry_failed: bool) -> bool:
    return any(plan_samples(job, retry_failed=retry_failed).values())


def _has_rewordings(job: Job, retry_failed: bool) -> bool:
    with Warehouse(job.warehouse).reader() as reader:
        wanted = wanted_tasks(job, reader)
        return any(
            unworded_criteria(wanted, reader, rubric, retry_failed=retry_failed) for rubric in wanted_rubrics(job)
        )


def _has_verdicts(job: Job, retry_failed: bool) -> bool:
    return any(responses for _, responses in plan_verdicts(job, retry_failed=retry_failed))


def _has_figures(job: Job, _: bool) -> bool:
    with Warehouse(job.warehouse).reader() as reader:
        return has_stale_figures(reader) or has_stale_conditions(reader, job)


def _has_no_report(job: Job, _: bool) -> bool:
    return job.settings.report.enabled and not is_up_to_date(job)


def _has_selection(job: Job, _: bool) -> bool:
    return has_new_selection(job)


Question = Callable[[Job, bool], bool]


def _has_items(analysis: Analysis) -> Question:
    """Whether analysts are to be asked about something."""

    def has_items(job: Job, retry_failed: bool) -> bool:
        with Warehouse(job.warehouse).reader() as reader:
            return any(analysis.missing(job, reader, retry_failed=retry_failed).values())

    return has_items


_RUN: tuple[Question, ...] = (_has_turns, _has_samples, _has_rewordings, _has_verdicts, _has_figures, _has_no_report)
_QUESTIONS: dict[str, tuple[Question, ...]] = {
    "ingest": (_has_no_data,),
    "assemble": (_has_turns,),
    "sample": (_has_samples,),
    "derive": (_has_rewordings,),
    "judge": (_has_verdicts,),
    "aggregate": (_has_figures,),
    "annotate": (_has_items(ANNOTATION),),
    "review": (_has_items(REVIEW),),
    "select_hard": (_has_figures, _has_selection),
    "evaluate": _RUN,
    "backfill": _RUN,
    "night": (_is_new_night, *_RUN),
}
"""What a flow could have to do; a flow that is not here always has work."""
