"""The commands that keep a warehouse, and the readers that the guide shows, against an S3 server."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import duckdb
import fsspec
import polars as pl
import pyarrow.parquet as pq
import pytest

from flows.cli.main import main
from tests.faults.kills.starting import PRBENCH
from tests.flows.conftest import PROJECT, Run
from tests.kit import rows_in
from tests.tasks.bundles.s3 import SECRET, bucket
from warehouse import Warehouse

pytestmark = pytest.mark.slow
GUIDE = (PROJECT / "flows" / "cli" / "README.md").read_text(encoding="utf-8")
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
        "ingest -q", f"import responses {SAMPLES}/responses.jsonl", f"import verdicts {SAMPLES}/labels.csv",
        "aggregate -q", "report -q",
    ):  # fmt: skip
        assert main([*line.split(), "--warehouse", str(folder)]) == 0
    return folder


def count(folder: Path) -> list[int]:
    with Warehouse(folder).reader() as reader:
        return [reader.value(f"select count(*) from {name}") for name in ("verdicts", "leaderboard", "criteria")]


class Safe(Run):
    """A command that prints no secret; returned is all that it prints."""

    def __call__(self, *arguments: str | Path, code: int | tuple[int, ...] = 0) -> str:
        super().__call__(*arguments, code=code)
        assert SECRET not in self.out + self.err
        return self.out + self.err


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    return Safe(capsys)


def test_a_backup_in_a_bucket_is_made_renewed_and_restored(data: Path, tmp_path: Path, run: Run) -> None:
    here = ("--warehouse", data)
    first = run("backup", "s3://results/backup", *here)
    again = run("backup", "s3://results/backup", "--verify", *here)
    run("restore", "s3://results/backup", "--warehouse", tmp_path / "restored")

    assert re.search(r"backup: (\d+) files .* in s3://results/backup, \1 of them copied now", first)
    assert "0 of them copied now" in again
    assert re.match(r"verify: backup, \d+ files \(", run("verify", "s3://results/backup"))
    assert count(data) == count(tmp_path / "restored")
    said = run("restore", "s3://results/none", "--warehouse", tmp_path / "other", code=1)
    assert said.startswith("prbench: s3://results/none: is not a complete backup")


def test_an_export_in_a_bucket_is_imported_into_another_warehouse(data: Path, tmp_path: Path, run: Run) -> None:
    run("export", "s3://results/shared", "--warehouse", data)
    run("import", "warehouse", "s3://results/shared", "--warehouse", tmp_path / "other")

    assert count(data) == count(tmp_path / "other")
    assert "verify: export, " in run("verify", "s3://results/shared")
    assert "export, " in json.loads(run("verify", "s3://results/shared", "--json"))["notes"][0]
    fsspec.filesystem("s3").pipe("results/shared/criteria.parquet", b"PAR1")
    assert "s3://results/shared: criteria.parquet: missing, or not what" in run("verify", "s3://results/shared", code=1)
    assert "are for certificates" in run("verify", "s3://results/shared", "--digest", "0", code=2)
    said = run("export", "s3://results/shared", "--warehouse", data, code=2)
    assert said == "prbench: s3://results/shared: is not empty; name a new prefix\n"


@pytest.mark.parametrize("n_files", [1, 20])
def test_a_publication_that_is_killed_during_its_upload_leaves_nothing_that_a_reader_sees(
    n_files: int, data: Path, run: Run
) -> None:
    target, store = f"results/killed-{n_files}", fsspec.filesystem("s3")
    arguments = ["publish", f"s3://{target}", "-q", "--warehouse", data]

    def uploaded() -> list[str]:
        store.invalidate_cache()
        return [name for name in store.find(target) if "/publications/" in name]

    with subprocess.Popen([PRBENCH, *arguments]) as process:
        while len(uploaded()) < n_files:
            assert process.poll() is None, "it ended before it was killed"
        process.kill()
    killed = uploaded()
    assert not any(name.endswith(("manifest.json", "current.json")) for name in store.find(target))
    assert run("import", "warehouse", f"s3://{target}", "--warehouse", str(data.parent / "x"), code=1)

    run(*arguments, "--keep", "1")
    latest = json.loads(store.cat(f"{target}/current.json"))["publication"]
    assert all(f"/{latest}/" not in name for name in killed)
    assert f"{target}/{latest}/manifest.json" in uploaded()
    assert [] == list(data.glob(".publication*"))


def test_what_was_published_is_read_as_the_guide_says(
    data: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    line, _ = re.findall(r"^uv run prbench (publish s3://\S+)", GUIDE, re.MULTILINE)
    run(*line.split(), "--warehouse", data)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for snippet in re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL):
        exec(snippet, names)  # the project's own text

    wanted = rows_in(data, "select model, mean_score from leaderboard where is_primary order by all")
    assert len(wanted) > 1
    found = {name: sorted(map(tuple, names[name]), key=str) for name in ("from_file", "in_place", "arrow", "polars")}  # type: ignore[call-overload]
    for name, rows in found.items():
        assert sorted((tuple(row.values()) for row in wanted), key=str) == rows, name
    with duckdb.connect(str(tmp_path / "prbench.duckdb"), read_only=True) as database:
        assert database.sql("select count(*) from verdicts").fetchall() == [(count(data)[0],)]


def test_what_was_published_is_verified_and_holds_the_report(data: Path, run: Run) -> None:
    run("publish", "s3://results/whole", "--warehouse", data)
    assert "nothing was published" in run("publish", "s3://results/whole", "--warehouse", data)
    assert "verify: publication, " in run("verify", "s3://results/whole")
    store = fsspec.filesystem("s3")
    prefix = f"results/whole/{json.loads(store.cat('results/whole/current.json'))['publication']}"

    assert store.exists(f"{prefix}/report/prbench/index.html")
    assert pq.read_table(f"{prefix}/tables/verdicts", filesystem=store).num_rows == count(data)[0]
    assert pl.read_parquet(store.open(f"{prefix}/tables/criteria/part-0.parquet")).height == count(data)[2]
