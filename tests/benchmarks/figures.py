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

    def as_kept(self) -> dict[str, Any]:
        """Return the object that `figures.json` keeps."""
        return {
            "ratio": round(self.ratio, 3),
            "baseline": self.baseline,
            "value": round(self.value, 3),
            "baseline_value": round(self.baseline_value, 3),
            "unit": self.unit,
        }


def parse_arguments(
    description: str | None,
    *,
    keeps: bool = False,
    **options: Any,
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
        default, help_text = option if isinstance(option, tuple) else (option, None)
        details = {"type": type(default), "default": default}
        if isinstance(default, type):
            details = {"type": default}
        elif isinstance(default, list):
            details |= {"type": type(default[0]), "nargs": "+"}
            if isinstance(default[0], str):
                details["choices"] = default
        parser.add_argument(f"--{name.replace('_', '-')}", help=help_text, **details)
    return parser.parse_args()


def print_markdown(header: Sequence[object], rows: Iterable[Sequence[object]]):
    """Print a table in Markdown, each line as soon as it is known."""
    for cells in (header, ["---"] * len(header)):
        print(f"| {' | '.join(map(str, cells))} |")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |", flush=True)


def report(
    benchmark: str,
    figures: Sequence[Figure],
    *,
    must_keep: bool,
    path: Path = KEPT,
) -> str:
    """Return lines on the changes since the kept figures; with `must_keep`, keep the new figures.

    Args:
        benchmark: name of the benchmark with its size: only runs of the same name are compared.
    """
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    lines = comparison_lines(figures, kept.get(benchmark, {}))
    if must_keep:
        kept[benchmark] = {figure.name: figure.as_kept() for figure in figures}
        path.write_text(
            json.dumps(kept, indent=2, sort_keys=True) + "\n", encoding="utf-8"
        )
        lines.append(f"kept in {path.name}")
    return "\n".join([f"{benchmark}, beside the figures that are kept:", *lines])


def comparison_lines(figures: Sequence[Figure], kept: Kept) -> list[str]:
    """Return a line for each figure, and for each kept one that was not measured."""
    lines = []
    for figure in figures:
        change = change_text(figure, kept.get(figure.name))
        cost = f"{figure.value:.3g} {figure.unit}"
        lines.append(
            f"{figure.name}: {figure.ratio:.2f} of {figure.baseline} ({cost}), {change}"
        )
    measured = {figure.name for figure in figures}
    for name in sorted(kept.keys() - measured):
        lines.append(f"{name}: was {kept[name]['ratio']:.2f}, not measured now")
    return lines


def change_text(figure: Figure, kept: Mapping[str, Any] | None) -> str:
    """Return the change since a kept figure, if it was measured beside the same baseline."""
    if kept is None or (kept["baseline"], kept["unit"]) != (
        figure.baseline,
        figure.unit,
    ):
        return "nothing kept to compare with"
    change = figure.ratio / kept["ratio"] - 1.0
    text = f"{abs(change):.0%} {'more' if change > 0 else 'less'}"
    if abs(change) <= NOISE:
        text = f"no change beyond {NOISE:.0%}"
    return f"was {kept['ratio']:.2f}: {text}"
