"""The command `plan`."""

from typing import TYPE_CHECKING

import click

from flows.cli.common.help import Command, examples
from flows.cli.common.options import EVALUATED, SHOWS, Context, shared_options
from flows.cli.common.output import show_json
from flows.cli.common.tables import show_table

if TYPE_CHECKING:
    from tasks.config import Job

_COLUMNS = ["stage", "model or judge", "calls", "prompt tokens", "completion tokens", "USD", "token estimate"]


@click.command(cls=Command, epilog=examples(
    "prbench plan",
    "prbench plan --model gpt-5-high --trials 3",
    "prbench plan --night 2026-11-22 --json",
))  # fmt: skip
@shared_options(selection=EVALUATED, output=SHOWS)
def plan(context: Context) -> int:
    """Show the calls and cost of a run without making any call.

    For each model and judge: the missing calls, their tokens and the estimated cost.
    """
    return show_plan(context, context.job)


def show_plan(context: Context, job: "Job") -> int:
    """Show the calls that a job would make, with tokens and cost."""
    from tasks.plan import in_all
    from tasks.plan import plan as planned_calls

    planned = planned_calls(job)
    total = in_all(planned)
    if context.as_json:
        show_json({"calls": [vars(each) for each in planned], "total": vars(total)})
        return 0
    rows = [
        (each.role, each.label, each.calls, each.prompt_tokens, each.completion_tokens, each.cost_usd, each.basis)
        for each in [*planned, total]
    ]
    show_table(_COLUMNS, rows)
    for each in planned:
        if each.note:
            click.echo(f"Unknown for {each.label}: {each.note}")
        if each.judged_before:
            click.echo(f"Judged again by {each.label}: {each.judged_before}")
    return 0
