"""The command `prbench`."""

import atexit
import io
import os
import resource
import sys
import traceback
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import click

from flows.cli import exchange, figures, operate, plan, run, shown, sql
from flows.cli.options import Group
from flows.run.outcomes import BELOW_BAR, ENDINGS, explained
from tasks.console import shown_visibly

_MOST_OPEN_FILES = 10_240
"""A limit that every system allows; each call in flight needs one file."""
SECTIONS: dict[str, tuple[click.Command, ...]] = {
    "Most used": (
        run.run,
        plan.plan,
        plan.status,
        figures.leaderboard,
        shown.diff,
        operate.report,
        sql.sql,
        operate.doctor,
        operate.serve,
        exchange.export,
        exchange.import_,
    ),
    "Run": (
        run.nightly,
        run.backfill,
        run.ingest,
        run.assemble,
        run.sample,
        run.derive,
        run.judge,
        run.aggregate,
        run.select_hard,
    ),
    "Look": (figures.figures, figures.figure, figures.benchmarks),
    "Compare": (
        shown.conditions,
        shown.judges,
        shown.cascade,
        run.succeed,
        shown.criteria,
        shown.lengths,
    ),
    "Analyse": (
        run.annotate,
        run.capabilities,
        shown.weaknesses,
        run.review,
        shown.reviews,
        run.neighbours,
    ),
    "Keep": (
        operate.publish,
        operate.certify,
        operate.verify,
        operate.remove,
        operate.compact,
        operate.backup,
        operate.restore,
    ),
    "Operate": (operate.check, operate.adopt),
}
"""All commands: the most used ones first, the others by purpose."""


@click.group(
    cls=Group,
    commands=list(chain.from_iterable(SECTIONS.values())),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
def cli() -> None:
    """Evaluate language models on rubric benchmarks.

    Models respond to the tasks of a benchmark, and judges decide each criterion of each task's
    rubric. Every verdict can be queried in SQL. `prbench COMMAND --help` describes a command.

    Examples:
      prbench run                       sample data, embedded model, no key needed
      prbench run --config night.yaml   your data, models and judges
      prbench leaderboard --by category
      prbench sql 'select model, status, count(*) from verdicts group by all'
    """


cli.sections = SECTIONS


def entry() -> None:
    """Run `prbench` as a process."""
    # Of a closed stream, Python makes no file.
    sys.stdout = sys.stdout or _nowhere()
    sys.stderr = sys.stderr or _nowhere()
    # A terminal that cannot show a table's lines gets question marks instead of an error.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 <= soft < _MOST_OPEN_FILES:
        limit = _MOST_OPEN_FILES
        if hard != resource.RLIM_INFINITY:
            limit = min(hard, limit)
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, hard))
    exit_codes: list[int] = []

    # Registered first, so called last, after all other clean-up. Otherwise Python unloads modules
    # that Prefect's threads still use, and DuckDB's binding prints pages of errors.
    @atexit.register
    def end() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        if exit_codes:
            os._exit(exit_codes[0])

    exit_codes.append(main(sys.argv[1:]))
    sys.exit(exit_codes[0])


def _nowhere() -> io.TextIOWrapper:
    return Path(os.devnull).open("w", encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Run the command and return its exit code; an error is shown in one line."""
    with shown_visibly():
        exit_code, line = _run_command(list(arguments))
        # If no warehouse was opened, there is no damage to report, and importing its libraries
        # takes long.
        files = sys.modules.get("warehouse.files")
        notices = files.pop_notices() if files else ()
        # A run shows damage in its reports; this is for all other commands.
        for notice in notices:
            click.echo(f"prbench: {notice.line}", err=True)
            if exit_code == 0 and not notice.is_repaired:
                exit_code = ENDINGS[BELOW_BAR].exit_code
        if line:
            # Quoted text may contain line breaks.
            one_line = line.replace("\n", " ")
            click.echo(f"prbench: {one_line}", err=True)
    return exit_code


def _run_command(arguments: list[str]) -> tuple[int, str]:
    """Run the command, and return its exit code and the line to show with it."""
    try:
        exit_code = cli.main(args=arguments, prog_name="prbench", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return 2, ""
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "prbench"
        message = " ".join(error.format_message().split()).removesuffix(".")
        return 2, f"{message} (see `{command} --help`)"
    except (KeyboardInterrupt, click.Abort):
        return 130, "interrupted"
    except Exception as error:  # noqa: BLE001 - shown in one line, and with -v with its traceback
        if {"-v", "--verbose"} & set(arguments):
            from tasks.llm.redaction import redacted

            click.echo(redacted(traceback.format_exc()), err=True)
        return explained(error)
    return exit_code or 0, ""
