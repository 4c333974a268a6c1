"""Everything that a benchmark declares, as lists and tables."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tasks.benchmarks.base import Benchmark
    from tasks.rules.records import ScoreDefinition

Records = list[dict[str, Any]]


def declared(benchmark: "Benchmark") -> dict[str, Any]:
    """Everything that a benchmark declares, for people and machines alike."""
    from tasks.benchmarks import folder_of
    from tasks.dataset.source import sample_of

    sample = sample_of(benchmark.name)
    return {
        "benchmark": benchmark.name,
        "module": str(folder_of(benchmark.name) / f"{benchmark.name}.py"),
        "hub": benchmark.default_dataset_id,
        "licence": benchmark.licence,
        "sample": None if sample is None else str(sample),
        "columns": list(benchmark.columns),
        "checks": _checks(benchmark),
        "gradings": _gradings(benchmark),
        "scores": [
            {"score": score.score_name, "ranks": score.is_primary, "formula": formula(score)}
            for score in benchmark.scores
        ],
        "weight_classes": [
            {"class": name, "lowest": low, "highest": high} for name, (low, high) in benchmark.severities.items()
        ],
        "breakdowns": [{"breakdown": kind, "title": title} for kind, title in benchmark.own_breakdowns.items()],
        "labels": _labels(benchmark),
        "hard_splits": [{"field": field, "split": split} for field, split in benchmark.hard_splits.items()],
    }


def title_of(key: str) -> str:
    """A key as a heading."""
    return key.replace("_", " ")


def _checks(benchmark: "Benchmark") -> Records:
    from tasks.check import default_policy, expectations_of

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
    """The labels of each kind; without a field, they are for every one."""
    return [
        {"field": field or None, "kind": kind, "labels": sorted(labels)}
        for field, kinds in benchmark.vocabularies.items()
        for kind, labels in kinds.items()
    ]


def formula(score: "ScoreDefinition") -> str:
    """The formula of a score, with the meaning of its letters."""
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
