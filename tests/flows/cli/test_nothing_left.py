"""A command that fails on its arguments, or has no data to work on, is refused in one line and leaves nothing."""

import json
from pathlib import Path

import click
import pytest

from flows.cli.main import main
from tests.flows.cli.test_options import commands
from tests.flows.conftest import PROJECT

SAMPLES = PROJECT / "warehouse" / "samples"
LEAVES = {name: command for name, command in commands() if not isinstance(command, click.Group)}
NEEDED = {
    "import responses": ["nosuch.csv"], "import verdicts": ["nosuch.csv"], "import warehouse": ["nosuch"],
    "import results": ["nosuch.json"], "import reviews": ["nosuch.csv"], "export review": ["sheet.csv"],
    "export inspect": ["logs"], "export datasets": ["set"],
    "export tables": ["folder"], "export labelling": ["sheet.csv"], "backup": ["folder"], "restore": ["nosuch"],
    "publish": ["folder"], "certify": ["figures.zip"], "verify": ["nosuch.zip"],
    "diff": ["a", "b"], "cascade": ["a", "b"], "weaknesses": ["a"], "criteria": ["never-met"], "sql": ["select 1"],
}  # fmt: skip
"""What a command needs beside options."""
WORKS_ALONE = {"run", "plan", "nightly", "backfill", "ingest", "benchmarks", "doctor", "serve"}
"""Commands that can be the first in a folder."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which the command is given in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(folder: Path, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line of a refusal, which is all that there is of it."""
    assert main(arguments) in {1, 2}
    said = capsys.readouterr()
    assert [] == list(folder.iterdir())
    assert "" == said.out
    assert said.err.startswith("prbench: ")
    assert 1 == said.err.count("\n"), said.err
    return said.err.removeprefix("prbench: ").strip()


@pytest.mark.parametrize("name", sorted(LEAVES.keys() - WORKS_ALONE))
def test_where_nothing_is_stored_a_command_that_needs_data_says_what_to_do(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused(folder, [*name.split(), *NEEDED.get(name, ())], capsys)
    assert any(word in line for word in ("run `prbench ", "check ", "name the ", "export again", "makes one")), line


@pytest.mark.parametrize("name", sorted(LEAVES))
def test_a_wrong_option_configuration_or_benchmark_is_refused(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [*name.split(), *NEEDED.get(name, ())]
    options = {option for each in LEAVES[name].params for option in each.opts}
    assert f"`prbench {name} --help`" in refused(folder, [*given, "--nope"], capsys)
    if "--benchmark" in options and name != "export tables":
        assert "known: healthbench, prbench" in refused(folder, [*given, "--benchmark", "nope"], capsys)
    if "--config" in options and name not in {"import warehouse", "restore"}:
        assert "nope.yaml: no such file" in refused(folder, [*given, "--config", "nope.yaml"], capsys)


@pytest.mark.parametrize("name", ["run", "plan", "nightly", "backfill", "ingest", "sample", "judge", "select-hard"])
def test_a_split_that_the_data_set_does_not_have_is_refused_with_those_it_has(
    name: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "has no split 'nope'; it has sample" in refused(folder, [name, "--split", "nope"], capsys)


@pytest.mark.parametrize(("arguments", "said"), [
    (["nightly", "--judge", "nope"], "--judge nope: is not configured"),
    (["nightly", "--vintage", "all"], "--vintage all: works only for leaderboards and reports"),
    (["plan", "--vintage", "all"], "--vintage all: works only for leaderboards and reports"),
    (["plan", "--model", "nope"], "--model nope: is neither configured nor"),
    (["derive", "--judge", "nope"], "--judge nope: is not configured"),
    (["import", "responses", str(SAMPLES / "answers.jsonl")], "no data set is ingested there; run `prbench ingest`"),
    (["import", "verdicts", str(SAMPLES / "labels.csv")], "no data set is ingested there; run `prbench ingest`"),
    (["import", "verdicts", str(SAMPLES)], "is a folder; name a file in it"),
    (["import", "responses", str(PROJECT / "README.md")], "unknown kind of file; use one of .jsonl"),
    (["import", "warehouse", str(SAMPLES)], "not a complete export, manifest.json is missing"),
    (["import", "--retract", "nope"], "--retract nope: no such batch; nothing is stored in "),
    (["remove", "response", "nope"], "nope: no stored response has this id"),
    (["remove", "response", "--model", "nope"], "nothing is stored there, so nothing can be removed"),
    (["remove", "response"], "name the responses to remove"),
])  # fmt: skip
def test_what_cannot_be_done_is_refused_before_a_warehouse_is_made(
    arguments: list[str], said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(folder, arguments, capsys)


@pytest.mark.parametrize("name", ["run", "plan", "nightly", "ingest"])
def test_a_data_set_that_is_not_there_is_refused_before_a_warehouse_is_made(
    name: str, folder: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path_factory.mktemp("config") / "prbench.yaml"
    config.write_text("dataset: {source: nosuch.jsonl}", encoding="utf-8")
    where = ["--config", str(config), "--warehouse", "data"]
    assert "nosuch.jsonl is not a file" in refused(folder, [name, *where], capsys)


def test_an_export_with_a_damaged_file_is_refused_before_a_warehouse_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    exported = tmp_path / "exported"
    exported.mkdir()
    file = {"name": "runs.parquet", "n_rows": 1, "n_bytes": 4, "sha256": "0" * 64}
    table = {"name": "runs", "is_derived": False, "columns": {"run_id": "VARCHAR"}, "n_rows": 1, "files": [file]}
    listed = {"format": "prbench-export", "version": 1, "made_at": "2026-11-22", "benchmarks": [], "tables": [table]}
    (exported / "manifest.json").write_text(json.dumps(listed), encoding="utf-8")
    (exported / "runs.parquet").write_bytes(b"PAR1")
    assert "differs from what was exported" in refused(
        tmp_path / "here", ["import", "warehouse", str(exported)], capsys
    )
