"""The ledger: a reply is stored before it counts, equal requests are one call, and attempts are
counted across runs.
"""

import asyncio
import fcntl
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tasks.llm.ledger.entries import Entry
from tasks.llm.ledger.ledger import Ledger, spend_in
from tasks.llm.ledger.pruning import prune
from tasks.llm.replies import OK, Reply
from tasks.llm.request import Call, Prices, Target
from tasks.rules.errors import PipelineError
from tasks.rules.identity import adopted_key
from tasks.run.run_context import LEDGER, open_run_context
from tests.faults.server import HttpResponse
from tests.kit import Printed, job_on
from tests.tasks.llm.conftest import Calling, Serve, call_to, failed, then, written

pytestmark = pytest.mark.usefixtures("hurried")

DEAR = Prices(1_000_000.0, None, 1_000_000.0, "a list")
"""A dollar a token."""
USED = {
    "prompt_tokens": 3,
    "completion_tokens": 2,
    "total_tokens": 5,
    "prompt_tokens_details": {"cached_tokens": 1},
}


def stored(folder: Path, columns: str = "*") -> list[tuple[Any, ...]]:
    """Return the calls that another connection reads."""
    with closing(sqlite3.connect(f"file:{folder}/calls.sqlite?mode=ro", uri=True)) as connection:
        return connection.execute(
            f"select {columns} from calls order by call_key, attempt"
        ).fetchall()


async def test_a_reply_is_on_disk_when_it_is_returned(calling: Calling, serve: Serve) -> None:
    server = serve(lambda request, _n: HttpResponse(request["messages"][0]["content"].upper()))
    async with calling.opened() as (gateway, _):

        async def one(prompt: str) -> None:
            await gateway.complete(call_to(server, prompt))
            assert (prompt.upper(),) in stored(calling.folder, "text")

        await asyncio.gather(*(one(f"question {number}") for number in range(20)))
    assert len(stored(calling.folder)) == 20


def test_the_next_run_repeats_no_successful_call(calling: Calling, serve: Serve) -> None:
    server = serve(
        HttpResponse("täglich \U0001f600 \x00 end", fingerprint="fp_1", reasoning_tokens=3)
    )
    calls = [call_to(server, f"q{number}", name="openai/c", prices=DEAR) for number in range(5)]
    assert calling.at_once(*calls) == calling.at_once(*calls)
    assert len(server.book) == 5


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (HttpResponse(None, refusal="no"), "refused"),
        (HttpResponse("cut", finish_reason="length"), "truncated"),
        (failed(400, "odd"), "provider_error"),
        (failed(400, "prompt is too long"), "context_length"),
    ],
)
def test_a_lasting_failure_stays_until_its_row(
    sent: HttpResponse, status: str, calling: Calling, serve: Serve
) -> None:
    server = serve(sent)
    call = call_to(server)
    first = calling(call)
    assert status == first.status
    assert status == calling(call).status
    assert len(server.book) == 1
    calling.spend(first)
    server.behaviour = lambda _request, _number: HttpResponse("now")
    later = calling(call)
    assert later.status == "ok"
    assert later.text == "now"
    assert later.attempts == 1
    assert len(server.book) == 2
    assert later.paid != first.paid


def test_attempts_are_numbered_on_over_failures_runs_and_written_rows(
    calling: Calling, serve: Serve
) -> None:
    calling.attempts = 2
    server = serve(failed(503))
    call = call_to(server)
    calling.spend(calling(call))
    server.behaviour = then(HttpResponse(""), HttpResponse("now"))
    calling(call)
    assert [
        (1, "provider_error", 0, call.cell, "a-run"),
        (2, "provider_error", 0, call.cell, "a-run"),
        (3, "ok", 1, call.cell, "a-run"),
    ] == stored(calling.folder, "attempt, status, is_final, cell, run_id")


def test_a_call_whose_attempts_were_all_made_gets_one_more_after_a_restart(
    calling: Calling, serve: Serve
) -> None:
    calling.attempts = 2
    server = serve(then(failed(503), failed(503), failed(503), HttpResponse("now")))
    call = call_to(server)
    assert calling(call).attempts == 2
    assert calling(call).status == "provider_error"
    assert len(server.book) == 3
    assert calling(call).text == "now"
    assert len(server.book) == 4


def test_the_same_request_for_many_cells_is_one_call_that_one_of_them_pays(
    calling: Calling, serve: Serve
) -> None:
    server = serve(HttpResponse("one two", delay_s=0.1, cached_tokens=0))
    calls = [call_to(server, "a b c", cell=cell, prices=DEAR) for cell in "abc"]
    for replies in (calling.at_once(*calls), calling.at_once(*calls)):
        paid = [(reply.cost_usd, reply.prompt_tokens, reply.completion_tokens) for reply in replies]
        assert sorted(paid) == [(0.0, 0, 0), (0.0, 0, 0), (5.0, 3, 2)]
    assert len(server.book) == 1


def test_discarded_attempts_are_paid_by_their_cell_also_after_a_restart(
    calling: Calling, serve: Serve
) -> None:
    server = serve(then(HttpResponse("", usage=USED), HttpResponse("x")))
    call = call_to(server, "a b c", prices=DEAR)
    for reply in (calling(call), calling(call)):
        assert reply.cost_usd == 5.0 + 4.0
        assert reply.attempts == 2
        assert len(server.book) == 2


def test_a_longer_time_limit_or_a_stream_is_the_same_call(calling: Calling, serve: Serve) -> None:
    server = serve(HttpResponse("x"))
    for other in (
        {},
        {"timeout_s": 99.0},
        {"is_streamed": True},
        {"fallback": {"temperature": 0}},
        {"prices": DEAR},
    ):
        assert calling(call_to(server, **other)).text == "x"
    assert len(server.book) == 1


def test_a_call_is_the_first_trial_unless_it_names_another(serve: Serve) -> None:
    call = call_to(serve(HttpResponse("x")))

    key = call.key({})

    assert key == replace(call, trial=1).key({})
    assert key != replace(call, trial=2).key({})


def test_an_adopted_reply_is_found_only_where_the_address_is_from_the_environment(
    tmp_path: Path,
) -> None:
    address = "http://127.0.0.1:9/v1"
    without_address = Call(Target("m"), [{"role": "user", "content": "a question"}], "a-cell")
    adopted = entry(adopted_key(earlier_key=without_address.key({}), address=address), None)
    written(tmp_path, [adopted])
    configured = replace(without_address, target=Target("m", address))
    from_environment = replace(
        without_address, target=Target("m", address, address_variable="M_API_BASE")
    )

    with closing(Ledger(tmp_path)) as ledger:
        entries_of_configured = ledger.history_of(configured, {}).entries
        entries_from_environment = ledger.history_of(from_environment, {}).entries

    assert entries_of_configured == ()
    assert [adopted_entry.reply.text for adopted_entry in entries_from_environment] == ["{true}"]


async def use(folder: Path) -> None:
    """Open and close a run context."""
    async with open_run_context(job_on("sample", folder)):
        pass


async def test_a_run_says_that_it_waits_for_another_process_s_check(
    tmp_path: Path, capsys: Printed
) -> None:
    (tmp_path / LEDGER).mkdir()
    printed = ""
    with (tmp_path / LEDGER / "calls.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        opening = asyncio.create_task(use(tmp_path))
        while "waiting" not in printed:
            assert not opening.done()
            await asyncio.sleep(0.01)
            printed += capsys.readouterr().err
        fcntl.flock(lock, fcntl.LOCK_UN)
        await opening
    assert (
        f"{tmp_path / LEDGER / 'calls.sqlite'}: another process is checking it; waiting for that\n"
        == printed
    )


LOGPROBS = (("{", -0.01), ("true", -0.5), ("}", 0.0))


def entry(
    key: str, logprobs: tuple[tuple[str, float], ...] | None, finished_at_s: float = 1.0
) -> Entry:
    reply = Reply(OK, "{true}", logprobs=logprobs)
    return Entry(key, 1, f"cell of {key}", "a-run", "m", "", "{}", reply, True, finished_at_s)


def kept(folder: Path, *keys: str) -> list[tuple[Any, Any]]:
    """Texts and log probabilities of stored replies."""
    with closing(Ledger(folder)) as ledger:
        replies: list[Any] = [ledger.history(key).reply_for(f"cell of {key}") for key in keys]
    return [(reply.text, reply.logprobs) for reply in replies]


def test_log_probabilities_come_back_and_go_with_their_reply_and_damaged_ones_are_unknown(
    tmp_path: Path,
) -> None:
    written(tmp_path, [entry("a", LOGPROBS), entry("b", None), entry("c", LOGPROBS, 9.0)])
    assert kept(tmp_path, "a", "b") == [("{true}", LOGPROBS), ("{true}", None)]
    assert prune(tmp_path, 5.0, lambda cells: dict.fromkeys(cells, True)).entries == 2
    with opened(tmp_path) as connection:
        assert connection.execute("select call_key from logprobs").fetchall() == [("c",)]
        connection.execute("update logprobs set tokens = '[[1'")
    assert kept(tmp_path, "c") == [("{true}", None)]


@contextmanager
def opened(folder: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(folder / "calls.sqlite", isolation_level=None)) as connection:
        yield connection


def test_every_attempt_counts_with_what_is_known_of_it(calling: Calling, serve: Serve) -> None:
    assert spend_in(calling.folder) == []
    calling.attempts = 1
    calling(
        call_to(serve(HttpResponse("late", delay_s=2.0)), timeout_s=0.2, prices=DEAR)
    )  # may be billed
    calling(call_to(serve(failed(429)), prices=DEAR))  # the provider refused it
    calling(call_to(serve(HttpResponse("x", usage=None)), "no report", prices=DEAR))
    calling(call_to(serve(HttpResponse("x", usage=USED)), "no price"))
    calling.attempts = 5
    calling(
        call_to(
            serve(then(failed(503), HttpResponse("", usage=USED), HttpResponse("x", usage=USED))),
            prices=DEAR,
        )
    )
    (row,) = spend_in(calling.folder)
    assert len(row.pop("day")) == 10
    assert row == {
        "run_id": "a-run",
        "purpose": "unknown",
        "called_model": "hosted_vllm/candidate",
        "calls": 7,
        "failed_calls": 4,
        "unpriced_calls": 3,
        "prompt_tokens": 9,
        "cached_tokens": 3,
        "completion_tokens": 6,
        "cost_usd": 10.0,
    }


@pytest.mark.parametrize(
    ("version", "why"), [(7, "use the prbench that wrote it"), (2, "CHANGELOG.md")]
)
def test_a_file_of_another_version_is_refused_and_kept(
    calling: Calling, serve: Serve, version: int, why: str
) -> None:
    server = serve(HttpResponse("x"))
    calling(call_to(server))
    with opened(calling.folder) as connection:
        connection.execute(f"pragma user_version = {version}")
    with pytest.raises(
        PipelineError, match=rf"calls\.sqlite: is of version {version}, .*{why}"
    ) as error:
        calling(call_to(server))
    assert len(str(error.value).splitlines()) == 1
    with opened(calling.folder) as connection:
        assert (version,) == connection.execute("pragma user_version").fetchone()
        assert connection.execute("select count(*) from calls").fetchone() == (1,)
    assert not list(calling.folder.glob("damaged-*"))
