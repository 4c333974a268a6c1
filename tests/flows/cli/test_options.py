"""Help pages are whole, and every command in a document is one that click can read; `tests/golden` keeps the pages."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from flows.cli.main import cli
from flows.cli.options import Group
from tests.flows.conftest import PROJECT, Run


def commands(group: click.Group = cli, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command with its full name, those of groups too."""
    for name, command in group.commands.items():
        yield f"{before}{name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")


@pytest.mark.parametrize("width", [80, 110])
def test_help_is_whole_and_every_option_has_a_text(width: int) -> None:
    for name, command in [("", cli), *commands()]:
        with click.Context(command, info_name=f"prbench {name}", terminal_width=width - 2) as context:
            page = command.get_help(context)
        assert "..." not in page.replace("]...", ""), name
        assert max(map(len, page.splitlines())) <= width, name
        for option in command.params:
            if isinstance(option, click.Option):
                assert (option.help or "").endswith((".", "]")), (name, option.opts)


def test_every_command_but_a_group_without_work_has_examples_of_itself() -> None:
    for name, command in commands():
        lines = (command.epilog or "").splitlines()[2:]
        assert lines, name
        assert any(f"prbench {name}" in line for line in lines) or isinstance(command, Group), name


def parsed(words: list[str]) -> click.Command:
    """The command that some words are, once click has read its options."""
    command: click.Command = cli
    while isinstance(command, click.Group) and words and words[0] in command.commands:
        command, words = command.commands[words[0]], words[1:]
    if isinstance(command, click.Group) and words and not words[0].startswith("-"):
        command = command.commands["tables"]  # `export FOLDER`
    with click.Context(command) as context:
        command.make_parser(context).parse_args(words)
    return command


def test_examples_are_commands_that_click_can_read() -> None:
    for name, command in [("", cli), *commands()]:
        for line in (command.epilog or "").splitlines()[2:]:
            words = shlex.split(re.split(r" {3,}| > ", line.strip())[0])
            assert parsed(words[words.index("prbench") + 1 :]) is not cli, (name, line)


@pytest.mark.parametrize("document", ["README.md", "flows/README.md", "flows/cli/README.md"])
def test_commands_in_the_documents_are_ones_that_click_can_read(document: str) -> None:
    text = (PROJECT / document).read_text(encoding="utf-8")
    found = re.findall(r"^(?:\$ )?uv run prbench (.+)$", text, re.MULTILINE)
    assert found
    for line in found:
        assert parsed(shlex.split(re.split(r"\s+#", line)[0])) is not cli, line


@pytest.mark.parametrize("arguments", [[], ["remove"]])
def test_a_group_without_a_command_shows_its_help(arguments: list[str], run: Run) -> None:
    said = run(*arguments, code=2)
    assert "" == run.out
    assert said.startswith(f"Usage: {' '.join(['prbench', *arguments])} [OPTIONS]")
    assert said.count("\n") > 5


@pytest.mark.parametrize("command", ["import", "export"])
def test_a_group_that_works_without_a_command_shows_its_help_if_nothing_is_asked(command: str, run: Run) -> None:
    run(command)
    assert run.out.startswith(f"Usage: prbench {command} [OPTIONS]")
    assert "" == run.err


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from flows.cli.main import main; main(['--help']); "
        "print({'prefect', 'duckdb', 'numpy', 'polars', 'pyarrow', 'pydantic', 'litellm', 'rich', 'warehouse', 'yaml'} "
        "& set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "set()" == done.stderr.strip()
