"""The commands `backup` and `restore`."""

import click

from flows.cli.common.flow_runner import report_done
from flows.cli.common.help import Command, examples
from flows.cli.common.options import WAREHOUSE, Context, shared_options


@click.command(cls=Command, epilog=examples(
    "prbench backup /mnt/backup/prbench             only new files are copied",
    "prbench backup /mnt/backup/prbench --verify    also check earlier copies",
    "prbench backup s3://bucket/prbench             in a store",
))  # fmt: skip
@click.argument("target", metavar="FOLDER|ADDRESS")
@click.option("--verify", is_flag=True, help="Also check the files copied earlier, and replace damaged ones.")
@shared_options(place=WAREHOUSE)
def backup(context: Context, target: str, verify: bool) -> int:
    """Copy the warehouse to a folder or a store.

    The copy is consistent, even if a run is writing. `prbench restore` restores it.
    """
    from tasks.maintain import backup as made
    from tasks.stores import place

    return report_done(context, made(context.job, place(target), must_verify=verify))


@click.command(cls=Command, epilog=examples(
    "prbench restore /mnt/backup/prbench --warehouse restored/",
    "prbench restore s3://bucket/prbench --warehouse restored/",
))  # fmt: skip
@click.argument("source", metavar="FOLDER|ADDRESS")
@shared_options(place=WAREHOUSE)
def restore(context: Context, source: str) -> int:
    """Restore a backup into an empty warehouse.

    Every file is verified before anything is written.
    """
    from tasks.maintain import restore as restored
    from tasks.stores import place

    return report_done(context, restored(context.job, place(source)))
