"""The ledger: a reply is stored before it counts, equal requests are one call, and attempts are
counted across runs.
"""

import asyncio
import fcntl
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tasks.llm.ledger.ledger import Ledger, spend_in
from tasks.llm.ledger.pruning import prune
from tasks.llm.replies import Logprobs, Reply
from tasks.llm.request import Call, Prices, Target
from tasks.rules.errors import PipelineError
from tasks.rules.identity import adopted_key
from tasks.run.run_context import LEDGER, open_run_context
from tests.faults.behaviours import prompt_of
from tests.faults.server import HttpResponse
from tests.kit import job_on, one_line, write_calls
from tests.tasks.llm.conftest import (
    call_to,
    calls_to,
    failed,
    responding_with,
)
from tests.tasks.llm.ledger.conftest import LOGPROBS, database, entry

pytestmark = pytest.mark.usefixtures("hurried")

DOLLAR_A_TOKEN = Prices(1_000_000.0, None, 1_000_000.0, "a list")
USAGE = {
    "prompt_tokens": 3,
    "completion_tokens": 2,
    "total_tokens": 5,
    "prompt_tokens_details": {"cached_tokens": 1},
}


def stored_calls(
    folder: Path,
    columns: str = "*",
) -> list[tuple[Any, ...]]:
    """Return the calls that another connection reads."""
    query = f"select {columns} from calls order by call_key, attempt"
    with database(folder) as connection:
        return connection.execute(query).fetchall()


async def test_a_reply_is_on_disk_when_it_is_returned(calling, serve):
    server = serve(lambda request, _: HttpResponse(prompt_of(request).upper()))

    async with calling.opened() as (gateway, _):

        async def complete(call):
            reply = await gateway.complete(call)
            assert (reply.text,) in stored_calls(calling.folder, "text")

        await asyncio.gather(*(complete(call) for call in calls_to(server, 20)))

    assert len(stored_calls(calling.folder)) == 20


def test_the_next_run_repeats_no_successful_call(calling, serve):
    text = "täglich \U0001f600 \x00 end"
    server = serve(HttpResponse(text, fingerprint="fp_1", reasoning_tokens=3))
    calls = calls_to(server, 5, name="openai/c", prices=DOLLAR_A_TOKEN)

    replies = calling.call_at_once(*calls)
    later_replies = calling.call_at_once(*calls)

    assert later_replies == replies
    assert len(server.book) == 5


LASTING_FAILURES = [
    (HttpResponse(None, refusal="no"), "refused"),
    (HttpResponse("cut", finish_reason="length"), "truncated"),
    (failed(400, "odd"), "provider_error"),
    (failed(400, "prompt is too long"), "context_length"),
]


@pytest.mark.parametrize(("http_response", "status"), LASTING_FAILURES)
def test_a_lasting_failure_stays_until_it_is_stored_in_its_row(
    http_response,
    status,
    calling,
    serve,
):
    server = serve(http_response)
    call = call_to(server)

    first_reply = calling(call)
    second_reply = calling(call)
    n_requests = len(server.book)
    calling.mark_spent(first_reply)
    server.behaviour = responding_with(HttpResponse("now"))
    reply_after_row = calling(call)

    assert first_reply.status == status
    assert second_reply.status == status
    assert n_requests == 1
    assert reply_after_row.text == "now"
    assert reply_after_row.attempts == 1
    assert reply_after_row.ledger_keys != first_reply.ledger_keys


def test_attempts_are_numbered_on_over_failures_runs_and_written_rows(calling, serve):
    server = serve(failed(503))
    call = call_to(server, cell="a-cell")
    calling.mark_spent(calling(call))

    server.behaviour = responding_with(HttpResponse(""), HttpResponse("now"))
    calling(call)

    assert stored_calls(
        calling.folder, "attempt, status, is_final, cell, run_id"
    ) == [
        (1, "provider_error", 0, "a-cell", "a-run"),
        (2, "provider_error", 0, "a-cell", "a-run"),
        (3, "ok", 1, "a-cell", "a-run"),
    ]


def test_a_call_whose_attempts_were_all_made_gets_one_more_in_each_run(
    calling, serve
):
    server = serve(
        responding_with(failed(503), failed(503), failed(503), HttpResponse("now"))
    )
    call = call_to(server)

    first_reply = calling(call)
    second_reply = calling(call)
    n_requests = len(server.book)
    third_reply = calling(call)

    assert first_reply.attempts == 2
    assert second_reply.status == "provider_error"
    assert n_requests == 3
    assert third_reply.text == "now"
    assert len(server.book) == 4


def test_the_same_request_for_many_cells_is_one_call_that_one_of_them_pays(
    calling,
    serve,
):
    server = serve(HttpResponse("one two", delay_s=0.1, cached_tokens=0))
    calls = [
        call_to(server, "a b c", cell=cell, prices=DOLLAR_A_TOKEN) for cell in "abc"
    ]

    replies = calling.call_at_once(*calls)
    later_replies = calling.call_at_once(*calls)

    assert later_replies == replies
    assert len(server.book) == 1
    free_reply, other_free_reply, paid_reply = sorted(
        replies, key=lambda reply: reply.cost_usd
    )
    assert paid_reply.cost_usd == 5.0
    assert paid_reply.prompt_tokens == 3
    assert paid_reply.completion_tokens == 2
    assert free_reply == other_free_reply
    assert free_reply.cost_usd == 0.0
    assert free_reply.prompt_tokens == 0
    assert free_reply.completion_tokens == 0


def test_discarded_attempts_are_paid_by_their_cell_also_after_a_restart(
    calling, serve
):
    server = serve(responding_with(HttpResponse("", usage=USAGE), HttpResponse("x")))
    call = call_to(server, "a b c", prices=DOLLAR_A_TOKEN)

    replies = [calling(call), calling(call)]

    assert [reply.cost_usd for reply in replies] == [9.0, 9.0]
    assert [reply.attempts for reply in replies] == [2, 2]
    assert len(server.book) == 2


def test_a_longer_time_limit_or_a_stream_is_the_same_call(calling, serve):
    server = serve(HttpResponse("x"))

    calling.call_at_once(call_to(server))
    calling.call_at_once(
        call_to(server, timeout_s=99.0),
        call_to(server, is_streamed=True),
        call_to(server, fallback={"temperature": 0}),
        call_to(server, prices=DOLLAR_A_TOKEN),
    )

    assert len(server.book) == 1
    assert not server.book[0].get("stream")


def test_an_adopted_reply_is_found_only_where_the_address_is_from_the_environment(
    tmp_path,
):
    address = "http://127.0.0.1:9/v1"
    messages = [{"role": "user", "content": "a question"}]
    without_address = Call(Target("m"), messages, "a-cell")
    key = adopted_key(earlier_key=without_address.key({}), address=address)
    write_calls(tmp_path, [replace(entry(1), call_key=key)])
    configured = replace(without_address, target=Target("m", address))
    from_environment = replace(
        without_address,
        target=Target("m", address, address_variable="M_API_BASE"),
    )

    with closing(Ledger(tmp_path)) as ledger:
        configured_history = asyncio.run(ledger.history_of(configured, {}))
        environment_history = asyncio.run(ledger.history_of(from_environment, {}))

    assert configured_history.entries == ()
    assert [adopted.reply.text for adopted in environment_history.entries] == [
        "reply 1"
    ]


def test_calls_that_are_looked_up_at_once_each_get_their_own_attempts(tmp_path):
    calls = [
        Call(Target("m"), [{"role": "user", "content": f"question {n}"}], "")
        for n in (1, 2)
    ]
    keys = [call.key({}) for call in calls]
    write_calls(
        tmp_path,
        [
            replace(entry(1), call_key=keys[0]),
            replace(entry(2), call_key=keys[0], attempt=2),
            replace(entry(3), call_key=keys[1]),
        ],
        spent=[(keys[1], 1)],
    )

    async def look_up_at_once(ledger):
        return await asyncio.gather(*[ledger.history_of(call, {}) for call in calls])

    with closing(Ledger(tmp_path)) as ledger:
        histories = asyncio.run(look_up_at_once(ledger))

    texts = [
        [attempt.reply.text for attempt in history.entries] for history in histories
    ]
    assert texts == [["reply 1", "reply 2"], ["reply 3"]]
    assert [history.spent for history in histories] == [0, 1]


async def test_a_run_says_that_it_waits_for_another_process_s_check(tmp_path, capsys):
    folder = tmp_path / LEDGER
    folder.mkdir()

    async def open_and_close():
        async with open_run_context(job_on("sample", tmp_path)):
            pass

    printed = ""
    with (folder / "calls.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        opening = asyncio.create_task(open_and_close())
        while "waiting" not in printed:
            assert not opening.done()
            await asyncio.sleep(0.01)
            printed += capsys.readouterr().err
        fcntl.flock(lock, fcntl.LOCK_UN)
        await opening

    path = folder / "calls.sqlite"
    assert printed == f"{path}: another process is checking it; waiting for that\n"


def stored_logprobs(folder: Path, number: int) -> Logprobs | None:
    with closing(Ledger(folder)) as ledger:
        reply = ledger.history(f"key-{number}").reply_for(f"cell-{number}")
    assert reply is not None
    assert reply.text == "{true}"
    return reply.logprobs


WITH_LOGPROBS = Reply("ok", "{true}", logprobs=LOGPROBS)
WITHOUT_LOGPROBS = Reply("ok", "{true}")


def test_log_probabilities_are_returned_with_their_reply(tmp_path):
    write_calls(tmp_path, [entry(1, WITH_LOGPROBS), entry(2, WITHOUT_LOGPROBS)])

    assert stored_logprobs(tmp_path, 1) == LOGPROBS
    assert stored_logprobs(tmp_path, 2) is None


def test_log_probabilities_are_pruned_with_their_reply(tmp_path):
    first_entry = entry(1, WITH_LOGPROBS, finished_at_s=1.0)
    second_entry = entry(2, WITH_LOGPROBS, finished_at_s=9.0)
    write_calls(tmp_path, [first_entry, second_entry])

    prune(tmp_path, 5.0, lambda cells: dict.fromkeys(cells, True))

    with database(tmp_path) as connection:
        rows = connection.execute("select call_key from logprobs").fetchall()
    assert rows == [("key-2",)]


def test_damaged_log_probabilities_are_unknown(tmp_path):
    write_calls(tmp_path, [entry(1, WITH_LOGPROBS)])
    with database(tmp_path) as connection:
        connection.execute("update logprobs set tokens = '[[1'")

    assert stored_logprobs(tmp_path, 1) is None


def test_a_ledger_without_calls_has_no_spend(tmp_path):
    assert spend_in(tmp_path) == []


def test_every_attempt_counts_with_what_is_known_of_it(calling, serve):
    success = HttpResponse("x", usage=USAGE)
    discarded = HttpResponse("", usage=USAGE)
    late_server = serve(HttpResponse("late", delay_s=2.0))
    silent_server = serve(HttpResponse("x", usage=None))

    calling.attempts = 1
    calling.call_at_once(
        call_to(late_server, timeout_s=0.2, prices=DOLLAR_A_TOKEN),  # may be billed
        call_to(serve(failed(429)), prices=DOLLAR_A_TOKEN),  # free
        call_to(silent_server, "no report", prices=DOLLAR_A_TOKEN),
        call_to(serve(success), "no price"),
    )
    calling.attempts = 5
    calling(
        call_to(
            serve(responding_with(failed(503), discarded, success)),
            prices=DOLLAR_A_TOKEN,
        )
    )

    [row] = spend_in(calling.folder)
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
    ("version", "remedy"),
    [(7, "use the prbench that wrote it"), (2, "CHANGELOG.md")],
)
def test_a_file_of_another_version_is_refused_and_kept(version, remedy, tmp_path):
    write_calls(tmp_path, [entry(1)])
    with database(tmp_path) as connection:
        connection.execute(f"pragma user_version = {version}")
    reason = f"calls.sqlite: is of version {version}, and this program reads 4; "

    with pytest.raises(PipelineError, match=one_line(reason)) as error:
        Ledger(tmp_path)

    assert remedy in str(error.value)
    with database(tmp_path) as connection:
        assert connection.execute("pragma user_version").fetchone() == (version,)
    assert len(stored_calls(tmp_path)) == 1
    assert not list(tmp_path.glob("damaged-*"))
