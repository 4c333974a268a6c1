"""Whether a flow has work to do, by what is stored and configured."""

import shutil
from pathlib import Path

import pytest

from flows.pending import has_work
from tasks.aggregate import aggregate
from tasks.hard_subset import select_hard
from tasks.ingest import ingest
from tests.builders import job_on
from tests.tasks.hard_subset.hard_world import SIZE, TASKS, TENTHS, job_with, with_rule
from warehouse import sample_path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data set with one split."""
    folder = tmp_path / "set"
    folder.mkdir()
    shutil.copy(str(sample_path("prbench")), folder / "a.jsonl")
    return folder


def test_ingest_has_work_for_data_that_is_not_stored_and_only_then(data: Path, tmp_path: Path) -> None:
    job = job_on(data, tmp_path / "data")
    assert has_work(job, "ingest")
    ingest(job)
    assert not has_work(job, "ingest")
    assert has_work(job_on("sample", tmp_path / "data"), "ingest")


def test_ingest_has_work_for_a_new_split(data: Path, tmp_path: Path) -> None:
    job = job_on(data, tmp_path / "data")
    ingest(job)
    shutil.copy(data / "a.jsonl", data / "b.jsonl")
    assert has_work(job_on(data, tmp_path / "data"), "ingest")
    assert has_work(job_on(data, tmp_path / "data"), "evaluate")


def test_select_hard_has_work_until_what_is_configured_now_is_selected(tmp_path: Path) -> None:
    job = job_with(tmp_path, TENTHS, {"finance": TASKS})
    aggregate(job)
    assert has_work(job, "select_hard")
    select_hard(job)
    aggregate(job)
    assert not has_work(job, "select_hard")
    for changed in ({"share": {"Finance": SIZE + 1}}, {"panel": sorted(TENTHS)[:2]}, {"panel": ["unknown"]}):
        assert has_work(with_rule(job, **changed), "select_hard"), changed
