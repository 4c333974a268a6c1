"""The command `prbench`."""

import atexit
import io
import os
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from flows.cli_analysis import ANALYSIS_COMMANDS
from flows.cli_boards import leaderboard, leaderboard_records, show_leaderboard
from flows.cli_diff import diff
from flows.cli_plan import capped, plan
from flows.cli_reading import READING_COMMANDS
from flows.cli_sql import sql
from flows.options import Context, examples, shared_options
from flows.output import show_json, show_rows

if TYPE_CHECKING:
    from flows.execution import Execution

_FILE = click.Path(path_type=Path)
_RETRY = click.option("--retry-failed", is_flag=True, help="Also try failures again whose cause will hardly pass.")


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=examples(
        "prbench run                         sample data and the embedded model, no key needed",
        "prbench run --config night.yaml     what night.yaml says",
        "prbench leaderboard --by category",
        "prbench sql 'select model, status, count(*) from verdicts group by all'",
    ),
)
def cli() -> None:
    """Evaluate language models on rubric benchmarks: sample, judge, score and rank, every verdict queryable in SQL."""


@cli.command(epilog=examples("prbench run", "prbench run --config prbench.yaml --limit 20", "prbench run --json -q"))
@_RETRY
@capped
@shared_options
def run(context: Context, retry_failed: bool) -> int:
    """Do the whole job; only what is missing is done."""
    execution = _run_flow(context, "evaluate", retry_failed=retry_failed)
    if execution.was_interrupted:
        return _finish(context, execution)
    if context.as_json:
        show_json(execution.as_json | {"leaderboard": leaderboard_records(context, execution.job)})
        return execution.exit_code
    show_leaderboard(context, execution.job)
    click.echo(f"\nDatabase: {execution.database}")
    click.echo("Next:\n  " + "\n  ".join(_NEXT))
    return execution.exit_code


_NEXT = (
    "uv run prbench leaderboard --by category",
    'uv run prbench sql "select title, weight, status, explanation from verdict_details order by weight desc limit 9"',
    "cp prbench.example.yaml prbench.yaml     # your models and judges, on PRBench from the hub",
)  # fmt: skip


def _stage(name: str, flow_name: str, text: str, *lines: str) -> None:
    @cli.command(name, help=text, epilog=examples(*lines))
    @shared_options
    def command(context: Context) -> int:
        return _finish(context, _run_flow(context, flow_name))


def _calling_stage(name: str, text: str, *lines: str) -> None:
    @cli.command(name, help=text, epilog=examples(*lines))
    @_RETRY
    @capped
    @shared_options
    def command(context: Context, retry_failed: bool) -> int:
        return _finish(context, _run_flow(context, name, retry_failed=retry_failed))


_stage("ingest", "ingest", "Bring the data set in and check it.", "prbench ingest --config prbench.yaml")
_stage("assemble", "assemble", "Make the conversations of the admitted tasks.", "prbench assemble")
_calling_stage("sample", "Sample the responses that are missing.", "prbench sample --model gpt-5-high")
_calling_stage("judge", "Judge the criteria that are missing.", "prbench judge --judge o4-mini --limit 50")
_stage("aggregate", "aggregate", "Renew scores, leaderboard and intervals.", "prbench aggregate")
_stage("select-hard", "select_hard", "Select the hard subset of each field.", "prbench select-hard")


@cli.command(epilog=examples("prbench check", "prbench check --list"))
@click.option("--list", "only_list", is_flag=True, help="Name all checks, their policies and what they ask.")
@shared_options
def check(context: Context, only_list: bool) -> int:
    """Run the data-quality suites on what is stored."""
    if not only_list:
        return _finish(context, _run_flow(context, "check"))
    from tasks.benchmarks import load_benchmark
    from tasks.check import rules_of, with_policies

    job = context.job
    rules = with_policies(job, rules_of(load_benchmark(job.settings.benchmark)))
    rows = list(dict.fromkeys((r.check_name, r.stage, r.policy, r.meaning) for r in rules))
    show_rows(context.as_json, ["check", "after", "policy", "what is asked"], rows)
    return 0


@cli.group("import")
def import_() -> None:
    """Bring in responses or verdicts that were made elsewhere."""


@import_.command("responses", epilog=examples(
    "prbench import responses answers.jsonl", "prbench import responses answers.json --as gpt-5-high",
))  # fmt: skip
@click.argument("file", type=_FILE)
@click.option("--as", "as_model", metavar="LABEL", help="The model, where the rows name none.")
@shared_options
def import_responses(context: Context, file: Path, as_model: str | None) -> int:
    """Rows `task, model, response[, trial]` (JSONL, CSV, Parquet), or one JSON object `{task: response}`."""
    from flows.execution import execute
    from tasks.imports import import_responses as bring_in

    job = context.job
    return _finish(context, execute(job, lambda: [bring_in(job, file, as_model)]))


@import_.command("verdicts", epilog=examples("prbench import verdicts labels.csv"))
@click.argument("file", type=_FILE)
@click.option("--as", "as_model", metavar="LABEL", help="The model, where the rows name none.")
@shared_options
def import_verdicts(context: Context, file: Path, as_model: str | None) -> int:
    """Rows `task, model, criterion, criteria_met` or `value` `[, judge, trial, judge_trial, explanation]`."""
    from flows.execution import execute
    from tasks.imports import import_verdicts as bring_in

    job = context.job
    return _finish(context, execute(job, lambda: [bring_in(job, file, as_model)]))


for reading_command in (plan, leaderboard, *ANALYSIS_COMMANDS, *READING_COMMANDS, diff, sql):
    cli.add_command(reading_command)


def _run_flow(context: Context, name: str, **options: bool) -> "Execution":
    from flows.execution import execute_flow

    return execute_flow(context.job, name, is_verbose=context.is_verbose, **options)


def _finish(context: Context, execution: "Execution") -> int:
    if context.as_json:
        show_json(execution.as_json)
    elif not context.asked.is_quiet:
        for report in execution.reports:
            if report.stage == "import":
                click.echo(report.line)
    return execution.exit_code


def entry() -> None:
    """Be the process `prbench`."""
    # A terminal that cannot show a table's lines gets question marks instead of an error.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    ending: list[int] = []
    # Registered first, so called last, when everybody else has cleaned up: Python would go on to take modules apart
    # that Prefect's threads still hold, and DuckDB's binding prints pages about that.
    atexit.register(lambda: _end_process(ending))
    ending.append(main(sys.argv[1:]))
    sys.exit(ending[0])


def _end_process(ending: list[int]) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    if ending:
        os._exit(ending[0])


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code; every error that a user can cause is told in one line."""
    code, line = _outcome(list(arguments))
    if line:
        click.echo(f"prbench: {line}", err=True)
    return code


def _outcome(given: list[str]) -> tuple[int, str]:
    """The exit code, and what to say about it."""
    try:
        return cli.main(args=given, standalone_mode=False) or 0, ""
    except click.ClickException as error:
        return 2, f"{' '.join(error.format_message().split())} (try `prbench --help`)"
    except (KeyboardInterrupt, click.Abort):
        return 130, "interrupted"
    except Exception as error:  # noqa: BLE001 - the rim: what is left is told in one line, in full with -v
        if {"-v", "--verbose"} & set(given):
            from tasks.llm.secrets import redacted

            click.echo(redacted(traceback.format_exc()), err=True)
        return _explained(error)


def _explained(error: BaseException) -> tuple[int, str]:
    from tasks.llm.secrets import safe
    from tasks.rules.errors import PipelineError
    from warehouse import WarehouseError

    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, OSError) and error.filename is not None:
        return 1, f"{error.filename}: {error.strerror}; is the path right, and may it be used?"
    if isinstance(error, PipelineError | WarehouseError):
        return getattr(error, "exit_code", 1), str(error)
    return 1, f"unexpected {type(error).__name__}: {safe(str(error))} (run it with -v to see where)"
