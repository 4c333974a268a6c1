"""The commands `backup` and `restore`."""

from pathlib import Path

import click

from flows.cli.common.flow_runner import report_done
from flows.cli.common.help import Command, examples
from flows.cli.common.options import WAREHOUSE, Context, shared_options

_PATH = click.Path(path_type=Path)


@click.command(cls=Command, epilog=examples(
    "prbench backup /mnt/backup/prbench             only new files are copied",
    "prbench backup /mnt/backup/prbench --verify    also check earlier copies",
))  # fmt: skip
@click.argument("folder", type=_PATH)
@click.option("--verify", is_flag=True, help="Also check the files copied earlier, and replace damaged ones.")
@shared_options(place=WAREHOUSE)
def backup(context: Context, folder: Path, verify: bool) -> int:
    """Copy the warehouse to a folder.

    The copy is consistent, even if a run is writing. `prbench restore` restores it.
    """
    from tasks.maintain import backup as made

    return report_done(context, made(context.job, folder, must_verify=verify))


@click.command(cls=Command, epilog=examples("prbench restore /mnt/backup/prbench --warehouse restored/"))
@click.argument("folder", type=_PATH)
@shared_options(place=WAREHOUSE)
def restore(context: Context, folder: Path) -> int:
    """Restore a backup into an empty warehouse.

    Every file is verified before anything is written.
    """
    from tasks.maintain import restore as restored

    return report_done(context, restored(context.job, folder))
