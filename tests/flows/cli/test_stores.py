"""Backups, exports and publications, and the readers that the guide shows, against an S3 server."""

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from tasks.config.job import Job
from tests.flows.conftest import PROJECT, Run
from tests.kit import copied, values_in
from tests.tasks.bundles.s3 import SECRET, bucket
from warehouse import Warehouse

pytestmark = pytest.mark.slow
GUIDE = (PROJECT / "flows" / "cli" / "guide.md").read_text()


@pytest.fixture(scope="module", autouse=True)
def server() -> Iterator[None]:
    """An S3 server with the bucket of the guide."""
    with bucket():
        yield


@pytest.fixture(scope="module")
def data(sample_job: Job, tmp_path_factory) -> Path:
    """A warehouse with the samples, judged by a person."""
    return copied(sample_job, tmp_path_factory.mktemp("stores") / "data").warehouse


def counts_in(folder: Path) -> list[int]:
    """The numbers of rows of some tables."""
    names = ("verdicts", "leaderboard", "criteria")
    with Warehouse(folder).reader() as reader:
        return [reader.value(f"select count(*) from {name}") for name in names]


class RunWithoutSecrets(Run):
    """A command that must print no secret; it returns both outputs."""

    def __call__(
        self, *arguments: str | Path, code: int | tuple[int, ...] = 0
    ) -> str:
        super().__call__(*arguments, code=code)
        assert SECRET not in self.out + self.err
        return self.out + self.err


@pytest.fixture
def run(capsys) -> RunWithoutSecrets:
    return RunWithoutSecrets(capsys)


def test_a_backup_in_a_bucket_is_written_updated_and_restored(data, tmp_path, run):
    backup = run("backup", "s3://results/backup", "--warehouse", data)
    update = run("backup", "s3://results/backup", "--verify", "--warehouse", data)
    verification = run("verify", "s3://results/backup")
    run("restore", "s3://results/backup", "--warehouse", tmp_path / "restored")

    assert re.search(
        r"backup: (\d+) files .* in s3://results/backup, \1 of them copied now",
        backup,
    )
    assert "0 of them copied now" in update
    assert re.match(r"verify: backup, \d+ files \(", verification)
    assert counts_in(tmp_path / "restored") == counts_in(data)


def test_what_is_no_backup_is_not_restored(tmp_path, run):
    output = run(
        "restore",
        "s3://results/none",
        "--warehouse",
        tmp_path / "other",
        code=1,
    )

    assert output.startswith("prbench: s3://results/none: is not a complete backup")


def test_an_export_in_a_bucket_is_imported_into_another_warehouse(
    data, tmp_path, run
):
    run("export", "s3://results/shared", "--warehouse", data)
    run(
        "import",
        "warehouse",
        "s3://results/shared",
        "--warehouse",
        tmp_path / "other",
    )

    assert counts_in(tmp_path / "other") == counts_in(data)
    assert "verify: export, " in run("verify", "s3://results/shared")
    error = run("export", "s3://results/shared", "--warehouse", data, code=2)
    reason = "is not an empty folder; name a new one"
    assert error == f"prbench: s3://results/shared: {reason}\n"


def test_publications_are_read_as_the_guide_says(data, tmp_path, run, monkeypatch):
    # The guide publishes to one address twice, the second time with an option.
    [address, _] = re.findall(
        r"^uv run prbench publish (s3://\S+)",
        GUIDE,
        re.MULTILINE,
    )
    run("publish", address, "--warehouse", data)
    assert "nothing was published" in run("publish", address, "--warehouse", data)
    assert "verify: publication, " in run("verify", address)

    monkeypatch.chdir(tmp_path)
    names = {}
    for snippet in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL):
        exec(snippet, names)  # code from the project's own guide

    query = "select model, mean_score from leaderboard where is_primary"
    scores = values_in(data, query)
    assert len(scores) > 1
    for name in ("from_file", "in_place", "arrow", "polars"):
        assert sorted(map(tuple, names[name])) == sorted(scores), name
    with duckdb.connect(str(tmp_path / "prbench.duckdb"), read_only=True) as database:
        [[n_verdicts]] = database.sql("select count(*) from verdicts").fetchall()
    assert n_verdicts == counts_in(data)[0]
