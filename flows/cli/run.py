"""The commands that run the full pipeline, a night, a backfill, a single stage or an analysis."""

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TextIO

import click

from flows.cli.figures import leaderboard_of, rows_of_parts, show_leaderboard, show_parts
from flows.cli.options import CALL_OPTIONS, EVALUATION_OPTIONS, Context, number, run_command
from flows.cli.output import finish, refuse_early, run_flow, show_json
from flows.cli.plan import show_calls, show_plan
from flows.cli.regressions import gate_of_night, reporting_errors_in
from flows.run.arguments import Arguments
from flows.run.outcomes import INTERRUPTED, SKIPPED
from tasks.console import working

if TYPE_CHECKING:
    from flows.execution import Execution
    from tasks.plan.estimate import Planned


_NEXT = (
    "prbench leaderboard --by category{data}{benchmark}",
    (
        'prbench sql{data} "select title, weight, status, explanation from verdict_details order by'
        ' weight desc limit 9"'
    ),
)
_CONFIGURE = (
    "cp prbench.example.yaml prbench.yaml     # your models and judges, and the full data set"
)


@run_command(*EVALUATION_OPTIONS, *CALL_OPTIONS)
def run(context: Context) -> int:
    """Run the full pipeline.

    Loads the data set, samples responses, judges them, computes scores, selects hard tasks and
    writes the report. Only missing work is done. A repeated run makes no model call, except to
    retry temporary failures. With `stopping` in the configuration, tasks are evaluated in random
    order until the comparisons of models are settled.

    Examples:
      prbench run                      sample data, embedded model, no key needed
      prbench run --config prbench.yaml --limit 20
      prbench run --max-usd 20 --stop-at 06:30
      prbench run --json -q
    """
    execution = run_flow(context, "evaluate")
    if context.as_json and not execution.was_interrupted:
        board = leaderboard_of(context, execution.job)
        return finish(context, execution, leaderboard=board)
    if _show_board(context, execution):
        click.echo(f"\nDatabase: {execution.database}")
        for report in execution.reports:
            if report.stage == "report" and not report.has_failed:
                click.echo(f"Report: {execution.job.report_index}")
        click.echo("Next:\n  " + next_commands(context.arguments))
    return finish(context, execution)


def _show_board(context: Context, execution: "Execution") -> bool:
    """Show the leaderboard after a run that may have changed it; return whether it was shown."""
    if context.as_json or execution.job.is_quiet:
        return False
    if execution.outcome in {SKIPPED, INTERRUPTED} or execution.has_no_scores:
        return False
    with working("leaderboard"):
        board = leaderboard_of(context, execution.job)
    show_leaderboard(context, execution.job, board)
    return True


def next_commands(arguments: Arguments) -> str:
    """Return the commands to try next, for the same data.

    If there is no configuration, the last command creates one.
    """
    from flows.run.config import config_file

    data = ""
    if arguments.config is not None:
        data += f" --config {shlex.quote(str(arguments.config))}"
    if arguments.warehouse is not None:
        data += f" --warehouse {shlex.quote(str(arguments.warehouse))}"
    benchmark = ""
    if arguments.benchmark is not None:
        benchmark = f" --benchmark {arguments.benchmark}"
    runner = "uv run " if "UV_RUN_RECURSION_DEPTH" in os.environ else ""  # which `uv run` sets
    lines = [runner + line.format(data=data, benchmark=benchmark) for line in _NEXT]
    if not config_file(arguments.config):
        lines.append(_CONFIGURE)
    return "\n  ".join(lines)


@run_command(
    *EVALUATION_OPTIONS,
    *CALL_OPTIONS,
    "fail-if",
    "summary",
    texts={
        "fail-if": (
            "Exit code 3 if an alert says that a score fell, 1 if there is no earlier night to"
            " compare with."
        ),
        "night": (
            "Date of the night: the vintage of models with `resample: nightly`.  [default: the day"
            " the schedule last fired]"
        ),
        "vintage": "Vintage to use for all other models.  [default: base]",
    },
)
def nightly(context: Context, fail_if: str | None, summary_file: TextIO | None) -> int:
    """Run one night: resample nightly models, judge, compare, alert.

    Models with `resample: nightly` are sampled again. The night is compared with the previous one,
    and alerts are sent. The night is named after the day the schedule last fired, so the same night
    is never sampled twice.

    Examples:
      prbench nightly --config prbench.yaml
      prbench nightly --night 2026-11-22       continue an interrupted night
      prbench nightly --stop-at 06:30
      prbench nightly --fail-if worse --summary "$GITHUB_STEP_SUMMARY"
    """
    with context.working(), reporting_errors_in(summary_file, "prbench nightly"):
        from flows.nightly import alert_refused, run_night
        from flows.run.config import refuse_unknown_names
        from tasks.rules.errors import PipelineError
        from warehouse import WarehouseError

        try:
            refuse_early(context)
            refuse_unknown_names(context.job)
        except (PipelineError, WarehouseError) as error:
            alert_refused(context.job, error)
            raise
        execution = run_night(context.job, is_verbose=context.is_verbose)
    _show_board(context, execution)
    return finish(
        context, execution, gate_of_night(execution, fail_if=fail_if, summary_file=summary_file)
    )


@run_command(
    "split", "model", "judge", "task", "trial", "trials", "limit", "vintage", "night", *CALL_OPTIONS
)
@click.option("--dry-run", is_flag=True, help="Show the calls and their cost without making any.")
def backfill(context: Context, dry_run: bool) -> int:
    """Fill in missing responses and verdicts for a selection.

    Only what you select is sampled and judged; everything else stays as it is. Models are processed
    in parallel, and one that fails does not stop the others.

    Examples:
      prbench backfill --model gpt-5.6-sol-high --dry-run
      prbench backfill --model gpt-5.6-sol-high --trial 2 --trial 3
      prbench backfill --task 5f2c --split finance --stop-at 06:30
    """
    if dry_run:
        return show_plan(context)
    execution = run_flow(context, "backfill")
    _show_board(context, execution)
    return finish(context, execution)


def _run_stage(context: Context, name: str) -> int:
    return finish(context, run_flow(context, name))


@run_command("split")
def ingest(context: Context) -> int:
    """Load the data set and check it.

    A task that fails a check is put in the table `quarantine` and not evaluated, unless the
    configuration sets another policy for the check.

    Examples:
      prbench ingest --config prbench.yaml
    """
    return _run_stage(context, "ingest")


@run_command("split", "limit")
def assemble(context: Context) -> int:
    """Build the conversations that are sent to the models.

    Examples:
      prbench assemble
      prbench assemble --limit 20
    """
    return _run_stage(context, "assemble")


@run_command("split", "model", "trials", "limit", "vintage", "night", *CALL_OPTIONS)
def sample(context: Context) -> int:
    """Sample the responses that are missing.

    Examples:
      prbench sample --model gpt-5.6-sol-high
      prbench sample --limit 20 --max-usd 5
    """
    return _run_stage(context, "sample")


@run_command("split", "judge", "limit", *CALL_OPTIONS)
def derive(context: Context) -> int:
    """Reword criteria for judges with another rubric.

    These are the judges whose `rubric` in the configuration is `examples_removed` or `augmented`.
    `prbench run` includes this stage.

    Examples:
      prbench derive --limit 5
    """
    return _run_stage(context, "derive")


@run_command(*EVALUATION_OPTIONS, *CALL_OPTIONS)
def judge(context: Context) -> int:
    """Judge the criteria that have no verdict yet.

    Examples:
      prbench judge --judge gpt-5.6-terra --limit 50
      prbench judge --night 2026-11-22 --retry-failed
    """
    return _run_stage(context, "judge")


@run_command()
@click.option(
    "--take-over",
    "replaces_owner",
    is_flag=True,
    help=(
        "Replace another machine that wrote this warehouse and has stopped, without waiting for a"
        " sign of life."
    ),
)
def aggregate(context: Context, replaces_owner: bool) -> int:
    """Recompute scores, intervals and leaderboards.

    Examples:
      prbench aggregate
      prbench aggregate --take-over
    """
    if replaces_owner:
        from warehouse.locks import Owner

        Owner.takeover_after_s = 0.0  # in this process: wait for no sign of life
    return _run_stage(context, "aggregate")


@run_command(
    "split",
    "judge",
    "vintage",
    texts={
        "judge": (
            "Judge whose verdicts count (only one).  [default: the first configured one, else the"
            " only stored one]"
        )
    },
)
def select_hard(context: Context) -> int:
    """Select the hard subset of each field.

    The hard subset holds the tasks of a field with the lowest mean score over the models of a panel
    (`hard_subset.panel` in the configuration, by default all models).

    Examples:
      prbench select-hard
      prbench select-hard --judge gpt-5.6-terra
    """
    if len(context.arguments.named_judges) > 1:
        raise click.UsageError("--judge: one judge selects the hard subset; give --judge once")
    return _run_stage(context, "select_hard")


@run_command("split", "limit", *CALL_OPTIONS)
@click.argument("vocabularies", nargs=-1, metavar="[VOCABULARY]...")
def annotate(context: Context) -> int:
    """Label tasks with a model, such as by decision type.

    The models are those of `annotator:` in the configuration, the vocabularies those that the
    benchmark declares (`prbench benchmarks NAME`); all of them by default. Only missing labels are
    requested. If the data set has no label of a kind, breakdowns and the report use those of the
    annotators and say so. The table `annotation_agreement` shows the agreement of annotators with
    the data set's labels and with each other.

    Examples:
      prbench annotate
      prbench annotate jurisdiction --limit 20
      prbench annotate decision_type economic_pathway --max-usd 5
      prbench sql 'from annotation_agreement'
    """
    return _run_stage(context, "annotate")


@run_command("split", "limit", *CALL_OPTIONS)
def capabilities(context: Context) -> int:
    """Group criteria by capability, and find where models are weak.

    The `capabilities: model:` of the configuration writes a phrase for the capability that each
    criterion needs. The phrases of a field are grouped in a tree, by `capabilities: embedding:` or
    else by their words, and the model writes a name for each node. Then scores and weaknesses of
    all models are computed from stored verdicts. Only missing work is done. `prbench weaknesses`
    and the report show the result.

    Examples:
      prbench capabilities --max-usd 5
      prbench capabilities --split finance
      prbench weaknesses MODEL                             shows the result
      prbench sql 'from capability_scores'
    """
    return _run_stage(context, "capabilities")


@run_command("split", "limit", *CALL_OPTIONS)
def review(context: Context) -> int:
    """Have models check how criteria are written.

    The models are those of `reviewer:` in the configuration. Each decides for every criterion, with
    a reason, whether it is atomic, objective, self-contained, consistent with the rest of its
    rubric, and not given away by the request. Only missing reviews are requested. `prbench reviews`
    shows them.

    Examples:
      prbench review --limit 20 --max-usd 2
      prbench review --split finance_hard
      prbench reviews                        shows the result
    """
    return _run_stage(context, "review")


@run_command("split", "limit", *CALL_OPTIONS)
@click.argument("named_judges", nargs=-1, metavar="[JUDGE]...")
@number("-n n_neighbour_responses", 100, "Number of stored responses in the sample.")
@click.option(
    "--plan", "is_plan", is_flag=True, help="Show the calls and their cost, and make none."
)
def neighbours(context: Context, is_plan: bool) -> int:
    """Measure how other criteria in a call change a judge's verdicts.

    A judge with `criteria_per_call` judges a sample of stored responses one by one, in its groups,
    and in groups of shuffled criteria. The differences are paired, by criterion, with 95 %
    intervals over tasks: of the share met, and of the agreement with other graders, by position and
    by size of the group. The verdicts are in no score. Calls that a run has made are free.

    Examples:
      prbench neighbours JUDGE -n 50 --plan
      prbench neighbours JUDGE -n 50 --max-usd 2
      prbench figure neighbour_effects       shows the result
    """
    if not is_plan:
        return _run_stage(context, "neighbours")
    with context.working():
        from tasks.plan.plan import plan_neighbours

        calls = plan_neighbours(context.job)
    return _show_planned_calls(context, calls)


def _show_planned_calls(context: Context, calls: "Sequence[Planned]") -> int:
    if context.as_json:
        show_json(context, [vars(planned) for planned in calls])
    else:
        show_calls(context, calls)
    return 0


@run_command("split", "task", "limit", "seed", *CALL_OPTIONS)
@click.argument("old_judge", metavar="OLD")
@click.argument("new_judge", metavar="NEW")
@number("-n n_verdicts", 600, "Approximate number of verdicts that NEW makes.")
@click.option(
    "--width",
    type=click.FloatRange(min=0, min_open=True),
    help="Double the sample until no interval is wider.",
)
@click.option(
    "--for",
    "interval_of",
    type=click.Choice(["scores", "ranks"]),
    default="scores",
    show_default=True,
    help="Intervals that --width narrows: of effects on scores, or of differences between models.",
)
@click.option("--dry-run", is_flag=True, help="Show the calls and their cost without making any.")
def succeed(
    context: Context, old_judge: str, new_judge: str, *, dry_run: bool, **choices: Any
) -> int:
    """Estimate what another judge would do to scores and ranks.

    The configured judge NEW decides a random sample of the criteria that OLD has decided, each in
    the responses of all models. From that, the score of each model under NEW is estimated, with its
    interval, and whether the order of the models holds. The verdicts of NEW are ordinary ones:
    `prbench backfill --judge NEW` pays only for the others. A larger -n extends the same sample.

    Examples:
      prbench succeed o4-mini gpt-5.6-terra --dry-run
      prbench succeed o4-mini gpt-5.6-terra -n 1200 --max-usd 5
      prbench succeed o4-mini gpt-5.6-terra --for ranks --width 0.02
      prbench figure succession                            shows the result
    """
    from tasks.config.job import Succession

    look = None if choices["width"] is None else 1
    succession = Succession(old_judge=old_judge, new_judge=new_judge, look=look, **choices)
    arguments = replace(context.arguments, named_judges=(new_judge,), succession=succession)
    context = replace(context, arguments=arguments)
    if dry_run:
        with context.working():
            from tasks.plan.plan import plan_succession

            calls = plan_succession(context.job)
        return _show_planned_calls(context, calls)
    execution = run_flow(context, "succeed")
    if execution.was_interrupted:
        return finish(context, execution)
    parts = {"models": "succession", "agreement": "succession_agreement"}
    judges = {"old": old_judge, "new": new_judge}
    if context.as_json:
        rows = rows_of_parts(context, execution.job, parts, judges)
        return finish(context, execution, models=rows["models"], agreement=rows["agreement"])
    if not execution.job.is_quiet:
        show_parts(context, execution.job, parts, judges)
    return finish(context, execution)
