"""The ledger when things go wrong: kills, a full disk, damaged files, other hands on the file."""

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tasks.llm.ledger.entries import Entry
from tasks.llm.ledger.ledger import Ledger
from tasks.llm.replies import Reply
from tasks.rules.errors import PipelineError
from tests.faults.answers import Behaviour
from tests.faults.server import Answer, FaultServer
from tests.tasks.llm.conftest import Calling, call_to
from tests.tasks.llm.ledger.test_ledger import spend, stored

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("hurried")]

ROOT = Path(__file__).parents[4]
Serve = Callable[[Behaviour | Answer], FaultServer]
RUN = """
import asyncio, resource, sys
from pathlib import Path
from tasks.llm.ledger.entries import Entry
from tasks.llm.ledger.ledger import Ledger
from tasks.llm.replies import Reply
from tasks.rules.errors import PipelineError

async def main(folder, most_bytes):
    ledger = Ledger(Path(folder))
    if most_bytes:
        import signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes))
    number = 0
    while True:
        entry = Entry(f"key-{number}", 1, f"cell-{number}", "a-run", "m", "", "{}", Reply("ok", "x" * 2000), True)
        try:
            await ledger.record(entry)
        except PipelineError as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            raise SystemExit(error.exit_code)
        print(number, flush=True)
        number += 1

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


def run(folder: Path, most_bytes: int = 0) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", RUN, str(folder), str(most_bytes)], cwd=ROOT, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def test_a_process_that_is_killed_loses_nothing_that_it_was_told_is_stored(tmp_path: Path) -> None:
    process = run(tmp_path)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 150:
            os.kill(process.pid, signal.SIGKILL)
            break
    acknowledged = int(line) + 1 + len(process.stdout.read().split())
    assert process.wait() == -signal.SIGKILL
    kept = {key for (key,) in stored(tmp_path, "call_key")}
    assert kept >= {f"key-{number}" for number in range(acknowledged)}
    process.communicate()


def test_a_full_disk_is_one_line_that_names_the_file_and_what_was_stored_stays(tmp_path: Path) -> None:
    process = run(tmp_path, most_bytes=1_000_000)
    said, complaint = process.communicate(timeout=60)
    assert process.returncode == 1
    lines = complaint.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("PipelineError: ")
    assert str(tmp_path / "calls.sqlite") in lines[0]
    acknowledged = said.split()
    assert len(acknowledged) > 20
    assert {key for (key,) in stored(tmp_path, "call_key")} == {f"key-{number}" for number in acknowledged}


def filled(calling: Calling, server: FaultServer, number: int = 120) -> Path:
    """A ledger with many calls, closed, all of it in one file."""
    calling.concurrency = 16
    calling.together(*(call_to(server, f"question {n} " + "word " * 100) for n in range(number)))
    path = calling.folder / "calls.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("pragma wal_checkpoint(truncate)")
    connection.close()
    assert path.stat().st_size > 40_000
    return path


def damage(path: Path, how: str) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        if how == "header":
            file.write(b"no database at all, sorry" * 4)
        elif how == "middle":
            file.seek(size // 2 // 4096 * 4096)
            file.write(b"\xa5" * 4096)
        else:
            file.truncate(size // 2 + 100)


def test_a_closed_ledger_is_whole_in_its_one_file(calling: Calling, serve: Serve) -> None:
    calling(call_to(serve(Answer("x"))))
    assert [path.name for path in calling.folder.iterdir() if path.suffix != ".lock"] == ["calls.sqlite"]


def test_failures_that_have_a_row_are_no_answer_after_damage_either(calling: Calling, serve: Serve) -> None:
    server = serve(
        lambda r, _n: Answer("w " * 200) if "word" in r["messages"][0]["content"] else Answer(None, refusal="x")
    )
    call = call_to(server, "a refused one")
    spend(calling, calling(call))
    path = filled(calling, server)
    with path.open("r+b") as file:
        file.seek(path.stat().st_size - 4096)
        file.write(b"\xa5" * 4096)
    server.behaviour = lambda _request, _number: Answer("now")
    assert (calling(call).text, len(list(calling.folder.glob("damaged-*.sqlite")))) == ("now", 1)


def test_a_file_that_somebody_else_has_locked_is_not_taken_for_damaged(
    calling: Calling, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = filled(calling, serve(Answer("word " * 100)))
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **named: connect(*given, **named | {"timeout": 0.2}))
    holder = connect(path, isolation_level=None)
    holder.execute("pragma locking_mode = exclusive")
    holder.execute("begin exclusive")
    try:
        with pytest.raises(PipelineError, match="lock"):
            calling(call_to("http://127.0.0.1:9/v1"))
    finally:
        holder.close()
    assert not list(calling.folder.glob("damaged-*"))


@pytest.mark.parametrize("place", ["a file", "below a file"])
def test_a_folder_that_cannot_be_written_is_one_line(place: str, tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("x")
    folder = tmp_path / "taken" / "below" if place == "below a file" else tmp_path / "taken"
    with pytest.raises(PipelineError, match="cannot be written") as caught:
        Ledger(folder)
    assert str(folder) in str(caught.value)


def test_a_ledger_that_another_machine_writes_now_is_left_as_it_is(tmp_path: Path) -> None:
    lost: list[str] = []
    replies = [Entry(f"key-{number}", 1, "c", "r", "m", "", "{}", Reply("ok", "x"), True) for number in range(2)]

    async def write() -> dict[str, bytes]:
        ledger = Ledger(tmp_path, lambda: next(iter(lost), None))
        await ledger.record(replies[0])
        before = files()
        lost.append("node7 took over")
        with pytest.raises(PipelineError, match="node7 took over"):
            ledger.refuse_if_broken()
        with pytest.raises(PipelineError, match="node7 took over"):
            await ledger.record(replies[1])
        ledger.close()
        return before

    def files() -> dict[str, bytes]:
        return {name: (tmp_path / name).read_bytes() for name in ("calls.sqlite", "calls.sqlite-wal")}

    assert asyncio.run(write()) == files()
