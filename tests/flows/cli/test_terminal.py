"""Texts of models, configurations and files: a terminal gets them as text, never as control
sequences.
"""

import io
import json
import logging
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from flows.cli.main import main
from flows.cli.output import cell_text, markdown_text
from tasks.console import advance, notice, progress, shown_visibly
from tasks.console.tables import TableColumn, print_table
from tasks.llm.redaction import guard_logs
from tasks.rules.text.characters import visible
from tests.flows.conftest import PRBENCH, opened_terminal
from tests.kit import row, written

TITLE = "\x1b]0;owned\x07"
CLEAR = "\x1b[2J"
EVIL = f"{TITLE}{CLEAR}\x9b31m\x7f\u202eabc\u2066\u200b\U000e0041\r{CLEAR}end"
HARMLESS = re.compile(r"\x1b\[\d*(?:;\d+)*m|\x1b\[\?25[hl]|\x1b\[2K|\x1b\[\d?A|\r")
"""The control sequences that Rich itself writes."""


def commands_in(text: str) -> list[str]:
    """Return the characters in a terminal's text that are not visible."""
    rest = text.replace("\r\n", "\n").replace("\n", "").replace("\t", "")
    return [character for character in rest if visible(character) != character]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("warehouse")
    written(folder, {"runs": [row("runs", command=EVIL)]}).publish()
    return folder


def on_terminal(*arguments: str, **environment: str) -> str:
    """Return what the installed command writes to a terminal, as standard output and standard
    error.
    """
    ours, theirs = pty.openpty()
    usual = {
        "TERM": "xterm",
        "COLUMNS": "200",
        "NO_COLOR": "1",
    }
    process = subprocess.Popen(
        [PRBENCH, *arguments],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env=os.environ | usual | environment,
    )
    os.close(theirs)
    output = b""
    with suppress(OSError), os.fdopen(ours, "rb", buffering=0) as terminal:
        # Reading fails when the other end is closed.
        for block in iter(lambda: terminal.read(65536), b""):
            output += block
    process.wait(timeout=60)
    return output.decode("utf-8", "surrogateescape")


def test_what_a_query_finds_is_text_on_a_real_terminal(folder):
    output = on_terminal(
        "sql", "select command from runs", "--warehouse", str(folder)
    )

    assert commands_in(HARMLESS.sub("", output)) == []
    assert "]0;owned" in output
    assert "[2J" in output
    assert r"\u202e" in output


@pytest.mark.parametrize("file_format", ["csv", "json"])
def test_a_format_for_machines_is_text_on_a_terminal(
    folder, file_format, monkeypatch
):
    terminal = opened_terminal(monkeypatch, "stdout", n_columns=200)

    query = ["sql", "select command from runs", "--format", file_format]
    assert main([*query, "--warehouse", str(folder)]) == 0

    output = terminal.getvalue()
    assert commands_in(output) == []
    assert r"\u202e" in output
    if file_format == "json":
        assert json.loads(output) == [{"command": EVIL}]


@pytest.mark.slow
def test_an_encoding_that_knows_ascii_alone_is_no_way_round(folder):
    query = "select error('x\x1b[2Jy')"

    output = on_terminal(
        "sql",
        query,
        "--warehouse",
        str(folder),
        PYTHONIOENCODING="ascii",
    )

    assert r"x\x1b[2Jy" in output
    assert commands_in(output) == []


@pytest.mark.parametrize(
    ("file_format", "text"),
    [
        ("csv", f'command\n"{EVIL}"\n'),
        (
            "json",
            json.dumps([{"command": EVIL}], ensure_ascii=False, indent=2) + "\n",
        ),
        ("jsonl", json.dumps({"command": EVIL}, ensure_ascii=False) + "\n"),
    ],
)
def test_machines_get_every_character(
    folder, file_format, text, tmp_path, capfdbinary
):
    file = tmp_path / "rows"
    command = ["sql", "select command from runs", "--format", file_format]
    command += ["--warehouse", str(folder)]

    assert main([*command, "-o", str(file)]) == 0
    assert main(command) == 0

    assert file.read_bytes() == text.encode()
    assert capfdbinary.readouterr().out == text.encode()


def test_tables_are_for_people_in_a_pipe_too(capsys):
    text = "word " * 500
    cells = [cell_text(value) for value in (EVIL, "a\r\nb", text)]

    print_table(
        [TableColumn("col", visible(f"col{CLEAR}"), cells)], title=f"About {CLEAR}"
    )

    output = capsys.readouterr().out
    assert commands_in(output) == []
    assert r"col\x1b[2J" in output
    assert r"About \x1b[2J" in output
    assert "a b" in output
    assert text.strip() in output


def test_markdown_is_for_people_everywhere():
    text = markdown_text([f"col{CLEAR}"], [[EVIL]])

    assert commands_in(text) == []
    assert r"col\x1b[2J" in text


def test_what_any_command_prints_goes_through_the_guard(capsys):
    with shown_visibly():
        print(EVIL)
        print(EVIL, file=sys.stderr)
        sys.stdout.writelines([f"{CLEAR}\n"])
    print("after")

    output = capsys.readouterr()
    assert commands_in(output.out + output.err) == []
    assert output.out.startswith(
        r"\x1b]0;owned\x07\x1b[2J\x9b31m\x7f\u202eabc\u2066\u200b\U000e0041\r\x1b[2Jend"
    )
    assert output.out.endswith("after\n")


def test_an_error_is_one_line_without_commands_and_its_traceback_too(tmp_path, run):
    output = run(
        "leaderboard",
        "-v",
        "--config",
        str(tmp_path / f"no{EVIL}\nsuch"),
        code=2,
    )

    assert commands_in(output) == []
    assert output.splitlines()[-1].startswith("prbench: ")
    assert r"no\x1b]0;owned" in output.splitlines()[-1]


@pytest.mark.parametrize("label", [EVIL, "[/b]", "\x1b[8mm"])
def test_progress_bars_say_what_a_label_holds(label, monkeypatch):
    terminal = opened_terminal(monkeypatch, "stderr", n_columns=300)

    with shown_visibly(), progress("sample", {label: 2}):
        advance("sample", label, succeeded=True)
        notice(f"meanwhile {label}")
        sys.stderr.write(f"and {label}\n")
        advance("sample", label, succeeded=True)

    assert "\x1b[8m" not in terminal.getvalue()
    output = HARMLESS.sub("", terminal.getvalue())
    assert commands_in(output) == []
    assert f"sample {visible(label)}" in output
    assert f"meanwhile {visible(label)}" in output
    assert f"and {visible(label)}" in output


@pytest.mark.parametrize("n_stream", [1, 2])
def test_a_command_whose_output_is_closed_ends_without_a_traceback(n_stream):
    command = ["sh", "-c", f"{PRBENCH} --help {n_stream}>&-"]

    process = subprocess.run(command, capture_output=True, text=True, check=False)

    assert process.returncode == 0
    assert process.stderr == ""


@pytest.fixture
def guarded_log() -> Iterator[tuple[logging.Logger, io.StringIO]]:
    """A logger behind the guard of logs, and its output."""
    factory = logging.getLogRecordFactory()
    guard_logs()
    guard_logs()
    output = io.StringIO()
    logger = logging.Logger("a.log")
    logger.addHandler(logging.StreamHandler(output))
    yield logger, output
    logging.setLogRecordFactory(factory)


def test_log_records_are_text_whoever_shows_them(guarded_log):
    logger, output = guarded_log

    logger.warning("model %s wrote\nmore", EVIL)
    logger.error("failed", exc_info=ValueError(EVIL))
    logger.warning("odd %d", "no number")

    assert commands_in(output.getvalue()) == []
    assert "wrote\nmore" in output.getvalue()
    assert r"ValueError: \x1b]0;owned" in output.getvalue()
