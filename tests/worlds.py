"""Warehouses for tests in several folders, with their reports and a certificate."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from flows.report import write_report
from tasks.aggregate import aggregate
from tasks.certify.certifying import certify
from tasks.compare.vintages import changes
from tasks.config.job import Job
from tasks.dataset.source import with_revision
from tasks.figures.scope import Scope
from tasks.imports.responses import import_responses
from tasks.imports.verdicts import import_verdicts
from tasks.ingest import ingest
from tests.kit import few_published, job_on, row, shared_folder, written
from tests.tasks.report.browser import browsing
from tests.tasks.report.drilldown.drilled import data, drill
from tests.tasks.report.synthetic.research import research_job as research_job_in
from tests.tasks.report.synthetic.world import report_world
from warehouse import Warehouse, sample_path
from warehouse.locks import file_lock

SAMPLE = sample_path("prbench")
RESPONSES = SAMPLE.parent / "responses.jsonl"
LABELS = SAMPLE.parent / "labels.csv"


@pytest.fixture
def without_scores() -> Iterator[None]:
    """Publish no scores, in tests that read none."""
    with few_published():
        yield


@pytest.fixture
def only_leaderboard() -> Iterator[None]:
    """Publish no other scores than the leaderboard, in tests that read no others."""
    with few_published("leaderboard"):
        yield


@pytest.fixture(scope="session")
def world_job(tmp_path_factory) -> Job:
    """A job whose warehouse has everything that a report can show; tests must not write to it."""
    return built_once(shared_folder(tmp_path_factory) / "report-world", report_world)


@pytest.fixture(scope="session")
def hostile_job(tmp_path_factory) -> Job:
    """The same job with an attack in every name and text (`attacks.py`)."""
    return built_once(
        shared_folder(tmp_path_factory) / "report-hostile",
        partial(report_world, hostile=True),
    )


@pytest.fixture(scope="session")
def research_job(tmp_path_factory) -> Job:
    """A job of another benchmark, with a little PRBench in the same warehouse; tests must not write
    to it.
    """
    return built_once(
        shared_folder(tmp_path_factory) / "report-research", research_job_in
    )


def built_once(folder: Path, build: Callable[[Path], Job]) -> Job:
    """The job that `build` makes in a folder; the first process makes it, the others wait."""
    with file_lock(folder / "lock", wait=True):
        job_file = folder / "job.json"
        if not job_file.exists():
            job_file.write_text(build(folder).model_dump_json(), encoding="utf-8")
        return with_revision(Job.model_validate_json(job_file.read_bytes()))


@pytest.fixture(scope="session")
def sample_job(tmp_path_factory) -> Job:
    """The sample with the example responses and labels; tests must not write to it."""
    return built_once(shared_folder(tmp_path_factory) / "sample", _labelled_sample_in)


def _labelled_sample_in(folder: Path) -> Job:
    job = job_on("sample", folder / "warehouse")
    check = row(
        "checks",
        suite="ingest",
        table_name="rubrics",
        check_name="any",
        expectation="any",
        n_evaluated=8,
        severity="quarantine",
        success=True,
        n_failed=0,
    )
    written(job.warehouse, {"checks": [check]}, job.data.revision)
    ingest(job)
    import_responses(job, RESPONSES)
    import_verdicts(job, LABELS)
    aggregate(job)
    return job


@pytest.fixture(scope="session")
def certificate(sample_job: Job, tmp_path_factory) -> Path:
    """The certificate of the sample."""
    path = tmp_path_factory.mktemp("certificates") / "sample.zip"
    certify(sample_job, path)
    return path


@pytest.fixture(scope="session")
def world_site(world_job: Job) -> Path:
    """The report of the made-up warehouse."""
    return _site(world_job)


@pytest.fixture(scope="session")
def hostile_site(hostile_job: Job) -> Path:
    """The report of the warehouse with an attack in every text."""
    return _site(hostile_job)


@pytest.fixture(scope="session")
def research_site(research_job: Job) -> Path:
    """The report of the other benchmark, without a report of PRBench beside it."""
    return _site(research_job)


@pytest.fixture(scope="session")
def world_drilldown(world_job: Job) -> Path:
    """Only the drill-down of the made-up warehouse, with all earlier samplings to compare with."""
    folder = world_job.warehouse.parent / "drilldown"
    with file_lock(world_job.warehouse.parent / "lock", wait=True):
        if not (folder / "verdicts.html").exists():  # it is written last
            drill(world_job, folder)
    return folder


@pytest.fixture(scope="session")
def contents(world_drilldown: Path) -> dict[str, Any]:
    """The content of the drill-down's data files."""
    return data(world_drilldown)


@pytest.fixture(scope="module")
def scope(world_job: Job) -> Iterator[Scope]:
    """The scope of the world's report, with the changes since earlier nights."""
    with Warehouse(world_job.warehouse).reader() as reader:
        yield Scope(world_job, reader, None, changes(world_job))


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Headless Chromium; not for the whole session, because its thread can run no other event
    loop.
    """
    with browsing() as browser:
        yield browser


def _site(job: Job) -> Path:
    """The folder of a benchmark's report, in a report folder `site`."""
    folder = job.warehouse.parent / "site"
    with file_lock(job.warehouse.parent / "lock", wait=True):
        if not (folder / "index.html").exists():  # it is written last
            write_report(job, folder)
    return folder / job.settings.benchmark
