"""The command `leaderboard`, and the leaderboard at the end of a run."""

from typing import TYPE_CHECKING, Any

import click

from flows.cli.common.options import Context, examples, shared_options
from flows.cli.common.output import show_json, show_table

if TYPE_CHECKING:
    from tasks.config.settings import Job
    from tasks.rules.table import Table

_CUTS = (
    "CUT is category, severity, turns, reference_texts, subset, topic, expert, decision_type, economic_pathway, or one "
    "that the benchmark has of its own (`prbench benchmarks NAME` lists them)."
)


@click.command(epilog=examples(
    "prbench leaderboard --hard", "prbench leaderboard --by category --json", "prbench leaderboard --by topic --hard",
    "prbench leaderboard --benchmark NAME --by CUT     another benchmark; `prbench benchmarks NAME` lists its cuts",
    "prbench leaderboard --risk                    critical criteria met, critical mistakes made",
    "prbench leaderboard --selection latest        any split on a hard selection, also an old one",
))  # fmt: skip
@click.option("--hard", "is_hard", is_flag=True, help="On the latest own hard selection.")
@click.option("--score", metavar="NAME", help="Which score.  [default: the benchmark's main one]")
@click.option("--by", metavar="CUT", help=f"One row a model and label; several labels count for each. {_CUTS}")
@click.option("--risk", "is_severity", is_flag=True, help="Critical criteria met and critical mistakes made.")
@click.option("--selection", metavar="ID", help="On a hard selection: its id, or the beginning of it, or `latest`.")
@shared_options
def leaderboard(
    context: Context, is_hard: bool, score: str | None, by: str | None, is_severity: bool, selection: str | None
) -> int:
    """Rank the models, with intervals, bounds and coverage."""
    from tasks.compare.leaderboard import Choice
    from tasks.compare.leaderboard import leaderboard as ranked
    from tasks.rules.errors import UsageError

    if sum(map(bool, (by, is_severity, selection))) > 1 or (selection and is_hard) or (score and is_severity):
        raise UsageError("--by, --risk and --selection ask for different tables; give one (and no --score with --risk)")
    choice = Choice(context.asked.vintage, score, by, is_hard, is_severity, selection)
    job = context.job
    table = ranked(job, choice, must_know=True)
    if context.as_json:
        show_json(table.records)
    else:
        _show(job, table)
    return 0


def show_leaderboard(context: Context, job: "Job") -> None:
    """The leaderboard of a job, for people."""
    from tasks.compare.leaderboard import Choice
    from tasks.compare.leaderboard import leaderboard as ranked

    _show(job, ranked(job, Choice(context.asked.vintage)))


def leaderboard_records(context: Context, job: "Job") -> list[dict[str, Any]]:
    """The leaderboard of a job, for machines."""
    from tasks.compare.leaderboard import Choice
    from tasks.compare.leaderboard import leaderboard as ranked

    return ranked(job, Choice(context.asked.vintage)).records


def _show(job: "Job", table: "Table") -> None:
    if not table.rows:
        click.echo("No model has a verdict here yet.")
        return
    from flows.cli.look.leaderboard_table import caveats, for_people

    columns, rows, n_least = for_people(table)
    show_table(columns, rows, n_least=n_least)
    for line in caveats(job, table.records):
        click.echo(line)
