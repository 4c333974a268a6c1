"""What was spent: every attempt, also those that came to nothing, exact after a kill and a damage."""

import os
import signal
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tasks.llm.ledger.ledger import Ledger, spend_in
from tasks.llm.request import Prices
from tasks.rules.errors import PipelineError
from tests.faults.answers import Behaviour
from tests.faults.server import Answer, FaultServer
from tests.tasks.llm.conftest import Calling, call_to, failed, then
from tests.tasks.llm.ledger.test_ledger_faults import damage, filled, run

pytestmark = pytest.mark.usefixtures("hurried")

Serve = Callable[[Behaviour | Answer], FaultServer]
DEAR = Prices(1_000_000.0, None, 1_000_000.0, "a list")
"""A dollar a token."""
USED = {"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5, "prompt_tokens_details": {"cached_tokens": 1}}


@contextmanager
def opened(folder: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(folder / "calls.sqlite", isolation_level=None)) as connection:
        yield connection


def total(folder: Path, name: str) -> Any:
    return sum(row[name] for row in spend_in(folder))


def test_every_attempt_counts_with_what_is_known_of_it(calling: Calling, serve: Serve) -> None:
    server = serve(then(failed(503), Answer("", usage=USED), Answer("x", usage=USED)))
    calling.attempts = 5
    calling(call_to(server, prices=DEAR))
    (row,) = spend_in(calling.folder)
    assert len(row.pop("day")) == 10
    assert row == {
        "run_id": "a-run", "purpose": "unknown", "called_model": "hosted_vllm/candidate", "calls": 3,
        "failed_calls": 2, "unpriced_calls": 0, "prompt_tokens": 6, "cached_tokens": 2, "completion_tokens": 4,
        "cost_usd": 10.0,
    }  # fmt: skip


def test_a_call_that_nobody_knows_the_cost_of_is_counted_as_such(calling: Calling, serve: Serve) -> None:
    calling.attempts = 1
    calling(call_to(serve(Answer("late", delay_s=2.0)), timeout_s=0.2, prices=DEAR))  # the provider may charge it
    calling(call_to(serve(failed(429)), prices=DEAR))  # it was turned away
    calling(call_to(serve(Answer("x", usage=None)), "no report", prices=DEAR))
    calling(call_to(serve(Answer("x", usage=USED)), "no price"))
    calling(call_to(serve(Answer("x", usage=USED)), "known", prices=DEAR))
    (row,) = spend_in(calling.folder)
    assert (row["calls"], row["failed_calls"], row["unpriced_calls"], row["cost_usd"]) == (5, 2, 3, 5.0)


def test_what_was_spent_is_exact_after_a_kill(tmp_path: Path) -> None:
    process = run(tmp_path)
    assert process.stdout is not None
    for line in process.stdout:
        if int(line) >= 100:
            os.kill(process.pid, signal.SIGKILL)
            break
    process.communicate()
    with opened(tmp_path) as connection:
        (kept,) = connection.execute("select count(*) from calls").fetchone()
    assert kept > 100
    assert total(tmp_path, "calls") == kept


def test_what_two_processes_spend_is_summed_by_run_and_model(calling: Calling, serve: Serve) -> None:
    server = serve(Answer("x", usage=USED))
    other = Ledger(calling.folder)
    calling.together(*(call_to(server, f"q{n}", prices=DEAR) for n in range(3)))
    other.close()
    calling.together(*(call_to(server, f"r{n}", prices=DEAR) for n in range(4)))
    calling(call_to(server, name="hosted_vllm/other"))
    rows = [(row["called_model"], row["calls"], row["cost_usd"]) for row in spend_in(calling.folder)]
    assert rows == [("hosted_vllm/candidate", 7, 35.0), ("hosted_vllm/other", 1, 0.0)]
    assert not [path for path in calling.folder.iterdir() if path.name.endswith(("-wal", "-shm"))]


@pytest.mark.parametrize(("version", "why"), [(7, "newer than this program"), (2, "older than this program")])
def test_a_file_of_another_version_is_refused_with_one_line_and_left_alone(
    calling: Calling, serve: Serve, version: int, why: str
) -> None:
    server = serve(Answer("x"))
    calling(call_to(server))
    with opened(calling.folder) as connection:
        connection.execute(f"pragma user_version = {version}")
        connection.execute("drop table logprobs")  # with the tables of today an older number is damage
    with pytest.raises(PipelineError, match=rf"calls\.sqlite: is of version {version}, {why}") as told:
        calling(call_to(server))
    assert len(str(told.value).splitlines()) == 1
    with opened(calling.folder) as connection:
        assert connection.execute("pragma user_version").fetchone() == (version,)
        assert connection.execute("select count(*) from calls").fetchone() == (1,)
    assert not list(calling.folder.glob("damaged-*"))


def test_a_damaged_file_keeps_what_was_spent_though_calls_are_lost(calling: Calling, serve: Serve) -> None:
    path = filled(calling, serve(Answer("word " * 100)))
    before = spend_in(calling.folder)
    damage(path, "middle")
    calling.inside(nothing)
    assert len(list(calling.folder.glob("damaged-*.sqlite"))) == 1
    assert spend_in(calling.folder) == before
    with opened(calling.folder) as connection:
        (kept,) = connection.execute("select count(*) from calls").fetchone()
    assert kept < before[0]["calls"] == 120


def test_sums_that_are_lost_with_the_damage_are_those_of_the_saved_calls(calling: Calling, serve: Serve) -> None:
    filled(calling, serve(Answer("word " * 100)))
    with opened(calling.folder) as connection:
        (page,) = connection.execute("select rootpage from sqlite_master where name = 'spend'").fetchone()
        (size,) = connection.execute("pragma page_size").fetchone()
    with (calling.folder / "calls.sqlite").open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xa5" * size)
    calling.inside(nothing)
    assert len(list(calling.folder.glob("damaged-*.sqlite"))) == 1
    assert (total(calling.folder, "calls"), {row["purpose"] for row in spend_in(calling.folder)}) == (120, {"unknown"})


def test_spend_of_a_file_that_another_program_has_locked_is_one_line_that_says_so(
    calling: Calling, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    calling(call_to(serve(Answer("x"))))
    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *given, **named: connect(*given, **named | {"timeout": 0.05}))
    with closing(connect(calling.folder / "calls.sqlite", isolation_level=None)) as holder:
        holder.execute("pragma locking_mode = exclusive")
        holder.execute("begin exclusive")
        with pytest.raises(PipelineError, match="another program is using it; try again later") as told:
            spend_in(calling.folder)
    assert len(str(told.value).splitlines()) == 1


def test_where_there_is_no_ledger_nothing_was_spent(tmp_path: Path) -> None:
    assert spend_in(tmp_path / "ledger") == []


async def nothing(*_: Any) -> None:
    """Open the ledger and close it."""
