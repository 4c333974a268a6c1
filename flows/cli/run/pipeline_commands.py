"""The commands that do the work: the whole job, a night, a backfill, single stages."""

import click

from flows.cli.common.flow_runner import finish, run_flow
from flows.cli.common.options import Context, examples, shared_options
from flows.cli.common.output import show_json
from flows.cli.look.leaderboard import leaderboard_records, show_leaderboard
from flows.cli.run.plan_command import capped, show_plan

_RETRY = click.option("--retry-failed", is_flag=True, help="Also try failures again whose cause will hardly pass.")
_REPLACE = click.option("--replace-lost", is_flag=True,
                        help="Call again for rows that damaged files held and nothing could restore.")  # fmt: skip
_NEXT = (
    "uv run prbench leaderboard --by category{option}",
    'uv run prbench sql "select title, weight, status, explanation from verdict_details{where} '
    'order by weight desc limit 9"',
    "cp prbench.example.yaml prbench.yaml     # your models and judges, and the whole data set",
)  # fmt: skip


@click.command(epilog=examples("prbench run", "prbench run --config prbench.yaml --limit 20", "prbench run --json -q"))
@_RETRY
@_REPLACE
@capped
@shared_options
def run(context: Context, retry_failed: bool, replace_lost: bool) -> int:
    """Do the whole job; only what is missing is done."""
    execution = run_flow(context, "evaluate", retry_failed=retry_failed, replace_lost=replace_lost)
    if execution.was_interrupted:
        return finish(context, execution)
    if context.as_json:
        show_json(execution.as_json | {"leaderboard": leaderboard_records(context, execution.job)})
        return execution.exit_code
    show_leaderboard(context, execution.job)
    click.echo(f"\nDatabase: {execution.database}")
    if any(each.stage == "report" and not each.has_failed for each in execution.reports):
        click.echo(f"Report: {execution.job.report_index}")
    click.echo("Next:\n  " + _next(context.asked.benchmark))
    return execution.exit_code


def _next(benchmark: str | None) -> str:
    """What to try next, on the benchmark that was asked for."""
    narrowed = {
        "option": "" if benchmark is None else f" --benchmark {benchmark}",
        "where": "" if benchmark is None else f" where benchmark = '{benchmark}'",
    }
    return "\n  ".join(line.format(**narrowed) for line in _NEXT)


@click.command(epilog=examples(
    "prbench nightly --config prbench.yaml",
    "prbench nightly --night 2026-11-22            that night again, where it was cut short",
    "prbench nightly --stop-at 06:30",
))  # fmt: skip
@_RETRY
@_REPLACE
@capped
@shared_options
def nightly(context: Context, retry_failed: bool, replace_lost: bool) -> int:
    """Do a night: sample anew what is to be, judge, compare with the last night, send alerts.

    The night is the day at which the schedule last fired, so the same night is never sampled twice.
    """
    from flows.nightly import run_night

    execution = run_night(
        context.job, is_verbose=context.is_verbose, retry_failed=retry_failed, replace_lost=replace_lost
    )
    if not context.as_json and not execution.was_skipped and not execution.was_interrupted:
        show_leaderboard(context, execution.job)
    return finish(context, execution)


@click.command(epilog=examples(
    "prbench backfill --model gpt-5-high --dry-run",
    "prbench backfill --model gpt-5-high --model claude --judge o4-mini --trial 2 --trial 3",
    "prbench backfill --task 5f2c --split finance --stop-at 06:30",
))  # fmt: skip
@click.option("--trial", "trial_numbers", type=click.IntRange(min=1), multiple=True, help="Only this trial (again...).")
@click.option("--task", "tasks", metavar="ID", multiple=True, help="Only this task (again for more).")
@click.option("--dry-run", is_flag=True, help="Show what would be called, used and paid; call nothing.")
@_RETRY
@_REPLACE
@capped
@shared_options
def backfill(context: Context, dry_run: bool, retry_failed: bool, replace_lost: bool) -> int:
    """Fill in what is missing of models, judges, trials or splits; everything else stays as it is.

    Models are filled in side by side, and one that fails does not hold up the others. Models that are sampled nightly
    are filled in in the pinned sampling; a night's with --night.
    """
    if dry_run:
        from flows.execution import refuse_unknown_models

        job = context.job
        refuse_unknown_models(job)
        return show_plan(context, job)
    execution = run_flow(context, "backfill", retry_failed=retry_failed, replace_lost=replace_lost)
    if not context.as_json and not execution.was_interrupted:
        show_leaderboard(context, execution.job)
    return finish(context, execution)


def _stage(name: str, flow_name: str, text: str, *lines: str) -> click.Command:
    @click.command(name, help=text, epilog=examples(*lines))
    @shared_options
    def command(context: Context) -> int:
        return finish(context, run_flow(context, flow_name))

    return command


def _calling_stage(name: str, text: str, *lines: str) -> click.Command:
    @click.command(name, help=text, epilog=examples(*lines))
    @_RETRY
    @_REPLACE
    @capped
    @shared_options
    def command(context: Context, retry_failed: bool, replace_lost: bool) -> int:
        return finish(context, run_flow(context, name, retry_failed=retry_failed, replace_lost=replace_lost))

    return command


RUNNING_COMMANDS = (
    run,
    nightly,
    backfill,
    _stage("ingest", "ingest", "Bring the data set in and check it.", "prbench ingest --config prbench.yaml"),
    _stage("assemble", "assemble", "Make the conversations of the admitted tasks.", "prbench assemble"),
    _calling_stage("sample", "Sample the responses that are missing.", "prbench sample --model gpt-5-high"),
    _calling_stage("derive", "Word criteria anew for judges that ask for another rubric.", "prbench derive --limit 5"),
    _calling_stage("judge", "Judge the criteria that are missing.", "prbench judge --judge o4-mini --limit 50"),
    _stage("aggregate", "aggregate", "Renew scores, leaderboard and intervals.", "prbench aggregate"),
    _stage("select-hard", "select_hard", "Select the hard subset of each field.", "prbench select-hard"),
    _stage("compact", "compact", "Merge small files, let go of old raw replies.", "prbench compact"),
)
