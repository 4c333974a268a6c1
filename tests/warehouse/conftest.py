"""Processes that look at a warehouse from outside."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from warehouse import Warehouse

ROOT = Path(__file__).parents[2]
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "warehouse")


@pytest.fixture
def start() -> Iterator[Start]:
    """Run a piece of Python in a process of its own, with the checkout on its path; it is ended with the test."""
    started: list[subprocess.Popen[str]] = []

    def run(script: str, *arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", script, *map(str, arguments)]
        started.append(subprocess.Popen(command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE))
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()
