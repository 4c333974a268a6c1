"""The commands that run the full pipeline: once, as a night, or for some models."""

import os

import click

from flows.cli.common.flow_runner import explain_exit, finish, refuse_early, run_flow
from flows.cli.common.help import Command, examples
from flows.cli.common.options import EVALUATED, RUNS, Context, budget_options, repair_options, shared_options
from flows.cli.common.output import show_json
from flows.cli.look.leaderboard import leaderboard_of, show_leaderboard
from flows.cli.run.plan import show_plan
from flows.run.arguments import Arguments

_NEXT = (
    "prbench leaderboard --by category{option}",
    'prbench sql "select title, weight, status, explanation from verdict_details{where} '
    'order by weight desc limit 9"',
)  # fmt: skip
_CONFIGURE = "cp prbench.example.yaml prbench.yaml     # your models and judges, and the full data set"


@click.command(cls=Command, epilog=examples(
    "prbench run                      sample data, embedded model, no key needed",
    "prbench run --config prbench.yaml --limit 20",
    "prbench run --max-usd 20 --stop-at 06:30",
    "prbench run --json -q",
))  # fmt: skip
@repair_options
@budget_options
@shared_options(output=RUNS, selection=EVALUATED)
def run(context: Context, retry_failed: bool, replace_lost: bool) -> int:
    """Run the full pipeline.

    Load the data set, sample responses, judge them, compute scores, select hard tasks and write the report. Only
    missing work is done. A repeated run makes no model call, except to retry temporary failures. With `stopping` in the
    configuration, tasks are evaluated in random order until the comparisons of models are settled.
    """
    execution = run_flow(context, "evaluate", retry_failed=retry_failed, replace_lost=replace_lost)
    if execution.was_interrupted or (execution.has_nothing and not context.as_json):
        return finish(context, execution)
    if context.as_json:
        explain_exit(execution)
        show_json(execution.as_json | {"leaderboard": leaderboard_of(context, execution.job).records})
        return execution.exit_code
    show_leaderboard(context, execution.job)
    click.echo(f"\nDatabase: {execution.database}")
    report = execution.job.settings.report
    if report.enabled and not any(each.stage == "report" and each.has_failed for each in execution.reports):
        click.echo(f"Report: {execution.job.report_index}")
    click.echo("Next:\n  " + _next(context.arguments))
    explain_exit(execution)
    return execution.exit_code


def _next(given: Arguments) -> str:
    """Commands to try next, started as this one was, for its --benchmark; how to configure only where nothing is."""
    from flows.run.config import config_file

    benchmark = given.benchmark
    narrowed = {
        "option": "" if benchmark is None else f" --benchmark {benchmark}",
        "where": "" if benchmark is None else f" where benchmark = '{benchmark}'",
    }
    runner = "uv run " if "UV_RUN_RECURSION_DEPTH" in os.environ else ""  # which `uv run` sets
    lines = [runner + line.format(**narrowed) for line in _NEXT]
    return "\n  ".join(lines if config_file(given.config) else [*lines, _CONFIGURE])


@click.command(cls=Command, epilog=examples(
    "prbench nightly --config prbench.yaml",
    "prbench nightly --night 2026-11-22       continue an interrupted night",
    "prbench nightly --stop-at 06:30",
))  # fmt: skip
@repair_options
@budget_options
@shared_options(output=RUNS, selection=EVALUATED, texts={
    "night": "Date of the night: the vintage of models with `resample: nightly`.  [default: the day the schedule last "
    "fired]",
    "vintage": "Vintage to use for all other models.  [default: base]",
})  # fmt: skip
def nightly(context: Context, retry_failed: bool, replace_lost: bool) -> int:
    """Run one night: resample nightly models, judge, compare, alert.

    Models with `resample: nightly` are sampled again. The night is compared with the previous one, and alerts are sent.
    The night is named after the day the schedule last fired, so the same night is never sampled twice.
    """
    from flows.nightly import alert_refused, run_night
    from flows.run.validation import refuse_unknown_names
    from tasks.rules.errors import PipelineError
    from warehouse import WarehouseError

    try:
        refuse_early(context)
        refuse_unknown_names(context.job)
    except (PipelineError, WarehouseError) as error:
        alert_refused(context.job, error)
        raise
    execution = run_night(
        context.job, is_verbose=context.is_verbose, retry_failed=retry_failed, replace_lost=replace_lost
    )
    if not (context.as_json or execution.was_skipped or execution.was_interrupted or execution.has_nothing):
        show_leaderboard(context, execution.job)
    return finish(context, execution)


@click.command(cls=Command, epilog=examples(
    "prbench backfill --model gpt-5-high --dry-run",
    "prbench backfill --model gpt-5-high --judge o4-mini --trial 2 --trial 3",
    "prbench backfill --task 5f2c --split finance --stop-at 06:30",
))  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Show the calls and their cost without making any.")
@repair_options
@budget_options
@shared_options(
    output=RUNS, selection=("split", "model", "judge", "task", "trial", "trials", "limit", "vintage", "night")
)
def backfill(context: Context, dry_run: bool, retry_failed: bool, replace_lost: bool) -> int:
    """Fill in missing responses and verdicts for a selection.

    Only what you select is sampled and judged; everything else stays as it is. Models are processed in parallel, and
    one that fails does not stop the others.
    """
    if dry_run:
        return show_plan(context, context.job)
    execution = run_flow(context, "backfill", retry_failed=retry_failed, replace_lost=replace_lost)
    if not (context.as_json or execution.was_interrupted or execution.has_nothing):
        show_leaderboard(context, execution.job)
    return finish(context, execution)
