"""The command `publish`."""

import click

from flows.cli.common.flow_runner import report_done
from flows.cli.common.help import Command, examples
from flows.cli.common.options import WAREHOUSE, Context, shared_options


@click.command(cls=Command, epilog=examples(
    "prbench publish s3://bucket/results",
    "prbench publish s3://bucket/results --keep 30    delete older publications",
    "prbench publish /mnt/shared/results",
))  # fmt: skip
@click.argument("target", metavar="FOLDER|ADDRESS")
@click.option("--keep", "n_kept", type=click.IntRange(min=1), metavar="N",
              help="Keep only the last N publications.  [default: all]")  # fmt: skip
@shared_options(place=WAREHOUSE)
def publish(context: Context, target: str, n_kept: int | None) -> int:
    """Publish database, report and tables to a folder or a store.

    Each publication has a folder of its own, which never changes: the database, the report, and each table as Parquet
    files. `current.json` names the latest one and is replaced last. An unchanged state is not published again. The
    address of a store is one that fsspec knows, such as s3://bucket/prefix or gs://bucket/prefix.
    """
    from tasks.exports import publish as published
    from tasks.stores import place

    return report_done(context, published(context.job, place(target), n_kept=n_kept))
