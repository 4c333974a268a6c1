"""The command `report`: the warehouse as a static site."""

from pathlib import Path

import click

from flows.options import Context, examples, shared_options
from flows.output import show_json


@click.command(epilog=examples(
    "prbench report                              into report/ in the warehouse",
    "prbench report --out board/ --vintage all   all samplings, into a folder of its own",
    "prbench report --serve                      and open it on localhost until Ctrl-C",
))  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR",
              help="Where to.  [default: report/ in the warehouse, or what the configuration says]")  # fmt: skip
@click.option("--serve", "is_served", is_flag=True, help="Serve it on localhost afterwards, until interrupted.")
@click.option("--port", type=click.IntRange(min=0, max=65535), default=8000, show_default=True,
              help="Where to serve it; 0: any that is free.")  # fmt: skip
@shared_options
def report(context: Context, out: Path | None, is_served: bool, port: int) -> int:
    """Write the report: a folder of pages that open from disk, without a network.

    It shows what is published: leaderboards, categories, data, judges, history, and every single verdict. The folder
    is renewed where something changed; --model, --judge, --split and --vintage narrow what is shown.
    """
    from flows.reporting import serve_report, write_report

    job = context.job
    written = write_report(job, out, context.asked.vintage)
    if context.as_json:
        show_json({"index": str(written.index), "bytes": written.n_bytes})
    else:
        click.echo(f"Report: {written.index} ({written.n_bytes / 1e6:,.1f} MB)")
    if is_served:
        serve_report(written.index.parent, port)
    return 0
