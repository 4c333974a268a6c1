"""Compare the figures of a benchmark with the kept figures of an earlier run.

Ratios to a baseline of the same run are compared: seconds differ from machine to machine and from
hour to hour.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

KEPT = Path(__file__).with_name("figures.json")
"""The kept figures: benchmark -> figure -> its ratio, its baseline, and the measured values."""
NOISE = 0.1
"""The relative change of a ratio that is still noise."""

Kept = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class Figure:
    """A measured figure with a baseline of the same run, in the same unit; less is better.

    Attributes:
        name: what was measured.
        value: its cost.
        baseline: what it is compared with.
        baseline_value: the cost of the baseline.
        unit: of both values.
    """

    name: str
    value: float
    baseline: str
    baseline_value: float
    unit: str = "CPU s"

    @property
    def ratio(self) -> float:
        """The figure that is compared."""
        return self.value / self.baseline_value


def arguments(
    description: str | None, *, keeps: bool = False, **options: Any
) -> argparse.Namespace:
    """Parse the arguments of a benchmark module.

    Args:
        keeps: whether the module has the option `--keep`.
        options: default, or default and help, of each option. A list takes several values (for
            texts, a choice of these), and a type means an option without a default.
    """
    program = f"python -m tests.benchmarks.{Path(sys.argv[0]).stem}"
    parser = argparse.ArgumentParser(prog=program, description=description)
    if keeps:
        parser.add_argument(
            "--keep",
            action="store_true",
            help=f"keep the figures in {KEPT.name} to compare with them",
        )
    for name, option in options.items():
        default, text = option if isinstance(option, tuple) else (option, None)
        first = default[0] if isinstance(default, list) else default
        how: dict[str, Any] = {"type": type(first), "default": default}
        if isinstance(default, list):
            how |= {"nargs": "+", "choices": default if isinstance(first, str) else None}
        elif isinstance(default, type):
            how = {"type": default}
        parser.add_argument(f"--{name.replace('_', '-')}", help=text, **how)
    return parser.parse_args()


def markdown(header: Sequence[object], rows: Iterable[Sequence[object]]) -> None:
    """Print a table in Markdown, each line as soon as it is known."""
    for cells in (header, ["---"] * len(header)):
        print(f"| {' | '.join(map(str, cells))} |")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |", flush=True)


def report(benchmark: str, figures: Sequence[Figure], *, must_keep: bool, path: Path = KEPT) -> str:
    """Return lines on the changes since the kept figures; with `must_keep`, keep the new figures.

    Args:
        benchmark: name of the benchmark with its size: only runs of the same name are compared.
    """
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    lines = compared(figures, kept.get(benchmark, {}))
    if must_keep:
        kept[benchmark] = {
            each.name: {
                "ratio": round(each.ratio, 3),
                "baseline": each.baseline,
                "value": round(each.value, 3),
                "baseline_value": round(each.baseline_value, 3),
                "unit": each.unit,
            }
            for each in figures
        }
        path.write_text(json.dumps(kept, indent=2, sort_keys=True) + "\n", encoding="utf-8")
        lines.append(f"kept in {path.name}")
    return "\n".join([f"{benchmark}, beside the figures that are kept:", *lines])


def compared(figures: Sequence[Figure], kept: Kept) -> list[str]:
    """A line for each figure, and for each kept one that was not measured."""
    lines = []
    for figure in figures:
        was = kept.get(figure.name)
        change_text = "nothing kept to compare with"
        if was is not None and was["baseline"] == figure.baseline and was["unit"] == figure.unit:
            change = figure.ratio / was["ratio"] - 1.0
            how = f"{abs(change):.0%} {'more' if change > 0 else 'less'}"
            change_text = (
                f"was {was['ratio']:.2f}:"
                f" {f'no change beyond {NOISE:.0%}' if abs(change) <= NOISE else how}"
            )
        now = (
            f"{figure.name}: {figure.ratio:.2f} of {figure.baseline} ({figure.value:.3g}"
            f" {figure.unit})"
        )
        lines.append(f"{now}, {change_text}")
    missing = sorted(kept.keys() - {figure.name for figure in figures})
    return lines + [f"{name}: was {kept[name]['ratio']:.2f}, not measured now" for name in missing]
