"""Sheets as spreadsheet programs read and save them, and a small world with every outcome."""

import csv
from pathlib import Path

import pytest

from tasks.config.job import Job
from tests.tasks.exports.inspected import job_of_world

csv.field_size_limit(2**31 - 1)


def sheet_rows(path: Path) -> list[dict[str, str]]:
    """Return the rows of a sheet."""
    with path.open(encoding="utf-8-sig", newline="") as lines:
        return list(csv.DictReader(lines))


def save_sheet(path: Path, rows: list[dict[str, str]]) -> Path:
    """Write rows as a spreadsheet program would save them."""
    with path.open("w", encoding="utf-8", newline="") as lines:
        writer = csv.DictWriter(lines, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture(scope="session")
def inspected(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """The job on the world, for tests that change nothing."""
    return job_of_world(tmp_path_factory.mktemp("world"))
