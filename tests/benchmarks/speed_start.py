"""How long the command takes to say something, and which imports that costs."""

import argparse
import subprocess
import sys
import time
from pathlib import Path

from tests.benchmarks.bench import table

PRBENCH = Path(sys.executable).with_name("prbench")
HEAVY = ("litellm", "prefect", "duckdb", "polars", "pandas", "pyarrow", "great_expectations", "datasets", "pydantic")
PYTHON = "python -c pass"


def commands() -> dict[str, list[str]]:
    """What is timed, by name."""
    python = [sys.executable, "-c"]
    modules = ("flows.cli.main", "tasks.config.settings", "warehouse", "tasks.judge", "flows.stages", "litellm")
    return {
        PYTHON: [*python, "pass"],
        "prbench --help": [str(PRBENCH), "--help"],
        "prbench judge --help": [str(PRBENCH), "judge", "--help"],
        **{f"import {name}": [*python, f"import {name}"] for name in modules},
    }


def seconds(command: list[str], runs: int) -> float:
    """The median of some runs, after one that fills the caches."""
    found = []
    for _ in range(runs + 1):
        began_s = time.monotonic()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        found.append(time.monotonic() - began_s)
    return sorted(found[1:])[runs // 2]


def heavy_after(statement: str) -> str:
    """The heavy libraries that a statement brings in."""
    code = f"import sys; {statement}; print(*(name for name in {HEAVY!r} if name in sys.modules))"
    return subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.strip()


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.speed_start", description=__doc__)
    parser.add_argument("--runs", type=int, default=5, help="runs of each; the median is shown")
    asked = parser.parse_args()
    found = {name: seconds(command, asked.runs) for name, command in commands().items()}
    rows = [
        (name, f"{took_s:.2f}", f"{took_s / found[PYTHON]:.1f}",
         heavy_after(name) if name.startswith("import") else "")
        for name, took_s in found.items()
    ]  # fmt: skip
    print(table(["what", "s", "to bare Python", "heavy libraries"], rows))


if __name__ == "__main__":
    main()
