"""The command `report`: the warehouse as a static site."""

from pathlib import Path

import click

from flows.cli.options import Context, command
from flows.cli.output import show_json


@command("split", "model", "judge", "vintage-shown")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR",
              help="Folder to write to.  [default: `report.folder` in the configuration, else report/ in the "
              "warehouse]")  # fmt: skip
@click.option("--serve", "is_served", is_flag=True, help="Serve the report on localhost afterwards, until interrupted.")
@click.option("--live", "is_live", is_flag=True,
              help="With --serve: open a page that follows runs in progress. The report is not written first while a "
              "run is in progress.")  # fmt: skip
@click.option("--port", type=click.IntRange(min=0, max=65535), default=8000, show_default=True, metavar="PORT",
              help="Port for --serve; 0 uses any free port.")  # fmt: skip
def report(context: Context, out: Path | None, is_served: bool, is_live: bool, port: int) -> int:
    """Write the HTML report.

    The report is a folder of pages that open without a network: leaderboards, categories, data, judges, history, and
    every verdict. It shows all stored results of the benchmark, not only those of configured models and judges;
    --split, --model, --judge and --vintage narrow it. Each benchmark has its own subfolder, and the page above them
    lists all benchmarks. Other files in the folder are left alone. With --serve, the page Compare compares two models,
    vintages (such as two nights), runs or judges, on the configured splits as `prbench diff` does.

    Examples:
      prbench report                     to report/ in the warehouse
      prbench report --benchmark NAME    the report of another benchmark
      prbench report --out board/ --vintage all
      prbench report --serve             serve it on localhost until Ctrl-C
      prbench report --serve --live      follow a run in progress in the browser
    """
    from flows.report import of_all_splits, write_report
    from warehouse import Warehouse

    if is_live and not is_served:
        raise click.UsageError("--live shows a page of the local server; add --serve")
    given = context.arguments
    stored = context.stored_job()
    job = stored if given.splits else of_all_splits(stored)
    index = (out or job.report_folder) / job.settings.benchmark / "index.html"
    warehouse = Warehouse(job.warehouse)
    # A run in progress writes the report at its end.
    if is_live and (warehouse.living_runs() or not warehouse.database.exists()):
        if context.as_json:
            show_json({"index": str(index), "bytes": None})
    else:
        written = write_report(job, out, given.vintage)
        if context.as_json:
            show_json({"index": str(written.index), "bytes": written.n_bytes})
        elif not given.is_quiet:
            click.echo(f"Report: {written.index} ({written.n_bytes / 1e6:,.1f} MB)")
    if is_served:
        from flows.report_server.server import serve_report

        # Compare and the ranking so far are about the configured splits, as `prbench diff` and `leaderboard` are.
        serve_report(stored, index, port, is_live=is_live)
    return 0
