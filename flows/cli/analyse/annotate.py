"""The command `annotate`."""

import click

from flows.cli.common.flow_runner import finish, refuse_early, run_flow
from flows.cli.common.help import Command, examples
from flows.cli.common.options import RUNS, Context, budget_options, repair_options, shared_options


@click.command(cls=Command, epilog=examples(
    "prbench annotate",
    "prbench annotate jurisdiction --limit 20",
    "prbench annotate decision_type economic_pathway --max-usd 5",
    "prbench sql 'from annotation_agreement'",
))  # fmt: skip
@click.argument("vocabularies", nargs=-1, metavar="[VOCABULARY]...")
@repair_options
@budget_options
@shared_options(output=RUNS, selection=("split", "limit"))
def annotate(context: Context, retry_failed: bool, replace_lost: bool) -> int:
    """Label tasks with a model, such as by decision type.

    The models are those of `annotator:` in the configuration, the vocabularies those that the benchmark declares
    (`prbench benchmarks NAME`); all of them by default. Labels that are stored already are not asked for again. Where
    the data set has no label of a kind, breakdowns and the report use those of the annotators and say so. How far
    annotators agree with the data set's labels and with each other is in the table `annotation_agreement`.
    """
    from tasks.annotate import refuse_unready

    refuse_early(context, must_be_stored=True)
    refuse_unready(context.job)
    return finish(context, run_flow(context, "annotate", retry_failed=retry_failed, replace_lost=replace_lost))
