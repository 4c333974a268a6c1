"""The command `lengths`: correlation between response length and score."""

import click

from flows.cli.common.help import Command, examples
from flows.cli.common.options import SHOWS, Context, shared_options
from flows.cli.common.output import show_json, show_nothing
from flows.cli.compare.figures import repetition, show_figures
from flows.cli.compare.questions import answer
from tasks.rules.text.numbers import SMALL_MARK


@click.command(cls=Command, epilog=examples("prbench lengths", "prbench lengths --hard --model gpt-5-high"))
@click.option(
    "--hard", "is_hard", is_flag=True, help="Use your latest hard subset of each field instead of the splits."
)
@click.option("--score", metavar="NAME", help="Score to use.  [default: the benchmark's primary score]")
@shared_options(selection=("split", "model", "judge", "vintage"), output=SHOWS,
                texts={"vintage": "Only this vintage."})  # fmt: skip
def lengths(context: Context, is_hard: bool, score: str | None) -> int:
    """Show the correlation between response length and score.

    It is Spearman's rank correlation, over the tasks of each model and over the models, with its interval (figure 7 of
    the paper).
    """
    given, job = context.arguments, context.stored_job()
    parameters = {
        "splits": list(job.settings.dataset.splits), "models": list(given.models),
        "judges": list(given.judges), "vintage": given.vintage, "is_hard": is_hard,
    }  # fmt: skip
    records = answer(job, "lengths", parameters, score=score)
    if context.as_json:
        show_json(records)
        return 0
    if not records:
        show_nothing(job, "No model has a complete task in this selection yet.")
        return 0
    show_figures("Rank correlation between response length and score", records, {
        "split": "split", "model": "model", "length": "measure",
        "correlation": ("rank_correlation", "ci_low", "ci_high"), "tasks or models": "n",
        "judge": "judge", **repetition(records), "vintage": "vintage",
    })  # fmt: skip
    if any(record["is_small"] and record["rank_correlation"] is not None for record in records):
        click.echo(f"{SMALL_MARK} fewer than 50 tasks or models; fewer than 10 have no interval")
    return 0
