"""Every command: its help, and its refusals in one line, which leave no file behind.

`tests/golden/commands.yaml` covers the rest: it is the table of commands with exit
codes and outputs, on warehouses with results.
"""

import re
import shlex
from pathlib import Path

import click
import pytest

from flows.cli.main import cli
from tests.flows.conftest import PROJECT, Run, commands_of
from tests.kit import row, written

SAMPLES = PROJECT / "warehouse" / "samples"
LEAVES = {
    name: command
    for name, command in commands_of()
    if not isinstance(command, click.Group)
}
REQUIRED_ARGUMENTS = {
    "adopt": ["--api-base", "http://nosuch/v1"],
    "import responses": ["nosuch.csv"],
    "import verdicts": ["nosuch.csv"],
    "import warehouse": ["nosuch"],
    "import results": ["nosuch.json"],
    "import reviews": ["nosuch.csv"],
    "export review": ["sheet.csv"],
    "export inspect": ["logs"],
    "export datasets": ["set"],
    "export tables": ["folder"],
    "export labelling": ["sheet.csv"],
    "backup": ["folder"],
    "restore": ["nosuch"],
    "publish": ["folder"],
    "certify": ["figures.zip"],
    "verify": ["nosuch.zip"],
    "diff": ["a", "b"],
    "cascade": ["a", "b"],
    "succeed": ["a", "b"],
    "weaknesses": ["a"],
    "criteria": ["never-met"],
    "figure": ["leaderboard"],
    "sql": ["select 1"],
}
"""Command -> required arguments."""
ADVICE = {
    "adopt": "name one that `prbench doctor` shows",
    "backup": "there is nothing to back up here; check --warehouse",
    "import responses": "no such file; check the path",
    "import results": "no such file; check the path",
    "import reviews": "no such file; check the path",
    "import verdicts": "no such file; check the path",
    "import warehouse": "not a complete export or publication, manifest.json is missing; check",
    "remove response": "name the responses to remove: their ids, or --model",
    "restore": "backup.json is missing; check the path",
    "verify": "is not a file; check the path",
}
"""Command -> what it says to do where nothing is stored, if not to run another command."""
WORKS_ALONE = {
    "run",
    "plan",
    "nightly",
    "backfill",
    "ingest",
    "benchmarks",
    "figures",
    "doctor",
    "serve",
}
"""Commands that can be the first to run in a folder."""


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty folder, in which the command is run."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def refused(folder: Path, run: Run):
    """Run a command, and return its one line of refusal, which must be its only effect."""

    def refusal(*arguments):
        line = run.refusal(*arguments, code=(1, 2))
        assert list(folder.iterdir()) == []
        assert line.startswith("prbench: ")
        return line.removeprefix("prbench: ").strip()

    return refusal


@pytest.mark.parametrize("width", [80, 110])
def test_help_is_whole_and_every_option_has_a_text(width):
    for name, command in [("", cli), *commands_of()]:
        with click.Context(
            command,
            info_name=f"prbench {name}",
            terminal_width=width - 2,
        ) as context:
            page = command.get_help(context)
        # An argument that can be repeated ends in `]...`.
        assert "..." not in page.replace("]...", ""), name
        assert max(map(len, page.splitlines())) <= width, name
        for option in command.params:
            if isinstance(option, click.Option):
                assert (option.help or "").endswith((".", "]")), (name, option.opts)


ROW_COMMANDS = {
    "leaderboard",
    "figure",
    "figures",
    "status",
    "plan",
    "diff",
    "judges",
    "criteria",
    "lengths",
    "reviews",
    "weaknesses",
    "conditions",
    "cascade",
    "benchmarks",
    "sql",
}
"""The commands that show figures or other rows."""


@pytest.mark.parametrize("option", ["file_format", "output", "is_wide"])
def test_all_commands_that_show_rows_share_the_options_of_rows(option):
    names = set()
    texts = set()
    for name, command in LEAVES.items():
        for parameter in command.params:
            if isinstance(parameter, click.Option) and parameter.name == option:
                names.add(name)
                texts.add((*parameter.opts, parameter.help))

    assert names == ROW_COMMANDS
    assert len(texts) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--json", "--format", "csv"], "--json and --format csv cannot be combined"),
        (["-o", "rows.xls"], "-o rows.xls: the ending is none of .csv, .json, "),
        (["-o", "rows"], "-o rows: the ending is none of .csv, .json, "),
    ],
)
@pytest.mark.parametrize("name", sorted(ROW_COMMANDS))
def test_contradicting_formats_and_unknown_endings_are_refused_before_anything_else(
    name,
    options,
    message,
    refused,
):
    assert message in refused(name, *REQUIRED_ARGUMENTS.get(name, ()), *options)


def parsed(words: list[str]) -> click.Command:
    """Return the command that these words call, after click has parsed its options."""
    command = cli
    while isinstance(command, click.Group) and words and words[0] in command.commands:
        command = command.commands[words[0]]
        words = words[1:]
    if isinstance(command, click.Group) and words and not words[0].startswith("-"):
        command = command.commands["tables"]  # `export FOLDER`
    with click.Context(command) as context:
        command.make_parser(context).parse_args(words)
    return command


def test_examples_are_commands_that_click_can_read():
    for name, command in [("", cli), *commands_of()]:
        # Below a mark for click and the heading, each line is an example; after spaces
        # there may be an explanation, or after `>` a file.
        for line in (command.epilog or "").splitlines()[2:]:
            words = shlex.split(re.split(r" {3,}| > ", line.strip())[0])
            assert parsed(words[words.index("prbench") + 1 :]) is not cli, (
                name,
                line,
            )


@pytest.mark.parametrize("name", LEAVES)
def test_every_command_has_an_example(name):
    assert f"prbench {name}" in LEAVES[name].epilog


@pytest.mark.parametrize(
    "document", ["README.md", "flows/operations.md", "flows/cli/guide.md"]
)
def test_commands_in_the_documents_are_ones_that_click_can_read(document):
    text = (PROJECT / document).read_text()
    lines = re.findall(r"^(?:\$ )?uv run prbench (.+)$", text, re.MULTILINE)
    assert lines
    for line in lines:
        assert parsed(shlex.split(re.split(r"\s+#", line)[0])) is not cli, line


@pytest.mark.parametrize(
    ("arguments", "code"),
    [([], 2), (["remove"], 2), (["import"], 0), (["export"], 0)],
)
def test_a_group_without_a_command_shows_its_help(arguments, code, run):
    help_page = run(*arguments, code=code)

    assert help_page == run.out + run.err  # nothing is on the other stream
    assert help_page.startswith(
        f"Usage: {' '.join(['prbench', *arguments])} [OPTIONS]"
    )
    assert help_page.count("\n") > 5


@pytest.mark.parametrize("name", sorted(LEAVES.keys() - WORKS_ALONE))
def test_where_nothing_is_stored_a_command_that_needs_data_says_what_to_do(
    name, refused
):
    line = refused(*name.split(), *REQUIRED_ARGUMENTS.get(name, ()))

    assert ADVICE.get(name, "here yet; run `prbench ingest` or `prbench run`") in line


@pytest.mark.parametrize("name", sorted(LEAVES))
def test_a_wrong_option_configuration_or_benchmark_is_refused(name, refused):
    words = [*name.split(), *REQUIRED_ARGUMENTS.get(name, ())]
    options = {parameter.name for parameter in LEAVES[name].params}

    assert f"`prbench {name} --help`" in refused(*words, "--nope")
    if "benchmark" in options:
        assert "known: healthbench, prbench" in refused(*words, "--benchmark", "nope")
    if "config" in options:
        assert "nope.yaml: no such file" in refused(*words, "--config", "nope.yaml")


@pytest.mark.parametrize(
    "name",
    [
        "run",
        "plan",
        "nightly",
        "backfill",
        "ingest",
        "sample",
        "judge",
        "select-hard",
    ],
)
def test_an_unknown_split_is_refused_without_a_warehouse(name, refused):
    assert "has no split 'nope'; known: sample" in refused(name, "--split", "nope")


@pytest.mark.parametrize(
    ("name", "vintage"),
    [("run", "2026-13-45"), ("backfill", "2026-02-30"), ("plan", "20261345")],
)
def test_a_new_vintage_that_looks_like_a_date_must_be_one(name, vintage, refused):
    line = refused(name, "--vintage", vintage)

    assert line.startswith(f"--vintage {vintage}: is not a date; write 2026-11-22")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["nightly", "--judge", "smollm2-judge"],
            "is not configured, or judges only within a cascade (did you mean"
            " `smollm2-135m-judge`?)",
        ),
        (
            ["plan", "--vintage", "all"],
            "--vintage all: works only for leaderboards and reports",
        ),
        (
            ["run", "--vintage", ""],
            "vintage '': is no label; write `base`, or a date",
        ),
        (["leaderboard", "--vintage", "a\nb"], "vintage 'a\\nb': is no label"),
        (["run", "--model", "smolm2-135m"], "(did you mean `smollm2-135m`?)"),
        (
            ["run", "--split", "smaple"],
            "has no split 'smaple' (did you mean `sample`?)",
        ),
        (
            ["run", "--benchmark", "prbnech"],
            "there is no 'prbnech' (did you mean `prbench`?)",
        ),
        (
            ["import", "responses", str(SAMPLES / "responses.jsonl")],
            "nothing is stored here yet; run `prbench ingest`",
        ),
        (
            ["import", "verdicts", str(SAMPLES / "labels.csv")],
            "nothing is stored here yet; run `prbench ingest`",
        ),
        (
            ["import", "--retract", "nope"],
            "nothing is stored here yet; run `prbench ingest`",
        ),
        (["import", "--list"], "nothing is stored here yet; run `prbench ingest`"),
        (["import", "--list", "--retract", "nope"], "cannot be combined"),
        (
            ["remove", "response", "--model", "nope"],
            "no response is stored there, so none can be removed",
        ),
    ],
)
def test_the_impossible_is_refused_without_a_warehouse(arguments, message, refused):
    assert message in refused(*arguments)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (
            "review",
            "reviewer: no model is configured that reviews criteria; name one under `reviewer:`",
        ),
        ("annotate", "annotator: no model is configured"),
        ("capabilities", "no model describes capabilities; set `capabilities"),
    ],
)
def test_an_analysis_without_a_model_is_refused(command, message, tmp_path, run):
    written(tmp_path, {"runs": [row("runs")]})

    assert message in run.refusal(command, "--warehouse", str(tmp_path), code=2)
