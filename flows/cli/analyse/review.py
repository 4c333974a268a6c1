"""The command `review`."""

import click

from flows.cli.common.flow_runner import finish, refuse_early, run_flow
from flows.cli.common.help import Command, examples
from flows.cli.common.options import RUNS, Context, budget_options, repair_options, shared_options


@click.command(cls=Command, epilog=examples(
    "prbench review --limit 20 --max-usd 2",
    "prbench review --split finance_hard",
    "prbench reviews                        what reviewers say",
))  # fmt: skip
@repair_options
@budget_options
@shared_options(output=RUNS, selection=("split", "limit"))
def review(context: Context, retry_failed: bool, replace_lost: bool) -> int:
    """Have models check how criteria are written.

    The models are those of `reviewer:` in the configuration. Each says of every criterion whether it is atomic,
    objective, self-contained, consistent with the rest of its rubric, and not given away by the request, with a reason.
    Reviews that are stored already are not asked for again. `prbench reviews` shows them.
    """
    from tasks.review import refuse_unready

    refuse_early(context, must_be_stored=True)
    refuse_unready(context.job)
    return finish(context, run_flow(context, "review", retry_failed=retry_failed, replace_lost=replace_lost))
