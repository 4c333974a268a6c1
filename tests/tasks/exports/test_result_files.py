"""Results as files: data sets that the library `datasets` loads unchanged."""

import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml

from tasks.config.job import Job
from tasks.exports.result_files import DEFAULT_TABLES, export_data_sets
from tasks.ingest import ingest
from tasks.rules.errors import UsageError
from tests.kit import Row, copied, job_on, row, rows_in, written
from tests.tasks.exports.conftest import CANARY, TASKS

OF_OTHERS = "a text of another revision"


@pytest.fixture(scope="module")
def job(outcomes_job: Job, tmp_path_factory) -> Job:
    """A world with two more tasks: one of another revision, and one of another benchmark."""
    job = copied(outcomes_job, tmp_path_factory.mktemp("world") / "data")
    old_task = row("task_rows", task_id="old", topic=OF_OTHERS)
    foreign_task = row(
        "task_rows",
        task_id="foreign",
        topic=OF_OTHERS,
        benchmark="other",
        dataset_revision=job.data.revision,
    )
    written(job.warehouse, {"task_rows": [old_task, foreign_task]}).publish()
    return job


@pytest.fixture(scope="module")
def folder(job: Job, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("sets") / "set"
    export_data_sets(job, folder)
    return folder


@pytest.fixture(scope="module")
def library(tmp_path_factory) -> Any:
    """The library, with a cache of its own and without a network."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HF_HUB_OFFLINE", "1")
        import datasets

        patched.setattr(
            datasets.config,
            "HF_DATASETS_CACHE",
            tmp_path_factory.mktemp("cache"),
        )
        datasets.disable_progress_bars()
        yield datasets


def stored(job: Job, name: str) -> list[Row]:
    condition = "benchmark = 'prbench' and dataset_revision = ?"
    query = f"from {name} where {condition} order by all"
    return rows_in(job, query, job.data.revision)


def in_order(rows: Any) -> list[Row]:
    return sorted(map(dict, rows), key=repr)


@pytest.mark.parametrize("name", DEFAULT_TABLES)
def test_both_loaders_give_the_stored_rows(library, folder, job, name):
    rows = in_order(stored(job, name))
    loaded = library.load_dataset(
        str(folder),
        name,
        split="test",
    )
    mapped = library.load_from_disk(str(folder / name))

    assert in_order(loaded) == rows
    assert in_order(mapped) == rows
    assert loaded.features == mapped.features


def test_the_whole_folder_loads_as_all_tables_and_the_leaderboard_comes_first(
    library, folder
):
    assert list(library.load_from_disk(str(folder))) == list(DEFAULT_TABLES)
    assert library.get_dataset_config_names(str(folder)) == list(DEFAULT_TABLES)
    assert "mean_score" in library.load_dataset(str(folder))["test"].column_names


@pytest.mark.parametrize("name", DEFAULT_TABLES)
def test_the_card_has_the_meaning_of_every_column(folder, name):
    card = (folder / "README.md").read_text()
    section = card.partition(f"\n## {name}\n")[2].partition("\n## ")[0]

    columns = re.findall(r"^\| `(\w+)` \| \S[^|]* \| .+ \|$", section, re.MULTILINE)

    assert columns == pq.read_schema(folder / name / "part-0.parquet").names


def test_the_card_has_licence_notice_revision_and_sizes(folder, job):
    card = (folder / "README.md").read_text()
    _, header, text = card.split("---\n", 2)

    assert yaml.safe_load(header)["license"] == "cc-by-4.0"
    assert "**Do not train on this data.**" in text
    assert f"| revision of its data set | `{job.data.revision}` |" in text
    n_verdicts = len(stored(job, "verdicts"))
    assert re.search(
        rf"^\| `verdicts` \| .* \| {n_verdicts} \| [\d.]+ MB ",
        text,
        re.MULTILINE,
    )


def test_neither_canaries_nor_other_revisions_and_benchmarks_are_in_it(
    folder,
    job,
    tmp_path,
):
    export_data_sets(job, tmp_path / "members", ["split_members", "tasks"])

    for file in (*folder.rglob("*.*"), *tmp_path.rglob("*.*")):
        content = file.read_bytes()
        assert CANARY.encode() not in content
        assert OF_OTHERS.encode() not in content
    members = pq.read_table(tmp_path / "members" / "split_members" / "part-0.parquet")
    assert set(members["task_id"].to_pylist()) == set(TASKS)
    assert set(members["canary"].to_pylist()) == {None}


def test_the_sample_has_the_licence_of_this_project(tmp_path):
    job = job_on("sample", tmp_path / "data")
    ingest(job)
    report = export_data_sets(job, tmp_path / "set")

    card = (tmp_path / "set" / "README.md").read_text()
    assert "license: apache-2.0" in card
    # Tables about responses are empty, and `load_dataset` cannot load an empty table.
    assert "empty, left out: leaderboard" in report.line
    assert (tmp_path / "set" / "tasks").is_dir()
    assert not (tmp_path / "set" / "verdicts").exists()


@pytest.mark.parametrize(
    ("names", "reason"),
    [
        (["nosuch"], "--table nosuch: no such table"),
        (["retractions"], "no such table"),
        (["alerts"], "no row of prbench"),
    ],
)
def test_a_table_that_is_not_there_or_empty_is_refused(job, tmp_path, names, reason):
    with pytest.raises(UsageError, match=reason):
        export_data_sets(job, tmp_path / "set", names)
    assert not (tmp_path / "set").exists()
