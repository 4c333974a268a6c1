"""Warehouses that several tests read, each filled once; and a store."""

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tasks.bundles.stores import Store
from tasks.check import check
from tasks.config.job import Job
from tasks.ingest import ingest
from tasks.run.writing import StageReport
from tests.faults.server import FaultServer
from tests.kit import Fill, copied, job_on, reading, write_jsonl
from tests.tasks.bundles.memory import memory_store
from tests.tasks.check.bad_rows import all_rows


@pytest.fixture
def server(monkeypatch) -> Iterator[FaultServer]:
    """A provider without faults, and a key for it."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with FaultServer() as running:
        yield running


@pytest.fixture
def without_addresses(monkeypatch):
    """Unset every address of models in the environment, and set a key."""
    for name in list(os.environ):
        if name.endswith(("_API_BASE", "_BASE_URL")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("OPENAI_API_KEY", "none")


@pytest.fixture
def job(shared: Job, tmp_path) -> Job:
    """The job that the tests of a module share, on a copy of its warehouse."""
    return copied(shared, tmp_path / "warehouse")


@pytest.fixture
def store() -> Iterator[Store]:
    """An empty store."""
    with memory_store() as tables:
        yield tables


@pytest.fixture(scope="module")
def published(tmp_path_factory) -> Iterator[Fill]:
    """Write rows by table into a fresh warehouse, publish, and read, until the end of the
    module.
    """
    with ExitStack() as readers:
        yield lambda *parts: readers.enter_context(
            reading(tmp_path_factory.mktemp("published"), *parts)
        )


@pytest.fixture(scope="session")
def bad_rows(tmp_path_factory) -> Path:
    """A file of good rows and of rows that each break a rule (see `bad_rows.py`)."""
    return write_jsonl(tmp_path_factory.mktemp("data") / "finance.jsonl", all_rows())


@pytest.fixture(scope="session")
def ingested(bad_rows: Path, tmp_path_factory) -> Path:
    """A warehouse that holds the bad rows, not yet checked."""
    root = tmp_path_factory.mktemp("ingested")
    ingest(job_on(bad_rows, root))
    return root


@pytest.fixture
def unchecked(ingested: Path, tmp_path) -> Path:
    """A copy of the warehouse of bad rows, to check under a test's own policies."""
    return Path(shutil.copytree(ingested, tmp_path / "warehouse"))


@pytest.fixture(scope="session")
def checked(
    bad_rows: Path,
    ingested: Path,
    tmp_path_factory,
) -> tuple[Path, StageReport]:
    """The warehouse of bad rows after a check under the default policies, and the report of the
    check.
    """
    root = Path(
        shutil.copytree(ingested, tmp_path_factory.mktemp("checked") / "warehouse")
    )
    return root, check(job_on(bad_rows, root))
