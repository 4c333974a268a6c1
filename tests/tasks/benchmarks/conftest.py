"""Real rows, where there are any beside the checkout."""

from pathlib import Path

import pytest

from tasks.benchmarks.prbench import parse_row
from tasks.dataset.source import read_rows
from tasks.rules.records import Task
from tests.kit import SHARED_DATA


def real(name: str) -> Path:
    path = SHARED_DATA / "prbench" / name
    if not path.is_file():
        pytest.skip(f"real data are not beside the checkout: {name}")
    return path


@pytest.fixture(scope="session")
def finance_hard() -> list[Task]:
    return [parse_row(row) for row in read_rows(real("finance_hard.parquet"))]


@pytest.fixture(scope="session")
def legal_hard() -> list[Task]:
    return [parse_row(row) for row in read_rows(real("legal_hard_37.jsonl"))]
