"""The command `plan`, and the options that cap a run."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from flows.cli.common.options import Context, examples, shared_options
from flows.cli.common.output import show_json, show_table

if TYPE_CHECKING:
    from tasks.config.settings import Job

_COLUMNS = ["stage", "model or judge", "calls", "prompt tokens", "answer tokens", "USD", "tokens are"]


def capped(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that cap what it may use, money and time."""
    for option in (
        click.option("--max-usd", type=click.FloatRange(min=0, min_open=True), metavar="USD", help="Cap on the cost."),
        click.option("--stop-at", metavar="TIME", help="No call begins after it: 06:30, or a date with time."),
        click.option("--max-tokens", type=click.IntRange(min=1), metavar="N", help="Cap on the tokens, both ways."),
    ):
        command = option(command)
    return command


@click.command(epilog=examples("prbench plan", "prbench plan --model gpt-5-high --json"))
@shared_options
def plan(context: Context) -> int:
    """Show what `run` would call, use and cost; no model call is made."""
    return show_plan(context, context.job)


def show_plan(context: Context, job: "Job") -> int:
    """What a job would call, use and cost."""
    from tasks.plan.plan import in_all
    from tasks.plan.plan import plan as planned_calls

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
            click.echo(f"Not known of {each.label}: {each.note}")
        if each.judged_before:
            click.echo(f"Judged again by {each.label}: {each.judged_before}")
    return 0
