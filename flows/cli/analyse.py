"""The commands that have models look at tasks and rubrics."""

from typing import TYPE_CHECKING

import click

from flows.cli.flow_runner import finish, refuse_early, run_flow
from flows.cli.options import CALLS, RUNS, Context, command

if TYPE_CHECKING:
    from collections.abc import Callable

    from tasks.config.job import Job


@command("split", "limit", *CALLS, output=RUNS)
@click.argument("vocabularies", nargs=-1, metavar="[VOCABULARY]...")
def annotate(context: Context) -> int:
    """Label tasks with a model, such as by decision type.

    The models are those of `annotator:` in the configuration, the vocabularies those that the benchmark declares
    (`prbench benchmarks NAME`); all of them by default. Labels that are stored already are not asked for again. Where
    the data set has no label of a kind, breakdowns and the report use those of the annotators and say so. How far
    annotators agree with the data set's labels and with each other is in the table `annotation_agreement`.

    Examples:
      prbench annotate
      prbench annotate jurisdiction --limit 20
      prbench annotate decision_type economic_pathway --max-usd 5
      prbench sql 'from annotation_agreement'
    """
    from tasks.analyses.annotate import refuse_unready

    return _run(context, "annotate", refuse_unready)


@command("split", "limit", *CALLS, output=RUNS)
def capabilities(context: Context) -> int:
    """Group criteria by capability, and find where models are weak.

    The `capabilities: model:` of the configuration writes a phrase for the capability that each criterion needs. The
    phrases of a field are put into a tree, by `capabilities: embedding:` or else by their words, and the model writes a
    name for each node. Then scores and weaknesses of all models are computed from stored verdicts. Only what is missing
    is done. `prbench weaknesses` and the report show the result.

    Examples:
      prbench capabilities --max-usd 5
      prbench capabilities --split finance
      prbench weaknesses MODEL                             shows the result
      prbench sql 'from capability_scores'
    """
    from tasks.analyses.phrases import refuse_unready

    return _run(context, "capabilities", refuse_unready)


@command("split", "limit", *CALLS, output=RUNS)
def review(context: Context) -> int:
    """Have models check how criteria are written.

    The models are those of `reviewer:` in the configuration. Each says of every criterion whether it is atomic,
    objective, self-contained, consistent with the rest of its rubric, and not given away by the request, with a reason.
    Reviews that are stored already are not asked for again. `prbench reviews` shows them.

    Examples:
      prbench review --limit 20 --max-usd 2
      prbench review --split finance_hard
      prbench reviews                        what reviewers say
    """
    from tasks.analyses.review import refuse_unready

    return _run(context, "review", refuse_unready)


def _run(context: Context, name: str, refuse_unready: "Callable[[Job], None]") -> int:
    refuse_early(context, must_be_stored=True)
    refuse_unready(context.job)
    return finish(context, run_flow(context, name))
