"""The command `plan`."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from flows.cli.flow_runner import refuse_early
from flows.cli.options import EVALUATED, SHOWS, Context, command
from flows.cli.output import show_json, show_table

if TYPE_CHECKING:
    from flows.execution import Execution
    from tasks.config.job import Job
    from tasks.plan.estimate import Planned
    from tasks.plan.stopping import Expected

_COLUMNS = ["stage", "model or judge", "responses of", "calls", "prompt tokens", "completion tokens", "USD", "lengths"]


@command(*EVALUATED, output=SHOWS)
@click.option("--stopping", is_flag=True, help="Show how many tasks and calls comparisons are expected to need.")
def plan(context: Context, stopping: bool) -> int:
    """Show the calls and cost of a run without making any call.

    For each model, and each judge and model: missing calls, their tokens and the estimated cost. Lengths come from
    stored calls; where there are none, the cost is a range that rests on assumed lengths. A data set that is not loaded
    yet is loaded and checked first. Configured analyses (`prbench annotate`, `prbench review`) are listed below,
    because a run does not include them.

    With --stopping the tables show what `stopping` is expected to leave of these calls: the rule is run over 200 random
    orders of earlier scores of the same models.

    Examples:
      prbench plan
      prbench plan --model gpt-5-high --trials 3
      prbench plan --night 2026-11-22 --json
      prbench plan --stopping
    """
    return show_plan(context, context.job, with_stopping=stopping)


def show_plan(context: Context, job: "Job", *, with_stopping: bool = False) -> int:
    """Show the calls that a job would make, with tokens and cost."""
    from flows.run.validation import refuse_unknown_names
    from tasks.plan.estimate import in_all
    from tasks.plan.plan import plan as planned_calls
    from tasks.plan.plan import plan_analyses
    from tasks.run.run_context import unbounded

    refuse_early(context)
    refuse_unknown_names(job)
    prepared = _prepare(job)
    if prepared and prepared.was_interrupted:
        return prepared.exit_code
    if with_stopping:
        return _show_stopping(context, job)
    planned, analyses = planned_calls(job), plan_analyses(job)
    total, without_cap = in_all(planned), list(unbounded(job))
    if context.as_json:
        calls = {"calls": planned, "analyses": analyses}
        rows = {name: [vars(each) for each in of_kind] for name, of_kind in calls.items()}
        show_json(rows | {"total": vars(total), "without_cap": without_cap})
        return 0
    _show_calls([*planned, total])
    for line in without_cap:
        click.echo(f"A cap would be refused: {line}")
    if analyses:
        click.echo("Analyses, which have commands of their own and are not part of a run:")
        _show_calls(analyses)
    return 0


def _show_stopping(context: Context, job: "Job") -> int:
    from tasks.plan.stopping import plan_stopping

    compared, calls = plan_stopping(job)
    if context.as_json:
        show_json({"comparisons": [asdict(each) for each in compared], "calls": [asdict(each) for each in calls]})
        return 0
    if not compared:
        click.echo("Nothing is compared yet, so all tasks are evaluated; `prbench plan` shows the calls.")
        return 0
    show_table(
        ["model", "compared with", "tasks until settled", "90 % range", "of", "settled", "rests on"],
        [
            (
                each.model, each.compared_with, round(each.tasks.median), _range(each.tasks), each.n_tasks_planned,
                None if each.settled_share is None else f"{each.settled_share:.0%}",
                f"{each.n_history} tasks" if each.n_history else "no earlier scores: planned in full",
            )
            for each in compared
        ],
    )  # fmt: skip
    show_table(
        [*_COLUMNS[:4], "90 % range", "without stopping", "USD", "USD without stopping"],
        [
            (
                each.role, each.label, each.model, round(each.calls.median), _range(each.calls), each.all_calls,
                each.cost_usd, each.all_cost_usd,
            )
            for each in calls
        ],
    )  # fmt: skip
    return 0


def _range(expected: "Expected") -> str:
    return f"{expected.low:,.0f} to {expected.high:,.0f}"


def _show_calls(planned: "Sequence[Planned]") -> None:
    show_table(_COLUMNS, [
        (each.role, each.label, each.model, each.calls, each.prompt_tokens, each.completion_tokens, _usd(each),
         each.basis)
        for each in planned
    ])  # fmt: skip
    # What is said of a judge is the same for each model.
    for line in dict.fromkeys(line for each in planned for line in _lines(each)):
        click.echo(line)


def _lines(planned: "Planned") -> Iterator[str]:
    if planned.asked_for:
        yield f"{planned.label}: {planned.asked_for}"
    if planned.note:
        yield f"Unknown for {planned.label}: {planned.note}"
    if planned.assumed:
        yield f"Assumed for {planned.label}, since none was measured yet: {planned.assumed}"
    if planned.judged_before:
        yield f"Judged again by {planned.label}: {planned.judged_before}"


def _prepare(job: "Job") -> "Execution | None":
    """Load the data set where it is not there yet; what that came to."""
    from flows.execution import execute
    from tasks.console import notice
    from tasks.plan.plan import is_prepared, prepare

    if not is_prepared(job):
        notice("loading and checking the data set first; this makes no model call")
        # It is no part of the night that is planned.
        prepared = execute(job.model_copy(update={"night": None}), lambda: prepare(job))
        for warning in (warning for report in prepared.reports for warning in report.warnings):
            notice(f"  {warning}")
        return prepared
    return None


def _usd(planned: "Planned") -> float | str | None:
    if planned.cost_usd is not None or planned.cost_usd_low is None:
        return planned.cost_usd
    return f"{planned.cost_usd_low:,.2f} to {planned.cost_usd_high:,.2f}"
