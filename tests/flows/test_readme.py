"""The README and the guide to the command: the output in them is the real one."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from flows.run.arguments import Arguments
from flows.run.config import load_job
from tests.flows.conftest import PROJECT
from tests.kit import endpoint

README = (PROJECT / "README.md").read_text()
GUIDE = (PROJECT / "flows" / "cli" / "guide.md").read_text()


def console_blocks(document: str) -> list[str]:
    return re.findall(r"```console\n(.*?)```", document, re.DOTALL)


def commands_of(document: str) -> list[tuple[list[str], str]]:
    """The commands of a document that are shown with output, in order: arguments and output of
    each.
    """
    commands = []
    for block in console_blocks(document):
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, output = example.partition("\n")
            commands.append((shlex.split(line), output))
    return commands


@pytest.mark.slow
def test_the_commands_of_the_readme_print_what_it_shows(command):
    samples = Path("warehouse", "samples")
    shutil.copytree(PROJECT / samples, command.folder / samples)
    # The guide's commands need what the README's commands imported.
    for arguments, output in commands_of(README) + commands_of(GUIDE):
        assert arguments[:3] == ["uv", "run", "prbench"]
        result = command(*arguments[3:], "--warehouse", "data")
        assert result.stdout == output, arguments


def test_the_readme_is_short_and_shows_sql():
    assert len(README.splitlines()) <= 200
    assert [arguments[3] for arguments, _ in commands_of(README)].count("sql") == 3


def test_the_example_configuration_is_valid():
    job = load_job(Arguments(config=PROJECT / "prbench.example.yaml"))

    assert [model.label for model in job.settings.models] == ["gpt-5.6-sol-high"]
    assert job.settings.benchmark == "prbench"


def test_the_pictures_of_the_report_are_there_and_small():
    folder = PROJECT / "tasks" / "report"
    report_readme = (folder / "README.md").read_text()
    paths = re.findall(r'<img src="([^"]+)"', README + report_readme)
    pictures = list((folder / "pictures").iterdir())
    sizes = [picture.stat().st_size for picture in pictures]

    assert {picture.name for picture in pictures} == {
        Path(path).name for path in paths
    }
    assert README.count("<img") == 2
    assert max(sizes) < 100_000
    assert sum(sizes) < 400_000


OPERATIONS = (PROJECT / "flows" / "operations.md").read_text()
LINES = "".join(console_blocks(OPERATIONS)).splitlines()


@pytest.mark.slow
def test_every_command_of_the_guide_works_as_it_stands(command, provider):
    assert len(LINES) > 20
    pinned = endpoint("pinned", provider.api_base)
    fresh = endpoint("fresh", provider.api_base, resample="nightly")
    judge = endpoint("judge", provider.api_base)
    command.configure(
        dataset={"source": "sample"},
        models=[pinned, fresh],
        judges=[judge],
        drift={"verdicts": 10},
    )
    for line in LINES:
        if "prefect deployment run" in line:
            continue  # tested in `server/test_serve.py`
        arguments = shlex.split(line.removeprefix("$ "), comments=True)
        assert arguments[:3] == ["uv", "run", "prbench"], line
        if "--warehouse" not in arguments:
            arguments += ["--warehouse", "data"]
        command(*arguments[3:])

    assert (command.folder / "restored" / "prbench.duckdb").exists()
    assert (command.folder / "shared" / "manifest.json").exists()
