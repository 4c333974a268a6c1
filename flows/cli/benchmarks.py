"""The command `benchmarks`: all benchmarks, and what each one declares."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flows.cli.figures import present
from flows.cli.options import SHOWS, Context, command
from flows.cli.output import show_json, show_table

if TYPE_CHECKING:
    from tasks.benchmarks.base import Benchmark
    from tasks.rules.records import ScoreDefinition


@command(place=(), output=SHOWS)
@click.argument("name", required=False)
def benchmarks(context: Context, name: str | None) -> int:
    """List the benchmarks.

    With a NAME, show what that benchmark declares: checks, gradings, scores, weight classes and breakdowns.

    A benchmark is one Python module; tasks/benchmarks/README.md describes how to write one. The environment variable
    PRBENCH_BENCHMARKS lists folders with more benchmarks, as absolute paths.

    Examples:
      prbench benchmarks
      prbench benchmarks prbench --json
      prbench run --benchmark NAME
      PRBENCH_BENCHMARKS=$PWD/mine prbench benchmarks    include your own
    """
    from tasks.benchmarks import load_benchmark
    from tasks.figures.shown.operations import BENCHMARKS, declared

    if name is None:
        present(context, {"": BENCHMARKS}, {"": declared(None, {})})
    else:
        _show_one(context, load_benchmark(name))
    return 0


def _show_one(context: Context, benchmark: "Benchmark") -> None:
    details = _declared(benchmark)
    if context.as_json:
        show_json(details)
        return
    click.echo(f"{benchmark.title}\n")
    for key, value in details.items():
        heading = key.replace("_", " ")
        if isinstance(value, list) and value and isinstance(value[0], dict):
            show_table(list(value[0]), [list(row.values()) for row in value], title=heading)
        elif value not in (None, []):
            click.echo(f"{heading}: {', '.join(value) if isinstance(value, list) else value}")


def _declared(benchmark: "Benchmark") -> dict[str, Any]:
    """Everything that a benchmark declares, for people and machines alike."""
    from tasks.benchmarks import folder_of
    from tasks.check import default_policy, expectations_of
    from tasks.dataset.source import sample_of

    sample = sample_of(benchmark.name)
    module = folder_of(benchmark.name) / f"{benchmark.name}.py"
    return {
        "benchmark": benchmark.name, "module": str(module), "hub": benchmark.default_dataset_id,
        "licence": benchmark.licence, "sample": None if sample is None else str(sample),
        "columns": list(benchmark.columns),
        "checks": [
            {"check": each.check, "policy": default_policy(each), "meaning": each.meaning}
            for each in expectations_of(benchmark) if each.check in benchmark.invariants
        ],
        "gradings": [
            {"grading": grading, "default": grading == benchmark.grading, "template": Path(template).name}
            for grading, template in benchmark.gradings.items()
        ],
        "scores": [
            {"score": score.score_name, "ranks": score.is_primary, "formula": _formula(score)}
            for score in benchmark.scores
        ],
        "weight_classes": [
            {"class": name, "lowest": low, "highest": high} for name, (low, high) in benchmark.severities.items()
        ],
        "breakdowns": [{"breakdown": kind, "title": title} for kind, title in benchmark.own_breakdowns.items()],
        # Without a field, labels are for every one.
        "labels": [
            {"field": field or None, "kind": kind, "labels": sorted(labels)}
            for field, kinds in benchmark.vocabularies.items() for kind, labels in kinds.items()
        ],
        "hard_splits": [{"field": field, "split": split} for field, split in benchmark.hard_splits.items()],
    }  # fmt: skip


def _formula(score: "ScoreDefinition") -> str:
    """The formula of a score, with the meaning of its words."""
    from tasks.figures.figure import formula

    fraction = formula(score)
    used = [meaning for meaning in _WORDS if meaning.partition(" ")[0] in fraction]
    clipped = "; a model's mean is at least 0" if score.clips_mean else ""
    return f"{fraction} with {', '.join(used)}{clipped}"


_WORDS = (
    "points = sum of weight x verdict", "positive = sum of positive weights", "negative = sum of negative weights",
)  # fmt: skip
