"""Each command takes the options that change something there, and refuses all others."""

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator

import click
import pytest

from flows.cli.main import SECTIONS, cli
from flows.cli.options import Group, GroupedOption, first_sentence
from tests.flows.conftest import PROJECT, Run

SHOWS, ACTS = {"--json", "--verbose"}, {"--json", "--quiet", "--verbose"}
RUNS = ACTS | {"--no-prefect"}
WAREHOUSE = {"--config", "--warehouse"}
ANY_PLACE = WAREHOUSE | {"--benchmark"}
CALLS = {"--retry-failed", "--replace-lost", "--max-usd", "--max-tokens", "--stop-at"}
EVALUATED = {"--split", "--model", "--judge", "--trials", "--limit", "--vintage", "--night"}
COMPARED = {"--split", "--model", "--judge", "--vintage"}
DOES = {
    "run": RUNS | ANY_PLACE | EVALUATED | CALLS,
    "nightly": RUNS | ANY_PLACE | EVALUATED | CALLS,
    "backfill": RUNS | ANY_PLACE | EVALUATED | CALLS | {"--task", "--trial", "--dry-run"},
    "plan": SHOWS | ANY_PLACE | EVALUATED | {"--stopping"},
    "ingest": RUNS | ANY_PLACE | {"--split"},
    "assemble": RUNS | ANY_PLACE | {"--split", "--limit"},
    "sample": RUNS | ANY_PLACE | CALLS | EVALUATED - {"--judge"},
    "derive": RUNS | ANY_PLACE | CALLS | {"--split", "--judge", "--limit"},
    "capabilities": RUNS | ANY_PLACE | CALLS | {"--split", "--limit"},
    "weaknesses": SHOWS | ANY_PLACE | {"--judge", "--than", "-n"},
    "annotate": RUNS | ANY_PLACE | CALLS | {"--split", "--limit"},
    "review": RUNS | ANY_PLACE | CALLS | {"--split", "--limit"},
    "reviews": SHOWS | ANY_PLACE | {"-n"},
    "judge": RUNS | ANY_PLACE | CALLS | EVALUATED,
    "aggregate": RUNS | ANY_PLACE | {"--take-over"},
    "select-hard": RUNS | ANY_PLACE | {"--split", "--judge", "--vintage"},
    "leaderboard": SHOWS | ANY_PLACE | COMPARED
    | {"--hard", "--score", "--by", "--risk", "--selection", "--output", "--debiased"},
    "status": SHOWS | ANY_PLACE | EVALUATED | {"--spend", "--runs", "--disk", "--since"},
    "report": ACTS | ANY_PLACE | COMPARED | {"--out", "--serve", "--live", "--port"},
    "sql": SHOWS | WAREHOUSE | {"--file", "--describe", "--cookbook", "--show", "--format", "--output"},
    "benchmarks": SHOWS,
    "figures": SHOWS,
    "figure": SHOWS | ANY_PLACE | COMPARED | {"--hard", "--score", "--by", "--format", "--output"},
    "diff": SHOWS | ANY_PLACE | COMPARED | {"--of", "--hard", "--score", "--flips", "--debiased"},
    "conditions": SHOWS | ANY_PLACE | COMPARED | {"--hard", "--score", "--flips"},
    "judges": SHOWS | ANY_PLACE | {"--judge", "--by", "--people"},
    "cascade": SHOWS | ANY_PLACE | {"--split", "--bound", "--all"},
    "criteria": SHOWS | ANY_PLACE | {"--judge", "--vintage", "-n"},
    "lengths": SHOWS | ANY_PLACE | COMPARED | {"--hard", "--score"},
    "import": ACTS | WAREHOUSE | {"--retract"},
    "import responses": ACTS | ANY_PLACE | {"--vintage", "--as", "--pattern", "--skip-other", "--skip-unknown"},
    "import verdicts": ACTS | ANY_PLACE
    | {"--vintage", "--night", "--as", "--task", "--by", "--grading", "--skip-empty", "--skip-unknown",
       "--random-sample"},
    "import results": ACTS | ANY_PLACE | {"--vintage", "--format", "--as", "--by", "--skip-unknown"},
    "import reviews": ACTS | ANY_PLACE | {"--by", "--skip-unknown"},
    "import warehouse": ACTS | WAREHOUSE,
    "export": set(),
    "export tables": ACTS | ANY_PLACE | {"--table"},
    "export labelling": ACTS | ANY_PLACE
    | {"--split", "--model", "--judge", "--trial", "--limit", "--vintage", "--night", "-n", "--seed", "--for"},
    "export review": ACTS | ANY_PLACE | {"--split", "--limit", "-n", "--tasks", "--by", "--seed"},
    "export inspect": ACTS | ANY_PLACE | COMPARED,
    "export datasets": ACTS | ANY_PLACE | {"--table"},
    "remove": set(),
    "remove response": ACTS | WAREHOUSE
    | {"--model", "--task", "--trial", "--vintage", "--longer-than", "--reason", "--dry-run"},
    "compact": RUNS | WAREHOUSE,
    "backup": ACTS | WAREHOUSE | {"--verify"},
    "restore": ACTS | WAREHOUSE,
    "publish": ACTS | WAREHOUSE | {"--keep"},
    "certify": ACTS | ANY_PLACE,
    "verify": SHOWS | {"--digest", "--texts"},
    "doctor": SHOWS | ANY_PLACE | {"--no-call"},
    "check": RUNS | ANY_PLACE | {"--list", "--accept"},
    "serve": {"--verbose"} | ANY_PLACE | {"--port", "--name", "--work-pool"},
}  # fmt: skip
"""Command -> the options that change something there."""


def commands(group: click.Group = cli, before: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command with its full name, those of groups too."""
    for name, command in group.commands.items():
        yield f"{before}{name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{before}{name} ")


def test_every_command_takes_exactly_the_options_that_change_something() -> None:
    found = {
        name: {option.opts[-1] for option in command.params if isinstance(option, click.Option)}
        for name, command in commands()
    }
    assert found == DOES


@pytest.mark.parametrize("arguments", [
    ["compact", "--model", "m"], ["compact", "--benchmark", "prbench"], ["doctor", "--model", "m"],
    ["import", "verdicts", "labels.csv", "--limit", "3"], ["ingest", "--limit", "3"], ["aggregate", "--judge", "j"],
    ["sql", "select 1", "--split", "legal"], ["backup", "folder", "--vintage", "base"], ["serve", "--json"],
    ["leaderboard", "--trials", "2"], ["report", "--night", "2026-10-04"], ["report", "--limit", "3"],
    ["benchmarks", "--config", "prbench.yaml"], ["import", "warehouse", "folder", "--benchmark", "prbench"],
])  # fmt: skip
def test_an_option_that_would_change_nothing_is_refused_in_one_line(arguments: list[str], run: Run) -> None:
    option = next(argument for argument in arguments if argument.startswith("--"))
    assert run.refusal(*arguments).startswith(f"prbench: No such option '{option}'")


@pytest.mark.parametrize(("arguments", "said"), [
    (["import", "--warehouse", "data", "responses", "a.jsonl"], "--warehouse is given before `responses`"),
    (["import", "--retract", "b", "responses", "a.jsonl"], "--retract is given before `responses`"),
    (["status", "--spend", "--model", "m"], "--model does not apply to --spend"),
    (["status", "--disk", "--limit", "3"], "--limit does not apply to --spend"),
    (["select-hard", "--judge", "a", "--judge", "b"], "one judge selects the hard subset"),
])  # fmt: skip
def test_an_option_that_means_nothing_beside_another_one_is_refused(arguments: list[str], said: str, run: Run) -> None:
    assert said in run(*arguments, code=2)


def test_shared_options_stand_under_the_heading_of_their_group() -> None:
    shared = ANY_PLACE | ACTS | EVALUATED
    for name, command in commands():
        for option in command.params:
            if isinstance(option, click.Option) and option.opts[-1] in shared:
                assert isinstance(option, GroupedOption), (name, option.opts)


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


def test_the_list_of_commands_says_in_a_sentence_what_each_one_does() -> None:
    with click.Context(cli, info_name="prbench", terminal_width=78) as context:
        page = cli.get_help(context)
    for heading, of_section in SECTIONS.items():
        assert f"\n{heading}:\n" in page
        for command in of_section:
            assert f"\n  {command.name:<12}  {first_sentence(command)}\n" in page
    assert {command.name for of_section in SECTIONS.values() for command in of_section} == set(cli.commands)


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
    assert run.out == ""
    assert said.startswith(f"Usage: {' '.join(['prbench', *arguments])} [OPTIONS]")
    assert said.count("\n") > 5


@pytest.mark.parametrize("command", ["import", "export"])
def test_a_group_that_works_without_a_command_shows_its_help_if_nothing_is_asked(command: str, run: Run) -> None:
    run(command)
    assert run.out.startswith(f"Usage: prbench {command} [OPTIONS]")
    assert run.err == ""


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; from flows.cli.main import main; main(['--help']); "
        "print({'prefect', 'duckdb', 'numpy', 'polars', 'pyarrow', 'pydantic', 'litellm', 'rich', 'warehouse', 'yaml'} "
        "& set(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "set()"
