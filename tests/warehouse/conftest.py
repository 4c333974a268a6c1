"""Processes that use a warehouse from outside, and faster publishing."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.warehouse.parts import without_models
from warehouse import Warehouse
from warehouse.build import build

ROOT = Path(__file__).parents[2]
Start = Callable[..., subprocess.Popen[str]]
SLOW_EXAMPLES = settings(
    suppress_health_check=[HealthCheck.too_slow],
    phases=set(Phase) - {Phase.explain},
)
"""For generated histories, each of which publishes several times."""


@pytest.fixture
def warehouse(tmp_path) -> Warehouse:
    return Warehouse(tmp_path / "warehouse")


@pytest.fixture
def quick(monkeypatch):
    """Publish only a few stored tables."""
    without_models(monkeypatch)


@pytest.fixture
def seen(monkeypatch, quick: None) -> list[bool]:
    """For each build of the database: whether it began with a copy of the last one; without
    models.
    """
    return watched(monkeypatch)


def watched(monkeypatch) -> list[bool]:
    copies = []

    def build_and_note(current_parts, building, parts):
        copies.append(building.exists())
        return build(current_parts, building, parts)

    monkeypatch.setattr("warehouse.publish.build", build_and_note)
    return copies


@pytest.fixture
def start() -> Iterator[Start]:
    """Run Python code in a process of its own, with the checkout on its path; it is killed at the
    end of the test.
    """
    processes = []

    def run(script, *arguments):
        command = [
            sys.executable,
            "-c",
            script,
            *map(str, arguments),
        ]
        pipe = subprocess.PIPE
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            text=True,
            stdin=pipe,
            stdout=pipe,
        )
        processes.append(process)
        return process

    yield run
    for process in processes:
        process.kill()
        process.communicate()
