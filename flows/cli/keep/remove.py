"""The command `remove`: deleting single responses."""

import click

from flows.cli.common.flow_runner import report_done
from flows.cli.common.help import Group, examples
from flows.cli.common.options import WAREHOUSE, Context, shared_options
from flows.cli.common.output import show_rows

_SHOWN = ["response_id", "model", "task_id", "trial", "vintage", "source", "status", "chars_alnum"]


@click.group(cls=Group, epilog=examples("prbench remove response 4f1c2a9be0d37788 --reason 'endless repetition'"))
def remove() -> None:
    """Remove single responses.

    `prbench remove COMMAND --help` lists the options.
    """


@remove.command("response", epilog=examples(
    "prbench remove response --longer-than 1000000 --dry-run",
    "prbench remove response 4f1c2a9be0d37788 --reason 'endless repetition'",
    "prbench remove response --model gpt-5-high --task t17 --trial 2",
))  # fmt: skip
@click.argument("response_ids", nargs=-1, metavar="[RESPONSE_ID]...")
@click.option("--longer-than", type=click.IntRange(min=0), metavar="N",
              help="Only responses with more than N letters and digits.")  # fmt: skip
@click.option("--reason", default="", metavar="TEXT", help="Reason, stored in the table `removals`.")
@click.option("--dry-run", is_flag=True, help="List the responses without removing any.")
@shared_options(selection=("model", "task", "trial", "vintage"), place=WAREHOUSE,
                texts={"vintage": "Only this vintage."})  # fmt: skip
def remove_response(
    context: Context, response_ids: tuple[str, ...], longer_than: int | None, reason: str, dry_run: bool
) -> int:
    """Remove responses with all their verdicts.

    A response is removed if it is one of the given ids (if any) and matches every option. This cannot be undone. The
    next run samples it again with a new call. No run may be using the warehouse.
    """
    from tasks.maintain import Choice, chosen
    from tasks.maintain import remove as removed

    given = context.arguments
    choice = Choice(response_ids, given.models, given.tasks, given.trial_numbers, given.vintage, longer_than)
    if dry_run:
        rows = chosen(context.job, choice)
        shown = [tuple(row[name] for name in _SHOWN) for row in rows]
        show_rows(context.as_json, _SHOWN, shown, if_empty="No stored response matches.")
        return 0
    return report_done(context, removed(context.job, choice, reason))
