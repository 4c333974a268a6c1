"""The command `import`: bringing in what was made elsewhere, and taking it back."""

from pathlib import Path

import click

from flows.cli.common.flow_runner import finish
from flows.cli.common.options import Context, examples, shared_options
from tasks.rules.verdict import GRADINGS

_FILE = click.Path(path_type=Path)
_AS = click.option("--as", "as_model", metavar="LABEL", help="The model, where the rows name none.")
_TASK = click.option("--task", metavar="ID", help="The task, where the rows name none.")
_SKIP_UNKNOWN = click.option(
    "--skip-unknown", is_flag=True, help="Leave out rows on tasks and criteria that the data set does not have."
)


@click.group("import", invoke_without_command=True, epilog=examples(
    "prbench import responses answers.jsonl", "prbench import verdicts labels.csv",
    "prbench import warehouse exported/", "prbench import --retract 4f1c2a9be0d37788",
))  # fmt: skip
@click.option("--retract", metavar="BATCH", help="Take an import back; its batch stands in `import_batch`.")
@shared_options
def import_(context: Context, retract: str | None) -> int:
    """Bring in responses, verdicts or a whole warehouse made elsewhere, or take them back."""
    here = click.get_current_context()
    if here.invoked_subcommand is not None:
        if retract is not None:
            raise click.UsageError("--retract takes a batch back and brings nothing in; leave one of the two out")
        return 0
    if retract is None:
        click.echo(here.get_help())
        return 0
    from flows.execution import execute
    from tasks.imports import retract as take_back

    job = context.job
    return finish(context, execute(job, lambda: [take_back(job, retract)]))


@import_.command("responses", epilog=examples(
    "prbench import responses answers.jsonl", "prbench import responses answers.json --as gpt-5-high",
    "prbench import responses manifest.csv          rows with a column `file`",
    "prbench import responses reports/              reports/MODEL/TASK.pdf",
    "prbench import responses reports/ --pattern '{task}/{model} run {trial}'",
    "prbench import responses reports/ --as gpt-5-high --skip-other",
))  # fmt: skip
@click.argument("source", type=_FILE, metavar="FILE|FOLDER")
@_AS
@click.option("--pattern", metavar="NAMES", help="How a folder's files are named, without their endings: {task}, "
              "{model}, {trial}, {vintage}.  [default: {model}/{task}, with --as {task}]")  # fmt: skip
@click.option("--skip-other", is_flag=True, help="Leave out a folder's other files, and say how many there are.")
@_SKIP_UNKNOWN
@shared_options
def import_responses(
    context: Context, source: Path, as_model: str | None, pattern: str | None, skip_other: bool, skip_unknown: bool
) -> int:
    """Rows `task, model, response[, trial, vintage]` (JSONL, CSV, Parquet), or one JSON object `{task: response}`.

    A row may name a document in `file` instead, found from the row's own file. A folder holds documents only, whose
    names say which task and model each is of. Documents are Markdown and text in UTF-8 (taken as they are), PDF and
    DOCX (turned into Markdown).
    """
    from flows.execution import execute
    from tasks.imports import import_responses as bring_in

    job, leaving_out = context.job, {"skip_other": skip_other, "skip_unknown": skip_unknown}
    return finish(context, execute(job, lambda: [bring_in(job, source, as_model, pattern=pattern, **leaving_out)]))


@import_.command("verdicts", epilog=examples(
    "prbench import verdicts labels.csv", "prbench import verdicts sheet.csv --skip-empty    a sheet half filled in",
    "prbench import verdicts compiled.csv --by people-2 --grading binary",
))  # fmt: skip
@click.argument("file", type=_FILE)
@_AS
@_TASK
@click.option("--by", "by_judge", metavar="LABEL", help="Who decided, where the rows name nobody.  [default: imported]")
@click.option("--grading", type=click.Choice(GRADINGS), help="In how many steps, where the rows do not say it.  "
              "[default: binary for true and false, else the benchmark's]")  # fmt: skip
@click.option("--skip-empty", is_flag=True, help="Leave out rows without a decision.")
@_SKIP_UNKNOWN
@shared_options
def import_verdicts(
    context: Context, file: Path, as_model: str | None, task: str | None, by_judge: str | None, grading: str | None,
    skip_empty: bool, skip_unknown: bool,
) -> int:  # fmt: skip
    """Rows `task, model, criterion, criteria_met` `[, judge, trial, vintage, ...]`, or the benchmark's own graded rows.

    The decision is `criteria_met`, `value` (0, 0.5, 1) or `verdict` (in words); `criterion` is a criterion's id, or its
    text word for word; of several with the same text `category` tells one, or `occurrence` (1 for the first). Further
    columns are `judge_trial`, `grading` and `explanation`.

    A verdict is on the answer of the row's vintage, or of --vintage (or --night) where the row names none. A row whose
    `response` is another text than the stored answer is refused.
    """
    from flows.execution import execute
    from tasks.imports import import_verdicts as bring_in

    job = context.job
    return finish(context, execute(job, lambda: [bring_in(
        job, file, as_model, task=task, judge=by_judge, grading=grading, skip_empty=skip_empty,
        skip_unknown=skip_unknown,
    )]))  # fmt: skip


@import_.command("warehouse", epilog=examples("prbench import warehouse exported/"))
@click.argument("folder", type=_FILE)
@shared_options
def import_warehouse(context: Context, folder: Path) -> int:
    """What `prbench export` wrote, from another warehouse; rows that are here stay as they are."""
    if context.asked.benchmark is not None:
        raise click.UsageError("--benchmark: an export is taken in whole; narrow it where it is made, by `export`")
    from flows.execution import execute
    from tasks.exports import import_tables

    job = context.job
    return finish(context, execute(job, lambda: [import_tables(job, folder)]))
