"""The commands that run a single stage."""

from collections.abc import Sequence

import click

from flows.cli.common.flow_runner import finish, run_flow
from flows.cli.common.help import Command, examples
from flows.cli.common.options import EVALUATED, RUNS, Context, budget_options, repair_options, shared_options


def _stage(name: str, text: str, *lines: str, selection: Sequence[str] = ()) -> click.Command:
    @click.command(name, cls=Command, help=text, epilog=examples(*lines))
    @shared_options(output=RUNS, selection=selection)
    def command(context: Context) -> int:
        return finish(context, run_flow(context, name.replace("-", "_")))

    return command


def _calling_stage(name: str, text: str, *lines: str, selection: Sequence[str]) -> click.Command:
    @click.command(name, cls=Command, help=text, epilog=examples(*lines))
    @repair_options
    @budget_options
    @shared_options(output=RUNS, selection=selection)
    def command(context: Context, retry_failed: bool, replace_lost: bool) -> int:
        from flows.run.validation import refuse_unknown_names

        refuse_unknown_names(context.job)
        return finish(context, run_flow(context, name, retry_failed=retry_failed, replace_lost=replace_lost))

    return command


ingest = _stage(
    "ingest",
    "Load the data set and check it.\n\nA task that fails a check is put in the table `quarantine` and not evaluated, "
    "unless the configuration sets another policy for the check.",
    "prbench ingest --config prbench.yaml",
    selection=("split",),
)
assemble = _stage(
    "assemble",
    "Build the conversations that are sent to the models.",
    "prbench assemble",
    "prbench assemble --limit 20",
    selection=("split", "limit"),
)
sample = _calling_stage(
    "sample",
    "Sample the responses that are missing.",
    "prbench sample --model gpt-5-high",
    "prbench sample --limit 20 --max-usd 5",
    selection=("split", "model", "trials", "limit", "vintage", "night"),
)
derive = _calling_stage(
    "derive",
    "Reword criteria for judges with another rubric.\n\nThese are the judges whose `rubric` in the configuration is "
    "`examples_removed` or `augmented`. `prbench run` includes this stage.",
    "prbench derive --limit 5",
    selection=("split", "judge", "limit"),
)
judge = _calling_stage(
    "judge",
    "Judge the criteria that have no verdict yet.",
    "prbench judge --judge o4-mini --limit 50",
    "prbench judge --night 2026-11-22 --retry-failed",
    selection=EVALUATED,
)
aggregate = _stage("aggregate", "Recompute scores, intervals and leaderboards.", "prbench aggregate")


@click.command(
    "select-hard", cls=Command, epilog=examples("prbench select-hard", "prbench select-hard --judge o4-mini")
)
@shared_options(output=RUNS, selection=("split", "judge", "vintage"), texts={
    "judge": "Judge whose verdicts count (only one).  [default: the first configured one, else the only stored one]",
})  # fmt: skip
def select_hard(context: Context) -> int:
    """Select the hard subset of each field.

    The hard subset holds the tasks of a field with the lowest mean score over all models.
    """
    if len(context.arguments.judges) > 1:
        raise click.UsageError("--judge: one judge selects the hard subset; give --judge once")
    return finish(context, run_flow(context, "select_hard"))
