"""The command `benchmarks`: which there are, and what each declares."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from flows.cli.common.options import Context, examples, shared_options
from flows.cli.common.output import show_json, show_table

if TYPE_CHECKING:
    from tasks.benchmarks.base import Benchmark
    from tasks.rules.records import ScoreDefinition

Records = list[dict[str, Any]]
_RANKS = "*"


@click.command(epilog=examples(
    "prbench benchmarks", "prbench benchmarks prbench", "prbench benchmarks prbench --json",
    "prbench run --benchmark NAME      on its sample, where no configuration names another data set",
    "PRBENCH_BENCHMARKS=$PWD/mine prbench benchmarks      with those of a folder of yours",
))  # fmt: skip
@click.argument("name", required=False)
@shared_options
def benchmarks(context: Context, name: str | None) -> int:
    """List the benchmarks; with a NAME, all that it declares: checks, gradings, scores, weight classes, cuts.

    A benchmark is one module (tasks/benchmarks/README.md says how to add one). Those of other folders are found where
    the environment variable PRBENCH_BENCHMARKS names the folders, by their whole paths.
    """
    from tasks.benchmarks import benchmark_names, load_benchmark

    chosen = name or context.asked.benchmark
    if chosen is not None:
        _show_one(context, load_benchmark(chosen))
        return 0
    found = [_summary(load_benchmark(each)) for each in benchmark_names()]
    if context.as_json:
        show_json(found)
        return 0
    rows = [{**each, "scores": [f"{s}{_RANKS * (s == each['ranks'])}" for s in each["scores"]]} for each in found]
    columns = [column for column in found[0] if column != "ranks"]
    show_table(columns, [[row[column] for column in columns] for row in rows], is_cut=False)
    click.echo(f"The first grading is the default, and {_RANKS} marks the score that ranks; with a NAME, all of it.")
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
    told = _all_of(benchmark)
    if context.as_json:
        show_json(told)
        return
    click.echo(f"{benchmark.title}\n")
    for key, value in told.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            show_table(list(value[0]), [list(row.values()) for row in value], title=_title(key), is_cut=False)
        elif value not in (None, []):
            click.echo(f"{_title(key)}: {', '.join(value) if isinstance(value, list) else value}")


def _all_of(benchmark: "Benchmark") -> dict[str, Any]:
    """All that a benchmark declares, by what it is, for people and machines alike."""
    from tasks.benchmarks import folder_of
    from tasks.dataset.source import sample_of

    sample = sample_of(benchmark.name)
    return {
        "benchmark": benchmark.name,
        "module": str(folder_of(benchmark.name) / f"{benchmark.name}.py"),
        "hub": benchmark.default_dataset_id,
        "sample": None if sample is None else str(sample),
        "columns": list(benchmark.columns),
        "checks": _checks(benchmark),
        "gradings": _gradings(benchmark),
        "scores": [
            {"score": score.score_name, "ranks": score.is_primary, "formula": in_words(score)}
            for score in benchmark.scores
        ],
        "weight_classes": [
            {"class": name, "lowest": low, "highest": high} for name, (low, high) in benchmark.severities.items()
        ],
        "cuts": [{"cut": kind, "title": title} for kind, title in benchmark.cuts.items()],
        "labels": _labels(benchmark),
        "hard_splits": [{"field": field, "split": split} for field, split in benchmark.hard_splits.items()],
    }


def _title(key: str) -> str:
    return key.replace("_", " ")


def _checks(benchmark: "Benchmark") -> Records:
    from tasks.config.policies import default_policy, expectations_of

    return [
        {"check": each.check, "policy": default_policy(each), "meaning": each.meaning}
        for each in expectations_of(benchmark)
        if each.check in benchmark.invariants
    ]


def _gradings(benchmark: "Benchmark") -> Records:
    default = benchmark.grading
    return [
        {"grading": grading, "default": grading == default, "template": Path(template).name}
        for grading, template in benchmark.gradings.items()
    ]


def _labels(benchmark: "Benchmark") -> Records:
    """What labels of each kind may be; without a field, in every one."""
    return [
        {"field": field or None, "kind": kind, "labels": sorted(labels)}
        for field, kinds in benchmark.vocabularies.items()
        for kind, labels in kinds.items()
    ]


def in_words(score: "ScoreDefinition") -> str:
    """The formula of a score, with all that its letters mean."""
    above = _sum([(1.0, "p"), (score.numerator_negative, "N")])
    below = _sum([(score.denominator_positive, "P"), (score.denominator_negative, "N")])
    used = [meaning for meaning in _LETTERS if meaning[0] in above + below]
    clipped = "; a model's mean is at least 0" if score.clips_mean else ""
    return f"{above} / {below} with {', '.join(used)}{clipped}"


_LETTERS = ("p = sum of weight x verdict", "P = sum of positive weights", "N = sum of negative weights")


def _sum(terms: Sequence[tuple[float, str]]) -> str:
    """`(p - N)`, or `P` where nothing is added to it."""
    text = ""
    for factor, letter in terms:
        if factor:
            sign = "-" if factor < 0 else "+"
            size = "" if abs(factor) == 1 else f"{abs(factor):g} "
            text += f" {sign} {size}{letter}" if text else f"{'-' if factor < 0 else ''}{size}{letter}"
    return f"({text})" if " " in text else text
