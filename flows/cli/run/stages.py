"""The commands that run a single stage."""

from collections.abc import Sequence

import click

from flows.cli.common.flow_runner import finish, run_flow
from flows.cli.common.help import Command, examples
from flows.cli.common.options import EVALUATED, Context, budget_options, repair_options, shared_options


def _stage(name: str, text: str, *lines: str, selection: Sequence[str] = ()) -> click.Command:
    @click.command(name, cls=Command, help=text, epilog=examples(*lines))
    @shared_options(selection=selection)
    def command(context: Context) -> int:
        return finish(context, run_flow(context, name.replace("-", "_")))

    return command


def _calling_stage(name: str, text: str, *lines: str, selection: Sequence[str]) -> click.Command:
    @click.command(name, cls=Command, help=text, epilog=examples(*lines))
    @repair_options
    @budget_options
    @shared_options(selection=selection)
    def command(context: Context, retry_failed: bool, replace_lost: bool) -> int:
        return finish(context, run_flow(context, name, retry_failed=retry_failed, replace_lost=replace_lost))

    return command


ingest = _stage(
    "ingest",
    "Load the data set and check it.\n\nA task that breaks a check is put in the table `quarantine` and not evaluated; "
    "the configuration can choose otherwise for each check.",
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
    "Rewrite criteria for judges with another rubric.\n\nNeeded only where a judge's setting `rubric` is not "
    "`original`; `prbench run` does it too.",
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
select_hard = _stage(
    "select-hard",
    "Select the hard subset of each field.\n\nIt holds the tasks with the lowest mean score over the models. --judge "
    "names the judge whose verdicts count.",
    "prbench select-hard",
    "prbench select-hard --judge o4-mini",
    selection=("split", "judge", "vintage"),
)
