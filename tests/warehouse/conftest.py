"""Processes that use a warehouse from outside, and faster publishing."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.kit import Patch
from tests.warehouse.parts import without_models
from warehouse import Warehouse
from warehouse.build import build

ROOT = Path(__file__).parents[2]
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def warehouse(tmp_path: Path) -> Warehouse:
    return Warehouse(tmp_path / "warehouse")


@pytest.fixture
def quick(monkeypatch: Patch) -> None:
    """Publish only a few stored tables."""
    without_models(monkeypatch)


@pytest.fixture
def seen(monkeypatch: Patch, quick: None) -> list[bool]:
    """For each build of the database: whether it began with a copy of the last one; without
    models.
    """
    return watched(monkeypatch)


def watched(monkeypatch: Patch) -> list[bool]:
    copies: list[bool] = []

    def noting(standing: Any, building: Path, missing: Any) -> Any:
        copies.append(building.exists())
        return build(standing, building, missing)

    monkeypatch.setattr("warehouse.publish.build", noting)
    return copies


@pytest.fixture
def start() -> Iterator[Start]:
    """Run Python code in a process of its own, with the checkout on its path; it is killed at the
    end of the test.
    """
    started: list[subprocess.Popen[str]] = []

    def run(script: str, *arguments: object) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", script, *map(str, arguments)]
        started.append(
            subprocess.Popen(
                command,
                cwd=ROOT,
                text=True,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
            )
        )
        return started[-1]

    yield run
    for process in started:
        process.kill()
        process.communicate()
