"""The command `leaderboard`, and the leaderboard at the end of a run."""

from typing import TYPE_CHECKING

import click

from flows.cli.common.help import Command, examples
from flows.cli.common.options import SHOWS, Context, shared_options
from flows.cli.common.output import show_json
from flows.cli.common.tables import show_table

if TYPE_CHECKING:
    from tasks.config import Job
    from tasks.rules.text.table import Table


@click.command(cls=Command, epilog=examples(
    "prbench leaderboard --by category --json",
    "prbench leaderboard --by topic --hard",
    "prbench leaderboard --benchmark NAME --by BREAKDOWN",
    "prbench leaderboard --risk",
    "prbench leaderboard --selection latest",
))  # fmt: skip
@click.option("--hard", "is_hard", is_flag=True, help="Only tasks of your latest hard subset.")
@click.option("--score", metavar="NAME", help="Score to show.  [default: the benchmark's primary score]")
@click.option("--by", metavar="BREAKDOWN",
              help="One row for each model and label: category, severity, turns, reference_texts, subset, topic, "
              "expert, decision_type, economic_pathway, or one of the benchmark's own, which `prbench benchmarks NAME` "
              "lists. A task with several labels counts for each.")  # fmt: skip
@click.option("--risk", "is_severity", is_flag=True, help="Show critical criteria met and critical mistakes made.")
@click.option("--selection", metavar="ID", help="Only tasks of this hard subset: its id, the start of it, or `latest`.")
@shared_options(selection=("split", "model", "judge", "vintage"), output=SHOWS, texts={
    "vintage": "Only this sampling, or `all`.  [default: the latest of each model]",
})  # fmt: skip
def leaderboard(
    context: Context, is_hard: bool, score: str | None, by: str | None, is_severity: bool, selection: str | None
) -> int:
    """Rank the models.

    Every score comes with its interval, its coverage, and the range it could have once nothing is missing.
    """
    from tasks.compare import Choice
    from tasks.compare import leaderboard as ranked
    from tasks.rules.errors import UsageError

    if sum(map(bool, (by, is_severity, selection))) > 1 or (selection and is_hard) or (score and is_severity):
        raise UsageError("--by, --risk and --selection show different tables; give one (and no --score with --risk)")
    choice = Choice(context.arguments.vintage, score, by, is_hard, is_severity, selection)
    job = context.job
    table = ranked(job, choice, must_know=True)
    if context.as_json:
        show_json(table.records)
    else:
        _show(job, table)
    return 0


def show_leaderboard(context: Context, job: "Job") -> None:
    """Show the leaderboard of a job to people."""
    _show(job, leaderboard_of(context, job))


def leaderboard_of(context: Context, job: "Job") -> "Table":
    """The leaderboard of a job."""
    from tasks.compare import Choice
    from tasks.compare import leaderboard as ranked

    return ranked(job, Choice(context.arguments.vintage))


def _show(job: "Job", table: "Table") -> None:
    if not table.rows:
        click.echo("No model has a verdict here yet.")
        return
    from flows.cli.look.leaderboard_columns import for_people
    from flows.cli.look.leaderboard_notes import notes_on

    columns, rows, n_least = for_people(table)
    show_table(columns, rows, n_least=n_least)
    for line in notes_on(job, table.records):
        click.echo(line)
