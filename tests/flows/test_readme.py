"""What the README shows is what comes out."""

import re
import shlex
import shutil

import pytest
import yaml

from flows.cli.main import cli
from flows.run.arguments import Arguments
from flows.run.config import load_job
from tests.flows.conftest import PROJECT, Command

README = (PROJECT / "README.md").read_text(encoding="utf-8")


def _console_blocks() -> list[tuple[list[str], str]]:
    """The commands of the README that show their output, in order, each as arguments and what it prints."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL):
        for shown in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, output = shown.partition("\n")
            found.append((shlex.split(line), output))
    return found


@pytest.mark.slow
def test_the_commands_of_the_readme_print_what_it_shows(command: Command) -> None:
    shutil.copytree(PROJECT / "warehouse" / "samples", command.folder / "warehouse" / "samples")
    for arguments, output in _console_blocks():
        assert arguments[:3] == ["uv", "run", "prbench"]
        done = command(*arguments[3:], "--warehouse", "data")
        assert done.stdout == output, arguments


def test_three_questions_are_shown_in_sql() -> None:
    assert sum(arguments[3] == "sql" for arguments, _ in _console_blocks()) == 3


def test_every_command_has_help_with_an_example_and_is_in_no_document_under_another_name() -> None:
    names = set(cli.commands)
    assert names == {
        "run", "ingest", "assemble", "sample", "judge", "aggregate", "select-hard", "check", "import", "status",
        "leaderboard", "diff", "judges", "criteria", "lengths", "sql", "doctor", "plan", "nightly", "backfill", "serve",
        "compact", "export", "backup", "restore", "report", "derive", "benchmarks", "remove",
    }  # fmt: skip
    for name, subcommand in cli.commands.items():
        assert subcommand.help, name
        assert name == "import" or "Examples:" in (subcommand.epilog or ""), name
    used = set(re.findall(r"prbench ([a-z][a-z-]+)", README))
    assert used <= names | {"run"}


def test_the_example_configuration_is_one(tmp_path: pytest.TempPathFactory) -> None:
    job = load_job(Arguments(config=PROJECT / "prbench.example.yaml"))
    assert [model.label for model in job.settings.models] == ["gpt-5-high"]
    assert yaml.safe_load((PROJECT / "prbench.example.yaml").read_text())["benchmark"] == "prbench"


def test_the_links_of_the_readme_lead_somewhere() -> None:
    targets = [target for target in re.findall(r"\]\(([^)]+)\)", README) if "://" not in target]
    assert targets
    assert [target for target in targets if not (PROJECT / target.partition("#")[0]).exists()] == []


def test_the_pictures_of_the_readme_are_there_and_small() -> None:
    shown = re.findall(r'<img src="([^"]+)"', README)

    sizes = [(PROJECT / path).stat().st_size for path in shown]
    assert len(sizes) == 6
    assert max(sizes) < 100_000
    assert sum(sizes) < 400_000
