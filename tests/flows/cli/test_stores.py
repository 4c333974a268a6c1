"""Backups, exports and publications, and the readers that the guide shows, against an S3 server."""

import re
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from flows.cli.main import main
from tests.flows.conftest import PROJECT, Run
from tests.kit import Patch, Printed, rows_in
from tests.tasks.bundles.s3 import SECRET, bucket
from warehouse import Warehouse

pytestmark = pytest.mark.slow
GUIDE = (PROJECT / "flows" / "cli" / "guide.md").read_text(encoding="utf-8")
SAMPLES = PROJECT / "warehouse" / "samples"


@pytest.fixture(scope="module", autouse=True)
def server() -> Iterator[None]:
    """An S3 server with the bucket of the guide."""
    with bucket():
        yield


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with the samples, judged by a person, and a report."""
    folder = tmp_path_factory.mktemp("stores") / "data"
    for line in (
        "ingest -q",
        f"import responses {SAMPLES}/responses.jsonl",
        f"import verdicts {SAMPLES}/labels.csv",
        "aggregate -q",
        "report -q",
    ):
        assert main([*line.split(), "--warehouse", str(folder)]) == 0
    return folder


def count(folder: Path) -> list[int]:
    with Warehouse(folder).reader() as reader:
        return [
            reader.value(f"select count(*) from {name}")
            for name in ("verdicts", "leaderboard", "criteria")
        ]


class Safe(Run):
    """A command that must print no secret; it returns both outputs."""

    def __call__(self, *arguments: str | Path, code: int | tuple[int, ...] = 0) -> str:
        super().__call__(*arguments, code=code)
        assert SECRET not in self.out + self.err
        return self.out + self.err


@pytest.fixture
def run(capsys: Printed) -> Run:
    return Safe(capsys)


def test_a_backup_in_a_bucket_is_written_renewed_and_restored(
    data: Path, tmp_path: Path, run: Run
) -> None:
    here = ("--warehouse", data)
    first = run("backup", "s3://results/backup", *here)
    again = run("backup", "s3://results/backup", "--verify", *here)
    run("restore", "s3://results/backup", "--warehouse", tmp_path / "restored")

    assert re.search(r"backup: (\d+) files .* in s3://results/backup, \1 of them copied now", first)
    assert "0 of them copied now" in again
    assert re.match(r"verify: backup, \d+ files \(", run("verify", "s3://results/backup"))
    assert count(data) == count(tmp_path / "restored")
    output = run("restore", "s3://results/none", "--warehouse", tmp_path / "other", code=1)
    assert output.startswith("prbench: s3://results/none: is not a complete backup")


def test_an_export_in_a_bucket_is_imported_into_another_warehouse(
    data: Path, tmp_path: Path, run: Run
) -> None:
    run("export", "s3://results/shared", "--warehouse", data)
    run("import", "warehouse", "s3://results/shared", "--warehouse", tmp_path / "other")

    assert count(data) == count(tmp_path / "other")
    assert "verify: export, " in run("verify", "s3://results/shared")
    output = run("export", "s3://results/shared", "--warehouse", data, code=2)
    assert output == "prbench: s3://results/shared: is not an empty folder; name a new one\n"


def test_publications_are_read_as_the_guide_says(
    data: Path, tmp_path: Path, run: Run, monkeypatch: Patch
) -> None:
    line, _ = re.findall(r"^uv run prbench (publish s3://\S+)", GUIDE, re.MULTILINE)
    run(*line.split(), "--warehouse", data)
    assert "nothing was published" in run(*line.split(), "--warehouse", data)
    assert "verify: publication, " in run("verify", line.split()[1])
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for snippet in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL):
        exec(snippet, names)  # code from the project's own guide

    wanted = rows_in(
        data, "select model, mean_score from leaderboard where is_primary order by all"
    )
    assert len(wanted) > 1
    read = {
        name: sorted(map(tuple, names[name]), key=str)
        for name in ("from_file", "in_place", "arrow", "polars")
    }  # type: ignore[call-overload]
    for name, rows in read.items():
        assert rows == sorted((tuple(row.values()) for row in wanted), key=str), name
    with duckdb.connect(str(tmp_path / "prbench.duckdb"), read_only=True) as database:
        assert [(count(data)[0],)] == database.sql("select count(*) from verdicts").fetchall()
