"""The README and the guide to the command: they show the actual output."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
import yaml

from flows.cli.main import cli
from flows.run.arguments import Arguments
from flows.run.config import load_job
from tests.faults.server import FaultServer
from tests.flows.conftest import PROJECT, Command

README = (PROJECT / "README.md").read_text(encoding="utf-8")
GUIDE = (PROJECT / "flows" / "cli" / "README.md").read_text(encoding="utf-8")


def _shown(path: Path) -> str:
    return path.relative_to(PROJECT).as_posix()


def _console_blocks(document: str) -> list[tuple[list[str], str]]:
    """The commands of a document that show their output, in order, each as arguments and what it prints."""
    found = []
    for block in re.findall(r"```console\n(.*?)```", document, re.DOTALL):
        for shown in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            line, _, output = shown.partition("\n")
            found.append((shlex.split(line), output))
    return found


@pytest.mark.slow
def test_the_commands_of_the_readme_print_what_it_shows(command: Command) -> None:
    shutil.copytree(PROJECT / "warehouse" / "samples", command.folder / "warehouse" / "samples")
    # Those of the guide follow in the same folder: it builds on what the README imports.
    for arguments, output in [*_console_blocks(README), *_console_blocks(GUIDE)]:
        assert arguments[:3] == ["uv", "run", "prbench"]
        done = command(*arguments[3:], "--warehouse", "data")
        assert done.stdout == output, arguments


def test_three_questions_are_shown_in_sql() -> None:
    assert sum(arguments[3] == "sql" for arguments, _ in _console_blocks(README)) == 3


def test_the_guide_shows_the_output_of_comparisons() -> None:
    assert {"diff", "judges"} <= {arguments[3] for arguments, _ in _console_blocks(GUIDE)}


def test_the_readme_is_short() -> None:
    assert len(README.splitlines()) <= 200


def test_every_command_has_help_with_an_example_and_is_in_no_document_under_another_name() -> None:
    names = set(cli.commands)
    assert names == {
        "run", "ingest", "assemble", "sample", "judge", "aggregate", "select-hard", "check", "import", "status",
        "leaderboard", "diff", "judges", "criteria", "lengths", "sql", "doctor", "plan", "nightly", "backfill", "serve",
        "compact", "export", "backup", "restore", "report", "derive", "benchmarks", "remove",
        "publish", "conditions", "annotate", "capabilities", "weaknesses", "review", "reviews", "certify", "verify",
        "cascade", "figures", "figure",
    }  # fmt: skip
    for name, subcommand in cli.commands.items():
        assert subcommand.help, name
        assert name == "import" or "Examples:" in (subcommand.epilog or ""), name
    used = set(re.findall(r"prbench ([a-z][a-z-]+)", README + GUIDE))
    assert used <= names | {"run"}


def test_the_example_configuration_is_one(tmp_path: pytest.TempPathFactory) -> None:
    job = load_job(Arguments(config=PROJECT / "prbench.example.yaml"))
    assert [model.label for model in job.settings.models] == ["gpt-5-high"]
    assert yaml.safe_load((PROJECT / "prbench.example.yaml").read_text())["benchmark"] == "prbench"


def _documents() -> list[Path]:
    """The documents at the top, and the README of every folder (but not of what a run may store in the warehouse)."""
    folders = [PROJECT / name for name in ("flows", "tasks", "sql", "expectations", "tests")]
    tops = [PROJECT / name for name in ("README.md", "CHANGELOG.md", "warehouse/README.md")]
    return [*tops, *(path for folder in folders for path in sorted(folder.rglob("README.md")))]


@pytest.mark.parametrize("path", _documents(), ids=_shown)
def test_the_links_of_a_document_lead_somewhere(path: Path) -> None:
    targets = [target for target in re.findall(r"\]\(([^)]+)\)", path.read_text("utf-8")) if "://" not in target]
    assert [target for target in targets if not (path.parent / target.partition("#")[0]).exists()] == []


def test_the_pictures_of_the_report_are_there_and_small() -> None:
    texts = [README, (PROJECT / "tasks" / "report" / "README.md").read_text(encoding="utf-8")]
    shown = {Path(path).name for text in texts for path in re.findall(r'<img src="([^"]+)"', text)}
    pictures = {path.name: path.stat().st_size for path in (PROJECT / "tasks" / "report" / "pictures").iterdir()}

    assert shown == set(pictures)
    assert len(re.findall("<img", README)) == 2
    assert max(pictures.values()) < 100_000
    assert sum(pictures.values()) < 400_000


OPERATIONS = (PROJECT / "flows" / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```console\n(.*?)```", OPERATIONS, re.DOTALL)
LINES = [line.removeprefix("$ ") for block in BLOCKS for line in block.splitlines()]


def settings_of(server: FaultServer) -> dict[str, object]:
    at = {"api_base": server.api_base, "timeout_s": 20}
    return {
        "dataset": {"source": "sample"},
        "models": [
            {"name": "hosted_vllm/pinned", "label": "pinned", **at},
            {"name": "hosted_vllm/fresh", "label": "fresh", "resample": "nightly", **at},
        ],
        "judges": [{"name": "hosted_vllm/judge", "label": "judge", **at}],
        "drift": {"verdicts": 10},
    }


@pytest.mark.slow
def test_every_command_of_the_guide_works_as_it_stands(command: Command, provider: FaultServer) -> None:
    assert len(LINES) > 20
    command.configure(**settings_of(provider))
    for line in (line for line in LINES if "prefect deployment run" not in line):  # `server/test_serve.py` has that
        arguments = shlex.split(line, comments=True)
        assert arguments[:3] == ["uv", "run", "prbench"], line
        own = [] if "--warehouse" in arguments else ["--warehouse", "data"]
        command(*arguments[3:], *own)
    assert (command.folder / "restored" / "prbench.duckdb").exists()
    assert (command.folder / "shared" / "manifest.json").exists()
