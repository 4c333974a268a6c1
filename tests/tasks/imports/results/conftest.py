"""The samples, checked once and copied for each test, and logs of harnesses."""

import json
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tasks.config.job import Job
from tasks.imports.results.importing import import_results
from tests.kit import Row, copied, job_on, prepared
from tests.tasks.imports.results.harness_files import published

LOGS = Path(__file__).parent / "logs"


@pytest.fixture(scope="session")
def shared(tmp_path_factory) -> Job:
    """PRBench's sample; the fixture `job` is a copy of it."""
    return prepared(
        job_on("sample", tmp_path_factory.mktemp("finance") / "warehouse")
    )


@pytest.fixture(scope="session")
def health_data(tmp_path_factory) -> Job:
    folder = tmp_path_factory.mktemp("health")
    job = job_on("sample", folder / "warehouse", benchmark="healthbench")
    return prepared(job)


@pytest.fixture
def health(health_data: Job, tmp_path) -> Job:
    """HealthBench's sample in a warehouse of the test's own."""
    return copied(health_data, tmp_path / "health")


@dataclass(frozen=True)
class SideBySide:
    """A warehouse with the logs of three harnesses, and the notes of each import."""

    job: Job
    notes: dict[str, str]


@pytest.fixture(scope="session")
def side_by_side(shared: Job, tmp_path_factory) -> SideBySide:
    """The imported logs of the workload, for tests that only read."""
    folder = tmp_path_factory.mktemp("side-by-side")
    job = copied(shared, folder / "warehouse")
    notes = {
        "published": notes_of(import_results(job, [published(folder / "p.json")]))
    }
    log = unpacked("evalscope", folder)
    notes["evalscope"] = notes_of(
        import_results(job, [log], model="evalscope {model}")
    )
    logs = [LOGS / "thorough.eval", LOGS / "brief.eval"]
    notes["inspect"] = notes_of(import_results(job, logs))
    return SideBySide(job, notes)


def unpacked(name: str, folder: Path) -> Path:
    """An output folder of EvalScope."""
    with zipfile.ZipFile(LOGS / f"{name}.zip") as packed:
        packed.extractall(folder / name)
    return folder / name


def brief_log(folder: Path, edit: Callable[[Row], object] = lambda _: None) -> Path:
    """A log of Inspect `x.json` in which each sample is edited."""
    document = json.loads((LOGS / "brief.json").read_text())
    for sample in document["samples"]:
        edit(sample)
    path = folder / "x.json"
    path.write_text(json.dumps(document))
    return path


def notes_of(reports: Any) -> str:
    """The notes of an import as one text."""
    return "\n".join(note for report in reports for note in report.notes)
