"""The command `remove`: getting rid of single responses."""

import click

from flows.cli.common.options import Context, examples, shared_options
from flows.cli.common.output import show_json, show_rows

_SHOWN = ["response_id", "model", "task_id", "trial", "vintage", "source", "status", "chars_alnum"]


@click.group(epilog=examples("prbench remove response 4f1c2a9be0d37788 --reason 'endless repetition'"))
def remove() -> None:
    """Remove single responses."""


@remove.command("response", epilog=examples(
    "prbench remove response --longer-than 1000000 --dry-run",
    "prbench remove response 4f1c2a9be0d37788 --reason 'endless repetition'",
    "prbench remove response --model gpt-5-high --task t17 --trial 2",
))  # fmt: skip
@click.argument("response_ids", nargs=-1, metavar="[RESPONSE_ID]...")
@click.option("--task", "tasks", multiple=True, metavar="ID", help="Only this task (again for more).")
@click.option("--trial", "trial_numbers", type=click.IntRange(min=1), multiple=True, metavar="N",
              help="Only this trial (again for more).")  # fmt: skip
@click.option("--longer-than", type=click.IntRange(min=0), metavar="N", help="Only those with more letters and digits.")
@click.option("--reason", default="", metavar="TEXT", help="Why, kept in the table `removals`.")
@click.option("--dry-run", is_flag=True, help="Only list them.")
@shared_options
def remove_response(
    context: Context, response_ids: tuple[str, ...], longer_than: int | None, reason: str, dry_run: bool
) -> int:
    """Remove responses with all their verdicts. The next run samples them again, by new calls.

    Those that fit everything given are removed; there is no way back. Nothing else may be at work on the warehouse.
    """
    from tasks.maintain.removal import Choice, chosen
    from tasks.maintain.removal import remove as removed

    asked = context.asked
    choice = Choice(response_ids, asked.models, asked.tasks, asked.trial_numbers, asked.vintage, longer_than)
    if dry_run:
        rows = chosen(context.job, choice)
        show_rows(context.as_json, _SHOWN, [tuple(row[name] for name in _SHOWN) for row in rows])
        return 0
    report = removed(context.job, choice, reason)
    if context.as_json:
        show_json(vars(report))
    elif not asked.is_quiet:
        click.echo(report.line)
    return 0
