"""The command `compact`."""

import click

from flows.cli.common.flow_runner import finish, run_flow
from flows.cli.common.help import Command, examples
from flows.cli.common.options import RUNS, WAREHOUSE, Context, shared_options


@click.command(cls=Command, epilog=examples("prbench compact", "prbench compact --warehouse results/"))
@shared_options(output=RUNS, place=WAREHOUSE)
def compact(context: Context) -> int:
    """Merge small files and delete old raw replies.

    `retention.replies_days` in the configuration sets how long raw replies (what providers sent) are kept. Results stay
    the same.
    """
    return finish(context, run_flow(context, "compact"))
