"""The command `leaderboard`, and the leaderboard at the end of a run."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from flows.cli.options import SHOWS, Context, command
from flows.cli.output import show_json, show_nothing

if TYPE_CHECKING:
    from tasks.config.job import Job
    from tasks.rules.records import Table

_CANNOT_BE_COMBINED = (
    ("--by", "--risk"), ("--by", "--selection"), ("--risk", "--selection"), ("--hard", "--selection"),
    ("--score", "--risk"), ("--output", "--json"), ("--debiased", "--risk"), ("--debiased", "--selection"),
    ("--debiased", "--output"),
)  # fmt: skip


@command("split", "model", "judge", "vintage-shown", "hard", "score", output=SHOWS)
@click.option("--by", metavar="BREAKDOWN",
              help="Break scores down by category, severity, turns, reference_texts, subset, topic, expert, "
              "decision_type, economic_pathway, or a breakdown that only this benchmark has (see `prbench benchmarks "
              "NAME`). A task with several labels counts for each.")  # fmt: skip
@click.option("--risk", "is_severity", is_flag=True, help="Show critical criteria met and mistakes made, not scores.")
@click.option("--selection", metavar="ID",
              help="Show only the tasks of one stored hard subset, by split, without ranks. ID: its id, a prefix of "
              "it, or `latest`.")  # fmt: skip
@click.option("-o", "--output", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Write a file for spreadsheets instead, .csv or .xlsx, with a line that explains each column: in "
              "Excel on a second sheet, beside a CSV file in FILE-columns.csv.")  # fmt: skip
@click.option("--debiased", "is_debiased", is_flag=True,
              help="Show each score beside what people's labels on a part of the verdicts make of it.")  # fmt: skip
def leaderboard(
    context: Context, is_hard: bool, score: str | None, by: str | None, is_severity: bool, selection: str | None,
    output: Path | None, is_debiased: bool,
) -> int:  # fmt: skip
    """Rank the models.

    Each score comes with its interval, its coverage, and its possible range: the lowest and the highest value that it
    could have once no verdict is missing.

    With --debiased, labels from sheets of `prbench export labelling --for` (or imported with --random-sample) correct
    the judge's scores. Beside the debiased score are the judge's own and what the labels alone give.

    Examples:
      prbench leaderboard --by category --json
      prbench leaderboard --by topic --hard
      prbench leaderboard --benchmark NAME --by BREAKDOWN
      prbench leaderboard --risk
      prbench leaderboard --selection latest
      prbench leaderboard -o board.xlsx     with a sheet of explanations
      prbench leaderboard --debiased      scores that people's labels correct
    """
    from tasks.figures.leaderboard import Choice
    from tasks.figures.leaderboard import leaderboard as ranked
    from tasks.rules.errors import UsageError

    given = {
        "--by": by, "--risk": is_severity, "--selection": selection, "--hard": is_hard, "--score": score,
        "--output": output, "--json": context.as_json, "--debiased": is_debiased,
    }  # fmt: skip
    for first, second in _CANNOT_BE_COMBINED:
        if given[first] and given[second]:
            raise UsageError(f"{first} and {second} cannot be combined; leave one out")
    if is_debiased:
        from flows.cli.figures import show_parts

        if by not in {None, "category"}:
            raise UsageError(f"--by {by}: --debiased knows --by category only")
        return show_parts(
            context, context.stored_job(), {"": "debiased_categories" if by else "debiased_scores"}, {},
            vintage=context.arguments.vintage, score=score, is_hard=is_hard,
        )  # fmt: skip
    if output is not None:
        from tasks.exports.board_files import refuse_other_suffix, write_board

        refuse_other_suffix(output)
    choice = Choice(context.arguments.vintage, score, by, is_hard, is_severity, selection)
    job = context.stored_job()
    table = ranked(job, choice)
    if output is not None:
        click.echo(write_board(job, table, output, by).line)
    elif context.as_json:
        show_json(table.records)
    else:
        show_leaderboard(job, table)
    return 0


def leaderboard_of(job: "Job", vintage: str | None) -> "Table":
    """Return the leaderboard of a job on its splits."""
    from tasks.figures.leaderboard import Choice
    from tasks.figures.leaderboard import leaderboard as ranked

    return ranked(job, Choice(vintage))


def show_leaderboard(job: "Job", table: "Table") -> None:
    """Show a leaderboard to people."""
    if not table.rows:
        show_nothing(job, "No model has a verdict in this selection yet.")
        return
    from flows.cli.figures import show_columns
    from tasks.figures.columns import small_notes
    from tasks.figures.shown.categories import CRITICAL
    from tasks.figures.shown.overview import LEADERBOARD
    from tasks.report.rendering.notices import terminal_notes

    columns = (CRITICAL if "mistake_share" in table.columns else LEADERBOARD).columns
    show_columns(columns, table.records)
    for line in [*terminal_notes(job, table.records), *small_notes(columns, table.records)]:
        click.echo(line)
