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
from contextlib import suppress
from pathlib import Path

import pytest

from flows.cli.main import main
from flows.cli.output import cell_text, markdown_text
from tasks.console import advance, notice, progress, shown_visibly
from tasks.console.tables import TableColumn, print_table
from tasks.llm.environment import guard_logs
from tasks.rules.text.characters import visible
from tests.flows.conftest import PRBENCH, Run, opened_terminal
from tests.kit import Patch, Printed, row, written

TITLE = "\x1b]0;owned\x07"
CLEAR = "\x1b[2J"
EVIL = f"{TITLE}{CLEAR}\x9b31m\x7f\u202eabc\u2066\u200b\U000e0041\r{CLEAR}end"
HARMLESS = re.compile(r"\x1b\[\d*(?:;\d+)*m|\x1b\[\?25[hl]|\x1b\[2K|\x1b\[\d?A|\r")
"""The control sequences that Rich itself writes."""


def commands_in(shown: str) -> list[str]:
    """Return the characters in a terminal's text that are not visible."""
    rest = shown.replace("\r\n", "\n").replace("\n", "").replace("\t", "")
    return [character for character in rest if visible(character) != character]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("warehouse")
    written(folder, {"runs": [row("runs", command=EVIL)]}).publish()
    return folder


def on_terminal(*arguments: str, stdin: bytes | None = None, **environment: str) -> str:
    """Return what the installed command writes to a terminal, as standard output and standard
    error.
    """
    ours, theirs = pty.openpty()
    environment = {
        **os.environ,
        "TERM": "xterm",
        "COLUMNS": "200",
        "NO_COLOR": "1",
        **environment,
    }
    outputs = {"stdout": theirs, "stderr": theirs}
    process = subprocess.Popen(
        [PRBENCH, *arguments], stdin=subprocess.DEVNULL, env=environment, **outputs
    )
    os.close(theirs)
    seen = b""
    with suppress(OSError):  # the other end is closed
        while read := os.read(ours, 65536):
            seen += read
    process.wait(timeout=60)
    os.close(ours)
    return seen.decode("utf-8", "surrogateescape")


@pytest.mark.parametrize(
    "file_format", ["table", *(pytest.param(n, marks=pytest.mark.slow) for n in ("csv", "json"))]
)
def test_what_a_query_finds_is_text_on_a_real_terminal(folder: Path, file_format: str) -> None:
    shown = on_terminal(
        "sql", "select command from runs", "--format", file_format, "--warehouse", str(folder)
    )
    assert commands_in(HARMLESS.sub("", shown)) == []
    assert "]0;owned" in shown
    assert "[2J" in shown
    assert r"\u202e" in shown
    if file_format == "json":
        assert json.loads(shown) == [{"command": EVIL}]


@pytest.mark.slow
def test_an_encoding_that_knows_ascii_alone_is_no_way_round(folder: Path) -> None:
    query = "select error('x\x1b[2Jy')"
    shown = on_terminal("sql", query, "--warehouse", str(folder), PYTHONIOENCODING="ascii")
    assert r"x\x1b[2Jy" in shown
    assert commands_in(shown) == []


@pytest.mark.parametrize("file_format", ["csv", "json", "jsonl"])
def test_machines_get_every_character(
    folder: Path, file_format: str, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    command = [
        "sql",
        "select command from runs",
        "--format",
        file_format,
        "--warehouse",
        str(folder),
    ]
    file = tmp_path / "rows"
    assert main([*command, "-o", str(file)]) == 0
    assert main(command) == 0
    piped = capfdbinary.readouterr().out
    of_rows = json.dumps([{"command": EVIL}], ensure_ascii=False, indent=2)
    of_line = json.dumps({"command": EVIL}, ensure_ascii=False)
    wanted = {
        "csv": f'command\n"{EVIL}"',
        "json": of_rows,
        "jsonl": of_line,
    }[file_format]
    assert f"{wanted}\n".encode() == piped == file.read_bytes()


def test_tables_and_markdown_are_for_people_in_a_pipe_too(capsys: Printed) -> None:
    text = "word " * 500
    column = TableColumn(
        "col", visible(f"col{CLEAR}"), [cell_text(cell) for cell in (EVIL, "a\r\nb", text)]
    )
    print_table([column], title=f"About {CLEAR}")
    print(markdown_text([f"col{CLEAR}"], [[EVIL]]))
    shown = capsys.readouterr().out
    assert commands_in(shown) == []
    assert shown.count(r"col\x1b[2J") == 2
    assert r"About \x1b[2J" in shown
    assert "a b" in shown
    assert text.strip() in shown


def test_what_any_command_prints_goes_through_the_guard(capsys: Printed) -> None:
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


def test_an_error_is_one_line_without_commands_and_its_traceback_too(
    tmp_path: Path, run: Run
) -> None:
    output = run("leaderboard", "-v", "--config", str(tmp_path / f"no{EVIL}\nsuch"), code=2)
    assert commands_in(output) == []
    assert output.splitlines()[-1].startswith("prbench: ")
    assert r"no\x1b]0;owned" in output.splitlines()[-1]


@pytest.mark.parametrize("label", [EVIL, "[/b]", "\x1b[8mm"])
def test_progress_bars_say_what_a_label_holds(label: str, monkeypatch: Patch) -> None:
    terminal = opened_terminal(monkeypatch, "stderr", n_columns=300)
    with shown_visibly(), progress("sample", {label: 2}):
        advance("sample", label, succeeded=True)
        notice(f"meanwhile {label}")
        sys.stderr.write(f"and {label}\n")
        advance("sample", label, succeeded=True)
    shown = terminal.getvalue()
    assert commands_in(HARMLESS.sub("", shown)) == []
    assert f"sample {visible(label)}" in re.sub(HARMLESS, "", shown)
    assert f"meanwhile {visible(label)}" in re.sub(HARMLESS, "", shown)
    assert f"and {visible(label)}" in re.sub(HARMLESS, "", shown)
    assert "\x1b[8m" not in shown


def test_log_records_are_text_whoever_shows_them() -> None:
    before = logging.getLogRecordFactory()
    try:
        guard_logs()
        guard_logs()
        shown = io.StringIO()
        log = logging.Logger("a.log")
        log.addHandler(logging.StreamHandler(shown))
        log.warning("model %s said\nmore", EVIL)
        try:
            raise ValueError(EVIL)
        except ValueError:
            log.exception("failed")
        log.warning("odd %d", "no number")
    finally:
        logging.setLogRecordFactory(before)
    assert commands_in(shown.getvalue()) == []
    assert "said\nmore" in shown.getvalue()
    assert r"ValueError: \x1b]0;owned" in shown.getvalue()
