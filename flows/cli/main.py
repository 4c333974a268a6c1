"""The command `prbench`."""

import atexit
import io
import os
import sys
import traceback
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from flows.cli.common.flow_runner import finish, run_flow
from flows.cli.common.options import Context, examples, shared_options
from flows.cli.common.output import show_rows
from flows.cli.compare.analysis import ANALYSIS_COMMANDS
from flows.cli.compare.diff import diff
from flows.cli.keep.export_backup import KEEPING_COMMANDS
from flows.cli.keep.imports import import_
from flows.cli.keep.remove import remove
from flows.cli.look.benchmarks import benchmarks
from flows.cli.look.leaderboard import leaderboard
from flows.cli.look.report import report
from flows.cli.look.sql import sql
from flows.cli.operate.doctor import READING_COMMANDS
from flows.cli.operate.serve import serve
from flows.cli.run.pipeline_commands import RUNNING_COMMANDS
from flows.cli.run.plan_command import plan
from flows.run.errors import explained
from tasks.console.terminal import shown_visibly

if TYPE_CHECKING:
    from warehouse.files.damage import Notice

EXIT_DAMAGED = 3
"""The exit code of a command that did its work and came upon damage."""


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


@cli.command(epilog=examples("prbench check", "prbench check --list"))
@click.option("--list", "only_list", is_flag=True, help="Name all checks, their policies and what they ask.")
@shared_options
def check(context: Context, only_list: bool) -> int:
    """Run the data-quality suites on what is stored."""
    if not only_list:
        return finish(context, run_flow(context, "check"))
    from tasks.benchmarks import load_benchmark
    from tasks.config.policies import expectations_of, policies_of

    job = context.job
    expectations = expectations_of(load_benchmark(job.settings.benchmark))
    policies = policies_of(job, expectations)
    rows = list(dict.fromkeys((each.check, each.suite, policies[each.check], each.meaning) for each in expectations))
    show_rows(context.as_json, ["check", "after", "policy", "what is asked"], rows)
    return 0


for command in (
    *RUNNING_COMMANDS, import_, remove, *KEEPING_COMMANDS, serve, plan, leaderboard, *ANALYSIS_COMMANDS,
    *READING_COMMANDS, diff, report, sql, benchmarks,
):  # fmt: skip
    cli.add_command(command)


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
    with shown_visibly():
        code, line = _outcome(list(arguments))
        for notice in _notices():
            # What a run found is in its reports; this is what other commands come upon.
            click.echo(f"prbench: {notice.line}", err=True)
            if code == 0 and not notice.is_mended:
                code = EXIT_DAMAGED
        if line:
            # What a line quotes may have lines of its own.
            click.echo(f"prbench: {' '.join(line.split(chr(10)))}", err=True)
    return code


def _notices() -> list["Notice"]:
    """What was found about damage: nothing where no warehouse was opened, which takes its libraries to import."""
    damage = sys.modules.get("warehouse.files.damage")
    return list(damage.take_notices()) if damage else []


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
            from tasks.llm.redaction import redacted

            click.echo(redacted(traceback.format_exc()), err=True)
        return explained(error)
