"""A command that fails on its arguments, or has no data to work on, is refused in one line and leaves nothing."""

from collections.abc import Callable
from pathlib import Path

import click
import pytest

from tests.flows.cli.test_options import commands
from tests.flows.conftest import PROJECT, Run

SAMPLES = PROJECT / "warehouse" / "samples"
LEAVES = {name: command for name, command in commands() if not isinstance(command, click.Group)}
NEEDED = {
    "import responses": ["nosuch.csv"], "import verdicts": ["nosuch.csv"], "import warehouse": ["nosuch"],
    "import results": ["nosuch.json"], "import reviews": ["nosuch.csv"], "export review": ["sheet.csv"],
    "export inspect": ["logs"], "export datasets": ["set"],
    "export tables": ["folder"], "export labelling": ["sheet.csv"], "backup": ["folder"], "restore": ["nosuch"],
    "publish": ["folder"], "certify": ["figures.zip"], "verify": ["nosuch.zip"],
    "diff": ["a", "b"], "cascade": ["a", "b"], "weaknesses": ["a"], "criteria": ["never-met"],
    "figure": ["leaderboard"], "sql": ["select 1"],
}  # fmt: skip
"""What a command needs beside options."""
WORKS_ALONE = {"run", "plan", "nightly", "backfill", "ingest", "benchmarks", "figures", "doctor", "serve"}
"""Commands that can be the first in a folder."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, which the command is given in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


Refused = Callable[..., str]


@pytest.fixture
def refused(folder: Path, run: Run) -> Refused:
    """Run a command, and return the one line of its refusal, which is all that there is of it."""

    def refusal(*arguments: str) -> str:
        line = run.refusal(*arguments, code=(1, 2))
        assert [] == list(folder.iterdir())
        assert line.startswith("prbench: ")
        return line.removeprefix("prbench: ").strip()

    return refusal


@pytest.mark.parametrize("name", sorted(LEAVES.keys() - WORKS_ALONE))
def test_where_nothing_is_stored_a_command_that_needs_data_says_what_to_do(name: str, refused: Refused) -> None:
    line = refused(*name.split(), *NEEDED.get(name, ()))
    assert any(word in line for word in ("run `prbench ", "check ", "name ", "export again", "makes one", "set `")), (
        line
    )


@pytest.mark.parametrize("name", sorted(LEAVES))
def test_a_wrong_option_configuration_or_benchmark_is_refused(name: str, refused: Refused) -> None:
    given = [*name.split(), *NEEDED.get(name, ())]
    options = {option for each in LEAVES[name].params for option in each.opts}
    assert f"`prbench {name} --help`" in refused(*given, "--nope")
    if "--benchmark" in options and name != "export tables":
        assert "known: healthbench, prbench" in refused(*given, "--benchmark", "nope")
    if "--config" in options and name not in {"import warehouse", "restore"}:
        assert "nope.yaml: no such file" in refused(*given, "--config", "nope.yaml")


@pytest.mark.parametrize("name", ["run", "plan", "nightly", "backfill", "ingest", "sample", "judge", "select-hard"])
def test_a_split_that_the_data_set_does_not_have_is_refused_with_those_it_has(name: str, refused: Refused) -> None:
    assert "has no split 'nope'; it has sample" in refused(name, "--split", "nope")


@pytest.mark.parametrize(("arguments", "said"), [
    (["nightly", "--judge", "nope"], "--judge nope: is not configured"),
    (["nightly", "--vintage", "all"], "--vintage all: works only for leaderboards and reports"),
    (["plan", "--vintage", "all"], "--vintage all: works only for leaderboards and reports"),
    (["plan", "--model", "nope"], "--model nope: is neither configured nor"),
    (["plan", "--judge", "nope"], "--judge nope: is not configured"),
    (["import", "responses", str(SAMPLES / "responses.jsonl")], "no data set is ingested there; run `prbench ingest`"),
    (["import", "verdicts", str(SAMPLES / "labels.csv")], "no data set is ingested there; run `prbench ingest`"),
    (["import", "verdicts", str(SAMPLES)], "is a folder; name a file in it"),
    (["import", "responses", str(PROJECT / "README.md")], "unknown kind of file; use one of .jsonl"),
    (["import", "warehouse", str(SAMPLES)], "not a complete export or publication, manifest.json is"),
    (["import", "--retract", "nope"], "--retract nope: no such batch; nothing is stored in "),
    (["remove", "response", "nope"], "nope: no stored response has this id"),
    (["remove", "response", "--model", "nope"], "nothing is stored there, so nothing can be removed"),
    (["remove", "response"], "name the responses to remove"),
])  # fmt: skip
def test_what_is_impossible_is_refused_without_a_warehouse(arguments: list[str], said: str, refused: Refused) -> None:
    assert said in refused(*arguments)
