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
from tests.flows.conftest import Run
from tests.kit import Patch, good_row, write_jsonl


def job_of(folder: Path, dataset: str) -> Job:
    (folder / "night.yaml").write_text(f"dataset: {dataset}\nwarehouse: data\n", encoding="utf-8")
    return load_job(Arguments(config=folder / "night.yaml"))


def revision(file: Path) -> str:
    return sha256(file.read_bytes()).hexdigest()[:40]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "tasks.jsonl", [good_row("a")])


def test_a_revision_is_that_of_its_first_use_for_the_job_and_all_copies_of_it(
    tmp_path: Path, file: Path
) -> None:
    job = job_of(tmp_path, f"{{source: {file}}}")
    early = job.model_copy(update={"night": "2026-11-22"})
    write_jsonl(file, [good_row("b")])
    at_first_use = revision(file)

    assert at_first_use == job.data.revision
    write_jsonl(file, [good_row("c")])
    late = early.model_copy(update={"named_models": ("a",)})

    assert [at_first_use] * 3 == [each.data.revision for each in (job, early, late)]


def test_stages_that_need_a_revision_at_the_same_time_get_the_same_one(
    tmp_path: Path, file: Path
) -> None:
    lookups: list[int] = []
    all_there = Barrier(8)

    def looked_up() -> DataRevision:
        lookups.append(1)
        sleep(0.05)  # so that all threads arrive during the first lookup
        return DataRevision(
            name="x",
            revision=str(len(lookups)),
            splits=(),
        )

    job = job_of(tmp_path, f"{{source: {file}}}").looking_up(looked_up)
    with ThreadPoolExecutor(8) as pool:
        revisions = list(pool.map(lambda _: (all_there.wait(), job.data)[1], range(8)))
    assert len(lookups) == 1
    assert all(each is revisions[0] for each in revisions)


def test_a_command_without_need_of_data_runs_without(
    tmp_path: Path, monkeypatch: Patch, run: Run
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    sample = job_of(tmp_path, "{source: sample}")
    ingest(sample)
    for missing in ("nowhere.jsonl", "~nobody-at-all/tasks.jsonl"):
        job_of(tmp_path, f"{{source: {missing}}}")
        run("sql", "select count(*) from tasks", "--config", str(tmp_path / "night.yaml"))
    assert run.err == ""


def test_a_split_that_the_folder_lacks_is_missed_by_ingest_and_by_nobody_who_reads(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "tasks"
    folder.mkdir()
    write_jsonl(folder / "finance.jsonl", [good_row("a")])
    whole, lacking = (
        job_of(tmp_path, f"{{source: {folder}{splits}}}") for splits in ("", ", splits: [legal]")
    )
    assert whole.data.revision == lacking.data.revision
    with pytest.raises(
        UsageError, match=f"dataset.splits: {folder} has no split 'legal'; it has finance"
    ):
        ingest(lacking)
