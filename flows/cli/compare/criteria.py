"""The command `criteria`: criteria worth a second look."""

from typing import Any

import click

from flows.cli.common.help import Command, examples
from flows.cli.common.options import SHOWS, Context, shared_options
from flows.cli.common.output import show_json, show_nothing
from flows.cli.compare.figures import repetition, show_figures
from flows.cli.compare.questions import Records, answer

_KINDS = {
    "never-met": "Criteria that no complete response meets",
    "always-met": "Criteria that every complete response meets",
    "disagreed": "Criteria that graders disagree on most",
    "suspect": "Criteria whose points correlate negatively with the rest of their task: weight or sign may be wrong",
}


_HELP = """Find criteria worth a second look.

\b
never-met   No complete response meets them.
always-met  Every complete response meets them.
disagreed   Graders disagree on them most.
suspect     Their points correlate negatively with the rest of their task,
            so their weight or sign may be wrong.

Reviews of these criteria (`prbench reviews`) are in the same table.
"""


@click.command(cls=Command, help=_HELP, epilog=examples(
    "prbench criteria suspect",
    "prbench criteria never-met -n 50 --json",
    "prbench criteria disagreed",
))  # fmt: skip
@click.argument("which", metavar="KIND", type=click.Choice(list(_KINDS)))
@click.option("-n", "n_criteria", type=click.IntRange(min=1), default=20, show_default=True, metavar="N",
              help="Number of criteria to show.")  # fmt: skip
@shared_options(selection=("judge", "vintage"), output=SHOWS, texts={"vintage": "Only this vintage."})
def criteria(context: Context, which: str, n_criteria: int) -> int:
    """Find criteria worth a second look; what reviewers say of them is shown too."""
    given = context.arguments
    parameters = {"which": which, "n_criteria": n_criteria, "judges": list(given.judges), "vintage": given.vintage}
    job = context.stored_job()
    records = answer(job, "criteria", parameters)
    if context.as_json:
        show_json(records)
        return 0
    if not records:
        show_nothing(job, f"{_KINDS[which]}: none.")
        return 0
    # What graders differ on is about all of them; the other figures are about one judging each, which is named.
    figures = {"graded by several": "n_graded"} if which == "disagreed" else {
        "met": "met_share", "responses": "n_responses", "models": "n_models", "correlation": "rest_correlation",
        "upper limit": "rest_correlation_high",
    }  # fmt: skip
    judging = {} if which == "disagreed" else {"judge": "judge", **repetition(records)}
    show_figures(_KINDS[which], _by_criterion(records), {
        "task": "task_id", "criterion": "criterion_id", "category": "category", "weight": "weight", **figures,
        "disagreement": "disagreement", "people disagreeing": "n_disagreeing", "reviewed by": "n_reviews",
        "failed checks": "failed_checks", **judging, "title": "title",
    })  # fmt: skip
    if which == "suspect" and not any((r["rest_correlation_high"] or 0) < 0 for r in records):
        click.echo("All of these may be due to chance: none has an upper limit below 0, which needs at least 4 models.")
    return 0


def _by_criterion(records: Records) -> Records:
    """A row for each criterion, which several judgings may name: all their names, and figures from the lowest to the
    highest.
    """  # noqa: D205 - what becomes of both takes two lines
    found: dict[tuple[str, str], Records] = {}
    for record in records:
        found.setdefault((record["task_id"], record["criterion_id"]), []).append(record)
    return [{name: _together([record[name] for record in of]) for name in of[0]} for of in found.values()]


def _together(values: list[Any]) -> Any:
    distinct = list(dict.fromkeys(value for value in values if value is not None))
    if len(distinct) < 2:
        return distinct[0] if distinct else None
    if any(isinstance(value, str) for value in distinct):
        return ", ".join(distinct)
    low, high = min(distinct), max(distinct)
    return f"{low:.3f} to {high:.3f}" if isinstance(low, float) else f"{low} to {high}"
