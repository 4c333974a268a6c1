"""The command `capabilities`."""

import click

from flows.cli.common.flow_runner import finish, refuse_early, run_flow
from flows.cli.common.help import Command, examples
from flows.cli.common.options import RUNS, Context, budget_options, repair_options, shared_options


@click.command(cls=Command, epilog=examples(
    "prbench capabilities --max-usd 5",
    "prbench capabilities --split finance",
    "prbench weaknesses MODEL                             shows the result",
    "prbench sql 'from capability_scores'",
))  # fmt: skip
@repair_options
@budget_options
@shared_options(output=RUNS, selection=("split", "limit"))
def capabilities(context: Context, retry_failed: bool, replace_lost: bool) -> int:
    """Group criteria by capability, and find where models are weak.

    The `capabilities: model:` of the configuration writes a phrase for the capability that each criterion needs. The
    phrases of a field are put into a tree, by `capabilities: embedding:` or else by their words, and the model writes a
    name for each node. Then scores and weaknesses of all models are computed from stored verdicts. Only what is missing
    is done. `prbench weaknesses` and the report show the result.
    """
    from tasks.capabilities import refuse_unready

    refuse_early(context, must_be_stored=True)
    refuse_unready(context.job)
    return finish(context, run_flow(context, "capabilities", retry_failed=retry_failed, replace_lost=replace_lost))
