"""The command `report`: the warehouse as a static site."""

from pathlib import Path

import click

from flows.cli.common.options import Context, examples, shared_options
from flows.cli.common.output import show_json
from flows.run.arguments import Asked
from tasks.rules.errors import UsageError

_VAIN = {
    "trials": "a report shows every trial that is stored; leave it out",
    "limit": "a report shows every task that is stored; leave it out, or narrow the report with --split",
    "night": "a report shows the latest sampling of each model; name another one with --vintage",
}
"""Shared options that say what is to be evaluated, and what to do instead."""


@click.command(epilog=examples(
    "prbench report                              into report/ in the warehouse, in the benchmark's folder",
    "prbench report --benchmark NAME             of another benchmark, beside it",
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

    It shows what is published: leaderboards, categories, data, judges, history, and every single verdict. Each
    benchmark has a folder of its own, which is renewed where something changed; the page above lists all benchmarks.
    What else is in it stays. A report is of all that is stored, whatever the configuration evaluates; --model, --judge,
    --split and --vintage narrow it.
    """
    from flows.report import of_all_splits, serve_report, write_report

    _refuse_vain(context.asked)
    job = context.job if context.asked.splits else of_all_splits(context.job)
    written = write_report(job, out, context.asked.vintage)
    if context.as_json:
        show_json({"index": str(written.index), "bytes": written.n_bytes})
    else:
        click.echo(f"Report: {written.index} ({written.n_bytes / 1e6:,.1f} MB)")
    if is_served:
        serve_report(written.index, port)
    return 0


def _refuse_vain(asked: Asked) -> None:
    """Refuse what would change nothing of a report.

    Raises:
        UsageError: an option was given that says what to evaluate, and not what to show.
    """
    for name, instead in _VAIN.items():
        if getattr(asked, name) is not None:
            raise UsageError(f"--{name}: {instead}")
