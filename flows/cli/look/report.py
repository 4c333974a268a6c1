"""The command `report`: the warehouse as a static site."""

from pathlib import Path

import click

from flows.cli.common.help import Command, examples
from flows.cli.common.options import Context, shared_options
from flows.cli.common.output import show_json


@click.command(cls=Command, epilog=examples(
    "prbench report                     to report/ in the warehouse",
    "prbench report --benchmark NAME    the report of another benchmark",
    "prbench report --out board/ --vintage all",
    "prbench report --serve             serve it on localhost until Ctrl-C",
))  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR",
              help="Folder to write to.  [default: `report.folder` in the configuration, else report/ in the "
              "warehouse]")  # fmt: skip
@click.option("--serve", "is_served", is_flag=True, help="Serve the report on localhost afterwards, until interrupted.")
@click.option("--port", type=click.IntRange(min=0, max=65535), default=8000, show_default=True, metavar="PORT",
              help="Port for --serve; 0 uses any free port.")  # fmt: skip
@shared_options(selection=("split", "model", "judge", "vintage"), texts={
    "vintage": "Only this vintage, or `all`.  [default: the latest of each model]",
})  # fmt: skip
def report(context: Context, out: Path | None, is_served: bool, port: int) -> int:
    """Write the HTML report.

    The report is a folder of pages that open without a network: leaderboards, categories, data, judges, history, and
    every verdict. It shows all stored results of the benchmark, not only those of configured models and judges;
    --split, --model, --judge and --vintage narrow it. Each benchmark has its own subfolder, and the page above them
    lists all benchmarks. Other files in the folder are left alone.
    """
    from flows.report import serve_report, write_report
    from flows.report_basis import of_all_splits

    given = context.arguments
    job = context.stored_job()
    if not given.splits:
        job = of_all_splits(job)
    written = write_report(job, out, given.vintage)
    if context.as_json:
        show_json({"index": str(written.index), "bytes": written.n_bytes})
    elif not given.is_quiet:
        click.echo(f"Report: {written.index} ({written.n_bytes / 1e6:,.1f} MB)")
    if is_served:
        serve_report(written.index, port)
    return 0
