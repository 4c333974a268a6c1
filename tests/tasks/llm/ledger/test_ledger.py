"""The ledger: durable before it is counted, one call for one request, and what it follows from what is stored."""

import asyncio
import contextlib
import fcntl
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TextIO

import pytest

from tasks.llm.calls.gateway import Gateway
from tasks.llm.ledger.ledger import Ledger
from tasks.llm.replies import Reply
from tasks.llm.request import Prices
from tasks.run.run_context import LEDGER, open_run_context
from tests.faults.answers import Behaviour
from tests.faults.server import Answer, FaultServer
from tests.kit import job_on
from tests.tasks.llm.conftest import Calling, call_to, failed, then

pytestmark = pytest.mark.usefixtures("hurried")

Serve = Callable[[Behaviour | Answer], FaultServer]
DEAR = Prices(1_000_000.0, None, 1_000_000.0, "a list")
"""A dollar a token."""


def stored(folder: Path, columns: str = "*") -> list[tuple[Any, ...]]:
    """What another connection reads."""
    rows: list[tuple[Any, ...]] = []
    for path in sorted(folder.glob("calls.sqlite")):
        connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
        rows += connection.execute(f"select {columns} from calls order by call_key, attempt")
        connection.close()
    return rows


def spend(calling: Calling, reply: Reply) -> None:
    async def work(_: Gateway, ledger: Ledger) -> None:
        ledger.mark_used(list(reply.paid))

    calling.inside(work)


def test_a_reply_is_on_disk_when_it_is_returned(calling: Calling, serve: Serve) -> None:
    server = serve(lambda request, _n: Answer(request["messages"][0]["content"].upper()))

    async def work(gateway: Gateway, _: Ledger) -> None:
        async def one(question: str) -> None:
            await gateway.complete(call_to(server, question))
            assert (question.upper(),) in stored(calling.folder, "text")

        await asyncio.gather(*(one(f"question {number}") for number in range(20)))

    calling.inside(work)
    assert len(stored(calling.folder)) == 20


def test_the_next_run_makes_no_call_again_that_was_answered(calling: Calling, serve: Serve) -> None:
    server = serve(Answer("A debt.", fingerprint="fp_1", reasoning_tokens=3))
    calls = [call_to(server, f"q{number}", name="openai/c", prices=DEAR) for number in range(5)]
    first, again = calling.together(*calls), calling.together(*calls)
    assert first == again
    assert len(server.book) == 5


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Answer(None, refusal="no"), "refused"), (Answer("cut", finish_reason="length"), "truncated"),
        (failed(400, "odd"), "provider_error"), (failed(400, "prompt is too long"), "context_length"),
    ],
)  # fmt: skip
def test_a_failure_that_does_not_pass_is_final_until_its_row_is_written(
    answer: Answer, status: str, calling: Calling, serve: Serve
) -> None:
    server = serve(answer)
    call = call_to(server)
    first = calling(call)
    assert (first.status, calling(call).status, len(server.book)) == (status, status, 1)
    spend(calling, first)
    server.behaviour = lambda _request, _number: Answer("now")
    later = calling(call)
    assert (later.status, later.text, later.attempts, len(server.book)) == ("ok", "now", 1, 2)
    assert later.paid != first.paid


def test_attempts_are_numbered_on_over_failures_runs_and_written_rows(calling: Calling, serve: Serve) -> None:
    calling.attempts, server = 2, serve(failed(503))
    call = call_to(server)
    spend(calling, calling(call))
    server.behaviour = then(Answer(""), Answer("now"))
    calling(call)
    rows = stored(calling.folder, "attempt, status, is_final, cell, run_id")
    assert rows == [
        (number, status, final, call.cell, "a-run")
        for number, status, final in [(1, "provider_error", 0), (2, "provider_error", 0), (3, "ok", 1)]
    ]


def test_attempts_that_failed_before_a_restart_count(calling: Calling, serve: Serve) -> None:
    calling.attempts, server = 1, serve(failed(503))
    call = call_to(server)
    calling(call)
    calling.attempts = 3
    reply = calling(call)
    assert (reply.status, reply.attempts, len(server.book)) == ("provider_error", 3, 3)


def test_a_call_whose_attempts_were_all_made_gets_one_more_after_a_restart(calling: Calling, serve: Serve) -> None:
    calling.attempts, server = 2, serve(then(failed(503), failed(503), failed(503), Answer("now")))
    call = call_to(server)
    assert calling(call).attempts == 2
    assert (calling(call).status, len(server.book)) == ("provider_error", 3)
    assert (calling(call).text, len(server.book)) == ("now", 4)


def test_the_same_request_for_two_cells_is_one_call(calling: Calling, serve: Serve) -> None:
    server = serve(Answer("one", delay_s=0.1))
    replies = calling.together(*(call_to(server, cell=cell) for cell in "abc"))
    replies += calling.together(*(call_to(server, cell=cell) for cell in "bd"))
    assert [reply.text for reply in replies if isinstance(reply, Reply)] == ["one"] * 5
    assert len(server.book) == 1


def test_what_a_call_cost_stands_on_the_cell_it_was_made_for_alone(calling: Calling, serve: Serve) -> None:
    server = serve(Answer("one two", delay_s=0.1, cached_tokens=0))
    calls = [call_to(server, "a b c", cell=cell, prices=DEAR) for cell in "abc"]
    for replies in (calling.together(*calls), calling.together(*calls)):
        costs = [reply.cost_usd for reply in replies if isinstance(reply, Reply)]
        tokens = [(reply.prompt_tokens, reply.completion_tokens) for reply in replies if isinstance(reply, Reply)]
        assert sorted(costs, key=str) == [0.0, 0.0, 5.0]
        assert sorted(tokens) == [(0, 0), (0, 0), (3, 2)]


def test_discarded_attempts_are_paid_by_their_cell_also_after_a_restart(calling: Calling, serve: Serve) -> None:
    server = serve(then(Answer("", usage={"prompt_tokens": 2, "completion_tokens": 5, "total_tokens": 7}), Answer("x")))
    call = call_to(server, "a b c", prices=DEAR)
    first, again = calling(call), calling(call)
    assert (first.cost_usd, first.attempts, len(server.book)) == (7.0 + 4.0, 2, 2)
    assert (again.cost_usd, again.attempts) == (first.cost_usd, first.attempts)


@pytest.mark.parametrize(
    "other",
    [
        {"question": "another question"}, {"name": "hosted_vllm/other"}, {"parameters": {"temperature": 0.5}},
        {"headers": {"x-team": "a"}},
    ],
)  # fmt: skip
def test_another_request_is_another_call(other: dict[str, Any], calling: Calling, serve: Serve) -> None:
    server = serve(Answer("x"))
    calling(call_to(server, cell="a"))
    calling(call_to(server, **{"cell": "a"} | other))
    assert len(server.book) == 2


def test_a_longer_time_limit_or_a_stream_is_the_same_call(calling: Calling, serve: Serve) -> None:
    server = serve(Answer("x"))
    for other in ({}, {"timeout_s": 99.0}, {"is_streamed": True}, {"fallback": {"temperature": 0}}, {"prices": DEAR}):
        assert calling(call_to(server, **other)).text == "x"
    assert len(server.book) == 1


def test_a_reply_holds_all_its_fields_in_the_next_run(calling: Calling, serve: Serve) -> None:
    call = call_to(serve(Answer("täglich \U0001f600 \x00 end", reasoning_tokens=2)), prices=DEAR)
    first = calling(call)
    assert first.latency_s is not None
    assert calling(call) == first


def test_two_processes_share_one_file_and_see_what_the_other_writes(calling: Calling, serve: Serve) -> None:
    server = serve(Answer("x"))
    other = Ledger(calling.folder)
    try:
        calling(call_to(server))
        assert [path.name for path in calling.folder.glob("*.sqlite")] == ["calls.sqlite"]
        call = call_to(server)
        found = other.history(call.key(call.parameters(call.target.parameters)))
        assert [entry.reply.text for entry in found.entries] == ["x"]
    finally:
        other.close()
    calling(call_to(server))
    assert len(server.book) == 1


def test_a_run_that_waits_until_another_process_has_checked_the_ledger_says_so_and_goes_on_with_other_work(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = job_on("sample", tmp_path)
    (tmp_path / LEDGER).mkdir()

    async def opened() -> None:
        async with open_run_context(job):
            pass

    async def run(lock: TextIO) -> str:
        opening = asyncio.create_task(opened())
        said = ""
        while "waiting" not in said:
            await asyncio.sleep(0.01)
            said += capsys.readouterr().err
        assert not opening.done()
        fcntl.flock(lock, fcntl.LOCK_UN)
        await opening
        return said

    with (tmp_path / LEDGER / "calls.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        release = threading.Timer(20, lambda: fcntl.flock(lock, fcntl.LOCK_UN))  # so that a failing test ends
        release.start()
        said = asyncio.run(asyncio.wait_for(run(lock), 15))
        release.cancel()
    assert said == f"{tmp_path / LEDGER / 'calls.sqlite'}: another process is checking it; waiting for that\n"


def test_a_run_that_is_cancelled_while_its_ledger_is_opened_leaves_it_to_others(tmp_path: Path) -> None:
    job = job_on("sample", tmp_path)

    async def opened() -> None:
        async with open_run_context(job):
            pass

    async def run() -> None:
        opening = asyncio.create_task(opened())
        for _ in iter((tmp_path / LEDGER / "calls.lock").exists, True):
            await asyncio.sleep(0)
        opening.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await opening

    asyncio.run(run())
    with (tmp_path / LEDGER / "calls.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
