"""The command `benchmarks`: all benchmarks, and what each one declares."""

from typing import TYPE_CHECKING, Any

import click

from flows.cli.common.help import Command, examples
from flows.cli.common.options import SHOWS, Context, shared_options
from flows.cli.common.output import in_words, show_json
from flows.cli.common.tables import show_table

if TYPE_CHECKING:
    from tasks.benchmarks.base import Benchmark

_RANKS = "*"


@click.command(cls=Command, epilog=examples(
    "prbench benchmarks",
    "prbench benchmarks prbench --json",
    "prbench run --benchmark NAME",
    "PRBENCH_BENCHMARKS=$PWD/mine prbench benchmarks    include your own",
))  # fmt: skip
@click.argument("name", required=False)
@shared_options(place=(), output=SHOWS)
def benchmarks(context: Context, name: str | None) -> int:
    """List the benchmarks.

    With a NAME, show what that benchmark declares: checks, gradings, scores, weight classes and breakdowns.

    A benchmark is one Python module; tasks/benchmarks/README.md describes how to write one. The environment variable
    PRBENCH_BENCHMARKS lists folders with more benchmarks, as absolute paths.
    """
    from tasks.benchmarks import benchmark_names, load_benchmark

    if name is not None:
        _show_one(context, load_benchmark(name))
        return 0
    found = [_summary(load_benchmark(each)) for each in benchmark_names()]
    if context.as_json:
        show_json(found)
        return 0
    rows = [{**each, "scores": [f"{s}{_RANKS * (s == each['ranks'])}" for s in each["scores"]]} for each in found]
    columns = [column for column in found[0] if column != "ranks"]
    show_table(in_words(columns), [[row[column] for column in columns] for row in rows], is_cut=False)
    click.echo(f"The first grading is the default. Models are ranked by the score marked {_RANKS}.")
    return 0


def _summary(benchmark: "Benchmark") -> dict[str, Any]:
    from tasks.dataset.source import sample_of

    return {
        "benchmark": benchmark.name,
        "title": benchmark.title,
        "gradings": list(benchmark.gradings),
        "scores": [score.score_name for score in benchmark.scores],
        "ranks": benchmark.primary_score.score_name,
        "checks": len(benchmark.invariants),
        "hub": benchmark.default_dataset_id,
        "sample": sample_of(benchmark.name) is not None,
    }


def _show_one(context: Context, benchmark: "Benchmark") -> None:
    from flows.cli.look.benchmark_details import declared, title_of

    details = declared(benchmark)
    if context.as_json:
        show_json(details)
        return
    click.echo(f"{benchmark.title}\n")
    for key, value in details.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            show_table(
                in_words(list(value[0])), [list(row.values()) for row in value], title=title_of(key), is_cut=False
            )
        elif value not in (None, []):
            click.echo(f"{title_of(key)}: {', '.join(value) if isinstance(value, list) else value}")
