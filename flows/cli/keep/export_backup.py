"""The commands that keep a warehouse: exporting it, sheets for human graders, backup and restore."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from flows.cli.common.options import Context, examples, shared_options
from flows.cli.common.output import show_json

if TYPE_CHECKING:
    from tasks.run.stage_report import StageReport

_PATH = click.Path(path_type=Path)
_TABLES = "tables"


class _FolderOrCommand(click.Group):
    """A group whose first argument may also be a folder: what is not one of its commands goes to `tables`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            args = [_TABLES, *args]
        return super().parse_args(ctx, args)


@click.group(cls=_FolderOrCommand, epilog=examples(
    "prbench export shared/                             everything, for another warehouse",
    "prbench export board/ --table leaderboard --table verdict_details",
    "prbench export labelling sheet.csv -n 200 --model gpt-5-high",
))  # fmt: skip
def export() -> None:
    """Export tables to a folder, or make a sheet for human graders.

    `prbench export FOLDER` is short for `prbench export tables FOLDER`.
    """


@export.command(_TABLES, epilog=examples(
    "prbench export shared/", "prbench export tables board/ --table leaderboard",
))  # fmt: skip
@click.argument("folder", type=_PATH)
@click.option("--table", "tables", multiple=True, metavar="NAME", help="Only this table or view (again for more).")
@shared_options
def export_tables(context: Context, folder: Path, tables: tuple[str, ...]) -> int:
    """Write tables as Parquet files with a manifest, which `prbench import warehouse` reads.

    With --benchmark only rows of that benchmark, of tables that tell it.
    """
    from tasks.exports import export_tables as written

    return _told(context, written(context.job, folder, tables, context.asked.benchmark))


@export.command("labelling", epilog=examples(
    "prbench export labelling sheet.csv -n 200",
    "prbench export labelling sheet.csv --night 2026-11-22    that night's answers, of models sampled nightly",
    "prbench import verdicts sheet.csv --skip-empty",
))  # fmt: skip
@click.argument("file", type=_PATH)
@click.option("-n", "n_rows", type=click.IntRange(min=1), default=200, show_default=True, metavar="N",
              help="Rows, at least: a response comes with all its criteria.")  # fmt: skip
@click.option("--seed", type=int, default=0, show_default=True, metavar="N", help="Another number, another sample.")
@shared_options
def export_labelling(context: Context, file: Path, n_rows: int, seed: int) -> int:
    """Write a sheet for human graders (CSV), which `prbench import verdicts` reads back.

    Each row says in `vintage` which sampling of the model it shows: the one of --vintage or --night.
    """
    from tasks.exports import export_labelling as written

    return _told(context, written(context.job, file, n_rows=n_rows, seed=seed))


@click.command(epilog=examples(
    "prbench backup /mnt/backup/prbench             again: only what is new is copied",
    "prbench backup /mnt/backup/prbench --verify    also reads all that was copied before",
))  # fmt: skip
@click.argument("folder", type=_PATH)
@click.option("--verify", is_flag=True, help="Read earlier copies too, and renew those that are damaged.")
@shared_options
def backup(context: Context, folder: Path, verify: bool) -> int:
    """Copy the warehouse to a folder, consistently, while runs go on."""
    from tasks.maintain.backup import backup as made

    return _told(context, made(context.job, folder, must_verify=verify))


@click.command(epilog=examples("prbench restore /mnt/backup/prbench --warehouse restored/"))
@click.argument("folder", type=_PATH)
@shared_options
def restore(context: Context, folder: Path) -> int:
    """Bring a backup into an empty warehouse; every file is verified first."""
    from tasks.maintain.backup import restore as restored

    return _told(context, restored(context.job, folder))


def _told(context: Context, report: "StageReport") -> int:
    """Show what was done; none of this is a run, so none of it stands in `runs`."""
    if context.as_json:
        show_json(vars(report))
    elif not context.asked.is_quiet:
        click.echo(report.line)
    for warning in report.warnings:
        click.echo(warning, err=True)
    return 0


KEEPING_COMMANDS = (export, backup, restore)
