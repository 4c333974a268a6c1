"""The revision of the data set: looked up when it is first needed, once for a job and all copies of
it.
"""

from concurrent.futures import ThreadPoolExecutor
from hashlib import sha256
from pathlib import Path
from threading import Barrier
from time import sleep

import pytest

from flows.run.arguments import Arguments
from flows.run.config import load_job
from tasks.config.job import DataRevision, Job
from tasks.ingest import ingest
from tasks.rules.errors import UsageError
from tests.kit import good_row, write_jsonl


def job_of(folder: Path, dataset: str) -> Job:
    config = folder / "night.yaml"
    config.write_text(f"dataset: {dataset}\nwarehouse: data\n")
    return load_job(Arguments(config=config))


def revision(file: Path) -> str:
    return sha256(file.read_bytes()).hexdigest()[:40]


@pytest.fixture
def file(tmp_path) -> Path:
    return write_jsonl(tmp_path / "tasks.jsonl", [good_row("a")])


def test_a_revision_is_that_of_its_first_use_for_the_job_and_all_copies_of_it(
    tmp_path, file
):
    job = job_of(tmp_path, f"{{source: {file}}}")
    early_copy = job.model_copy(update={"night": "2026-11-22"})
    write_jsonl(file, [good_row("b")])
    revision_at_first_use = revision(file)

    assert job.data.revision == revision_at_first_use
    write_jsonl(file, [good_row("c")])
    late_copy = early_copy.model_copy(update={"named_models": ("a",)})

    assert job.data.revision == revision_at_first_use
    assert early_copy.data.revision == revision_at_first_use
    assert late_copy.data.revision == revision_at_first_use


def test_stages_that_need_a_revision_at_the_same_time_get_the_same_one(
    tmp_path, file
):
    revisions = []
    barrier = Barrier(8)

    def look_up():
        revisions.append(DataRevision(name="x", revision="r", splits=()))
        sleep(0.05)  # so that all threads arrive during the first lookup
        return revisions[-1]

    job = job_of(tmp_path, f"{{source: {file}}}").looking_up(look_up)

    def use_revision(_):
        barrier.wait()
        return job.data

    with ThreadPoolExecutor(8) as pool:
        used_revisions = list(pool.map(use_revision, range(8)))

    assert len(revisions) == 1
    for used_revision in used_revisions:
        assert used_revision is revisions[0]


@pytest.mark.parametrize("source", ["nowhere.jsonl", "~nobody-at-all/tasks.jsonl"])
def test_a_command_that_needs_no_data_set_runs_without(
    source,
    tmp_path,
    monkeypatch,
    run,
):
    monkeypatch.setenv("HOME", str(tmp_path))
    ingest(job_of(tmp_path, "{source: sample}"))
    job_of(tmp_path, f"{{source: {source}}}")

    run("sql", "select count(*) from tasks", "--config", str(tmp_path / "night.yaml"))

    assert run.err == ""


def test_only_ingest_refuses_a_split_that_the_folder_lacks(tmp_path):
    folder = tmp_path / "tasks"
    folder.mkdir()
    write_jsonl(folder / "finance.jsonl", [good_row("a")])
    configured = job_of(tmp_path, f"{{source: {folder}}}")
    lacking = job_of(tmp_path, f"{{source: {folder}, splits: [legal]}}")

    assert lacking.data.revision == configured.data.revision
    message = f"dataset.splits: {folder} has no split 'legal'; known: finance"
    with pytest.raises(UsageError, match=message):
        ingest(lacking)
