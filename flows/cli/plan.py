"""The commands `plan` and `status`."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import chain
from typing import TYPE_CHECKING, Any

import click

from flows.cli.figures import present, show_parts
from flows.cli.options import EVALUATION_OPTIONS, Context, show_command
from flows.cli.output import refuse_early, say, show, show_json, show_table, writing_table

if TYPE_CHECKING:
    from tasks.config.job import Job
    from tasks.plan.estimate import Planned


_COLUMNS = [
    "stage",
    "model or judge",
    "responses of",
    "calls",
    "prompt tokens",
    "completion tokens",
    "USD",
    "lengths",
]
_ESSENTIAL = ["stage", "model or judge", "responses of", "calls", "USD"]


@show_command(*EVALUATION_OPTIONS)
@click.option(
    "--stopping",
    is_flag=True,
    help="Show how many tasks and calls comparisons are expected to need.",
)
def plan(context: Context, stopping: bool) -> int:
    """Show the calls and cost of a run without making any call.

    For each model, and each judge and model: missing calls, their tokens and the estimated cost.
    Lengths come from stored calls; without any, the cost is a range that rests on assumed lengths.
    A data set that is not loaded yet is loaded and checked first. Configured analyses (`prbench
    annotate`, `prbench review`) are listed below, because a run does not include them.

    With --stopping the tables show how many of these calls `stopping` is expected to need. The
    estimate runs the rule over 200 random orders of earlier scores of the same models.

    Examples:
      prbench plan
      prbench plan --model gpt-5.6-sol-high --trials 3
      prbench plan --night 2026-11-22 --json
      prbench plan --stopping
    """
    return _show_stopping_plan(context) if stopping else show_plan(context)


def show_plan(context: Context) -> int:
    """Show the calls that a job would make, with tokens and cost; return the exit code."""
    with context.working():
        from tasks.plan.plan import plan as planned_calls
        from tasks.plan.plan import plan_analyses

        exit_code = _prepare(context)
        if exit_code:
            return exit_code
        planned = planned_calls(context.job)
        analyses = plan_analyses(context.job)
    _show_planned(context, planned, analyses)
    return 0


def _show_stopping_plan(context: Context) -> int:
    """Show how many tasks and calls comparisons are expected to need; return the exit code."""
    with context.working():
        from tasks.plan.stopping import plan_stopping

        exit_code = _prepare(context)
        if exit_code:
            return exit_code
        compared, calls = plan_stopping(context.job)
    _show_stopping(context, compared, calls)
    return 0


def _show_planned(context: Context, planned: "list[Planned]", analyses: "list[Planned]") -> None:
    from tasks.plan.estimate import total_of
    from tasks.run.run_context import retirements, unbounded
    from tasks.run.unadopted import lines_on_unadopted

    job = context.job
    total = total_of(planned)
    without_cap = list(unbounded(job))
    retirement_lines = list(map(str, retirements(job, datetime.now(UTC).date())))
    repetitions = _repetition_lines(job)
    if context.as_json:
        document = {
            "calls": list(map(vars, planned)),
            "analyses": list(map(vars, analyses)),
            "total": vars(total),
            "without_cap": without_cap,
            "retirements": retirement_lines,
            "repetitions": repetitions,
        }
        show_json(context, document)
        return
    for line in lines_on_unadopted(job):
        say(line, is_error=True)
    if context.file_format != "table":
        show(context, _COLUMNS, _rows([*planned, total, *analyses]))
        return
    with writing_table(context):
        show_calls(context, [*planned, total])
        for line in without_cap:
            say(f"A cap would be refused: {line}")
        for line in [*retirement_lines, *repetitions]:
            say(line)
        if analyses:
            say("Analyses, which have commands of their own and are not part of a run:")
            show_calls(context, analyses)


def _repetition_lines(job: "Job") -> list[str]:
    from tasks.figures.scope import Scope
    from tasks.figures.shown.judges import repetition_lines
    from warehouse import Warehouse

    with Warehouse(job.warehouse).reader() as reader:
        return repetition_lines(Scope(job, reader))


def _show_stopping(
    context: Context,
    compared: list[dict[str, Any]],
    calls: list[dict[str, Any]],
) -> None:
    if context.as_json:
        show_json(context, {"comparisons": compared, "calls": calls})
    elif not compared:
        click.echo(
            "Nothing is compared yet, so all tasks are evaluated; `prbench plan` shows the calls."
        )
    elif context.file_format != "table":
        show(context, *_stopping_table(calls))
    else:
        with writing_table(context):
            for rows in (compared, calls):
                if rows:
                    names, cells = _stopping_table(rows)
                    show_table(names, cells, essential=names)


def _stopping_table(rows: Sequence[dict[str, Any]]) -> tuple[list[str], list[list[Any]]]:
    names = [name.replace("_", " ") for name in rows[0]]
    return names, [list(map(_as_cell, row.values())) for row in rows]


def _as_cell(value: Any) -> Any:
    """Return a value of a row; a range over random orders becomes text."""
    if not isinstance(value, dict):
        return value
    return f"{value['median']:,.0f} ({value['low']:,.0f} to {value['high']:,.0f})"


def show_calls(context: Context, planned: "Sequence[Planned]") -> None:
    """Show planned calls with their tokens and cost."""
    show_table(_COLUMNS, _rows(planned), essential=_ESSENTIAL, is_wide=context.is_wide)
    # The lines about a judge are the same for each model.
    for line in dict.fromkeys(chain.from_iterable(map(_lines_on, planned))):
        say(line)


def _rows(planned: "Sequence[Planned]") -> list[tuple[Any, ...]]:
    """Return the rows of the table of planned calls."""
    return [
        (
            calls.purpose,
            calls.label,
            calls.model,
            calls.calls,
            calls.prompt_tokens,
            calls.completion_tokens,
            _usd(calls),
            calls.basis,
        )
        for calls in planned
    ]


def _lines_on(planned: "Planned") -> Iterator[str]:
    """Yield the lines below the table about some planned calls, such as assumed lengths."""
    if planned.cascade:
        yield f"{planned.label}: {planned.cascade}"
    if planned.note:
        yield f"Unknown for {planned.label}: {planned.note}"
    if planned.assumed:
        yield f"Assumed for {planned.label}, because nothing is measured yet: {planned.assumed}"
    if planned.judged_before:
        yield f"Judged again by {planned.label}: {planned.judged_before}"


def _prepare(context: Context) -> int:
    """Refuse a job that cannot be planned; in a run, load and check data that a run would.

    Returns:
        The exit code of the run if it was interrupted, else 0.
    """
    from flows.execution import execute
    from flows.run.config import refuse_unknown_names
    from flows.work import has_work
    from tasks.assemble import assemble
    from tasks.console import notice
    from tasks.ingest import ingest_and_check

    job = context.job
    refuse_early(context)
    refuse_unknown_names(job)
    if not has_work(job, "ingest") and not has_work(job, "assemble"):
        return 0
    notice("loading and checking the data set first; this makes no model call")
    # Loading is not part of the planned night.
    execution = execute(
        job.model_copy(update={"night": None}), lambda: [ingest_and_check(job), assemble(job)]
    )
    for report in execution.reports:
        for warning in report.warnings:
            notice(f"  {warning}")
    return execution.exit_code if execution.was_interrupted else 0


def _usd(planned: "Planned") -> float | str | None:
    if planned.cost_usd is not None or planned.cost_usd_low is None:
        return planned.cost_usd
    return f"{planned.cost_usd_low:,.2f} to {planned.cost_usd_high:,.2f}"


@show_command(*EVALUATION_OPTIONS)
@click.option("--spend", "with_spend", is_flag=True, help="Show the spend by day (UTC) and model.")
@click.option("--runs", "with_runs", is_flag=True, help="Show the latest runs with their results.")
@click.option("--disk", "with_disk", is_flag=True, help="Show the disk space in use.")
@click.option(
    "--since",
    metavar="WHEN",
    help="For --spend and --runs: 7d, 24h, or a date (UTC) such as 2026-11-01.",
)
def status(
    context: Context,
    with_spend: bool,
    with_runs: bool,
    with_disk: bool,
    since: str | None,
) -> None:
    """Show what is done, failed and missing.

    The table has one row for each model, trial and judge, with the causes of failures. Rows with
    `(responses)` in the column `judge` count the model's responses, the others its verdicts. All
    tasks of the chosen splits are wanted, except those that are skipped because the comparisons of
    a model are settled (`stopping`). Coverage is done / wanted. During a run and after a kill, a
    line counts the replies that are in the ledger but not yet in the table; no run pays for them
    again. --spend, --runs and --disk show other tables instead.

    Examples:
      prbench status
      prbench status --night 2026-11-22 --json
      prbench status --spend --since 7d
      prbench status --runs --disk
    """
    if since is not None and not (with_spend or with_runs):
        raise click.UsageError("--since is for --spend and --runs; add one of them")
    if with_spend or with_runs or with_disk:
        # These tables cover the whole warehouse, and some also unpublished data.
        for option in EVALUATION_OPTIONS:
            if context.value_of(option):
                raise click.UsageError(
                    f"--{option} does not apply to --spend, --runs and --disk; leave it out"
                )
        from tasks.figures.shown.operations import DISK, LATEST_RUNS, SPEND

        figures = {}
        if with_spend:
            figures["spend"] = SPEND
        if with_runs:
            figures["runs"] = LATEST_RUNS
        if with_disk:
            figures["disk"] = DISK
        rows = {key: figure.of_job(context.job, since=since) for key, figure in figures.items()}
        present(context, figures, rows)
        return
    job = context.stored_job(vintage=())
    show_parts(
        context,
        job,
        {"": "status"},
        # `stored_job` changes the job if it shows another revision than the configured one; no
        # configured work is wanted on that.
        {"only_stored": job is not context.job},
        empty="No response is wanted: no model is configured or imported.",
        lines_after=lambda _: list(_lines_below(job)),
    )


def _lines_below(job: "Job") -> Iterator[str]:
    """Yield lines with the folder of the data, models that are switched off soon, unpublished
    replies, and the senders and machines at work.
    """
    from tasks.maintain.spend import unpublished_replies
    from tasks.rules.text.numbers import counted
    from tasks.run.run_context import retirements, sender_states
    from warehouse import Warehouse

    yield f"Warehouse: {job.warehouse} ({job.warehouse_source})"
    yield from map(str, retirements(job, datetime.now(UTC).date()))
    replies = unpublished_replies(job)
    if replies:
        n_replies = counted(replies.total(), "reply", "replies")
        by_model = ", ".join(f"{n:,} of {model}" for model, n in sorted(replies.items()))
        yield (
            f"In the ledger, not yet published: {n_replies} ({by_model}); no run pays for them"
            " again"
        )
    warehouse = Warehouse(job.warehouse)
    states = sender_states(warehouse)
    for node in sorted({state["node"] for state in states}):
        in_hand = [state["n_in_hand"] for state in states if state["node"] == node]
        yield f"Senders on {node}: {len(in_hand)}, {sum(in_hand)} calls in flight"
    host = warehouse.other_host()
    if host:
        yield f"Written by {host}, now or until it failed; its costs are as of its last publication"
