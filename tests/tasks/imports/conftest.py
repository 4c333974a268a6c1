"""A job to import into, on a copy of the warehouse that a module has ingested."""

import shutil
from pathlib import Path

import pytest

from tasks.config.job import Job


@pytest.fixture
def job(ingested: Job, tmp_path: Path) -> Job:
    """The module's job on a copy of its warehouse, to add to."""
    copy = Path(shutil.copytree(ingested.warehouse, tmp_path / "warehouse"))
    return ingested.model_copy(update={"warehouse": copy, "is_quiet": True})
