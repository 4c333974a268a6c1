"""What tests of exports share."""

import shutil
from pathlib import Path

import pytest

from tasks.config.job import Job


@pytest.fixture
def job(shared: Job, tmp_path: Path) -> Job:
    """A job on a copy of the warehouse that the tests of a module share."""
    return shared.model_copy(update={"warehouse": Path(shutil.copytree(shared.warehouse, tmp_path / "warehouse"))})
