"""The README and the guide to the command: the output in them is the real one."""

import re
import shlex
import shutil
from pathlib import Path

import pytest

from flows.run.arguments import Arguments
from flows.run.config import load_job
from tests.faults.server import FaultServer
from tests.flows.conftest import PROJECT, Command
from tests.kit import endpoint

README = (PROJECT / "README.md").read_text(encoding="utf-8")
GUIDE = (PROJECT / "flows" / "cli" / "guide.md").read_text(encoding="utf-8")


def _console_blocks(document: str) -> list[tuple[list[str], str]]:
    """The commands of a document that are shown with output, in order: arguments and output of
    each.
    """
    commands = []
    for block in re.findall(r"```console\n(.*?)```", document, re.DOTALL):
        for shown in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, output = shown.partition("\n")
            commands.append((shlex.split(line), output))
    return commands


@pytest.mark.slow
def test_the_commands_of_the_readme_print_what_it_shows(command: Command) -> None:
    shutil.copytree(PROJECT / "warehouse" / "samples", command.folder / "warehouse" / "samples")
    # The guide's commands need what the README's commands imported.
    for arguments, output in [*_console_blocks(README), *_console_blocks(GUIDE)]:
        assert arguments[:3] == ["uv", "run", "prbench"]
        done = command(*arguments[3:], "--warehouse", "data")
        assert output == done.stdout, arguments


def test_the_readme_is_short_and_shows_sql() -> None:
    assert len(README.splitlines()) <= 200
    assert sum(arguments[3] == "sql" for arguments, _ in _console_blocks(README)) == 3


def test_the_example_configuration_is_valid() -> None:
    job = load_job(Arguments(config=PROJECT / "prbench.example.yaml"))
    assert [model.label for model in job.settings.models] == ["gpt-5.6-sol-high"]
    assert job.settings.benchmark == "prbench"


def test_the_pictures_of_the_report_are_there_and_small() -> None:
    texts = [README, (PROJECT / "tasks" / "report" / "README.md").read_text(encoding="utf-8")]
    shown = {Path(path).name for text in texts for path in re.findall(r'<img src="([^"]+)"', text)}
    pictures = {
        path.name: path.stat().st_size
        for path in (PROJECT / "tasks" / "report" / "pictures").iterdir()
    }

    assert set(pictures) == shown
    assert len(re.findall("<img", README)) == 2
    assert max(pictures.values()) < 100_000
    assert sum(pictures.values()) < 400_000


OPERATIONS = (PROJECT / "flows" / "operations.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```console\n(.*?)```", OPERATIONS, re.DOTALL)
LINES = [line.removeprefix("$ ") for block in BLOCKS for line in block.splitlines()]


@pytest.mark.slow
def test_every_command_of_the_guide_works_as_it_stands(
    command: Command, provider: FaultServer
) -> None:
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
    for line in (
        line for line in LINES if "prefect deployment run" not in line
    ):  # tested in `server/test_serve.py`
        arguments = shlex.split(line, comments=True)
        assert arguments[:3] == ["uv", "run", "prbench"], line
        own = [] if "--warehouse" in arguments else ["--warehouse", "data"]
        command(*arguments[3:], *own)
    assert (command.folder / "restored" / "prbench.duckdb").exists()
    assert (command.folder / "shared" / "manifest.json").exists()
