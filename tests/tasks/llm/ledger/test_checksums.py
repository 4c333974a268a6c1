"""A changed bit in the ledger never gives another number: it is reported, and the number is
unknown.
"""

import asyncio
import fcntl
import sqlite3
import struct
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.llm.calls.batches import Submissions, SubmittedCall
from tasks.llm.ledger.entries import SEALED, SPEND_KEY, Entry, recorded
from tasks.llm.ledger.ledger import Ledger, spend_in
from tasks.llm.ledger.opening import damage_in, mend
from tasks.llm.replies import Reply
from tasks.rules.errors import PipelineError
from tests.kit import Printed, one_line
from tests.tasks.llm.conftest import written
from tests.warehouse.parts import flip

PAGE = 4096
LOGPROBS = (("{", -0.25), ("true", -1.5))
N_CALLS = 6
Spend = dict[tuple[str, ...], dict[str, Any]]


class State(NamedTuple):
    """What a ledger says: sums by key; by call its spent attempts and its replies; and the calls of
    an open batch.
    """

    spend: Spend
    spent: dict[str, int]
    replies: dict[tuple[str, int], tuple[Any, ...]]
    batched: tuple[SubmittedCall, ...]


def entry(number: int, attempt: int = 1) -> Entry:
    reply = Reply(
        "ok",
        f"reply {number}",
        prompt_tokens=number,
        cost_usd=(number + 1) / 7,
        logprobs=LOGPROBS,
    )
    cell = f"cell-{number}"
    run_id = f"run-{number % 3}"
    finished_at_s = 1.7e9 + 86_400 * number
    return Entry(
        f"key-{number}",
        attempt,
        cell,
        run_id,
        "m",
        "",
        "{}",
        reply,
        True,
        finished_at_s,
        purpose="judge",
    )


def filled(folder: Path) -> Path:
    """A closed ledger with rows in each table."""
    written(
        folder,
        [entry(number, attempt) for number in range(N_CALLS) for attempt in (1, 2)],
        [("key-0", 1)],
    )

    async def submit() -> None:
        with closing(Ledger(folder)) as ledger:
            await Submissions(ledger, "an endpoint").begin([SubmittedCall("key", "cell", "{}")])

    asyncio.run(submit())
    return folder / "calls.sqlite"


def sums(folder: Path) -> Spend:
    return {tuple(row[name] for name in SPEND_KEY): row for row in spend_in(folder)}


def state_of(folder: Path) -> State:
    """What a ledger says after it was opened, and repaired if necessary."""
    with closing(Ledger(folder)) as ledger:
        histories = {f"key-{number}": ledger.history(f"key-{number}") for number in range(N_CALLS)}
        batched = tuple(
            call for batch in Submissions(ledger, "an endpoint").open() for call in batch.calls
        )
    replies = {
        (key, entry.attempt): (entry.reply.text, entry.reply.cost_usd, entry.reply.logprobs)
        for key, history in histories.items()
        for entry in history.entries
    }
    return State(
        sums(folder), {key: history.spent for key, history in histories.items()}, replies, batched
    )


def roots(path: Path) -> dict[str, int]:
    """The page of each table and index; all rows of this small file are on these pages."""
    with closing(sqlite3.connect(path)) as connection:
        return dict(connection.execute("select name, rootpage - 1 from sqlite_master"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return filled(tmp_path_factory.mktemp("whole"))


@pytest.fixture(scope="module")
def state(whole: Path) -> State:
    return state_of(whole.parent)


@given(data=st.data())
def test_a_changed_bit_gives_no_other_sum_before_or_after_the_repair(
    data: st.DataObject, whole: Path, state: State, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = whole.read_bytes()
    name = data.draw(st.sampled_from(["spend", "sqlite_autoindex_spend_1"]))
    start = roots(whole)[name] * PAGE
    used = [offset for offset in range(start, start + PAGE) if content[offset]]
    path = tmp_path_factory.mktemp("flipped") / "calls.sqlite"
    path.write_bytes(content)
    flip(path, data.draw(st.sampled_from(used)), bit=data.draw(st.integers(0, 7)))

    if damage_in(path.parent) is None:
        assert sums(path.parent) == state.spend
    else:
        with pytest.raises(PipelineError, match=one_line("damaged")):
            spend_in(path.parent)
        mend(path.parent)
    after = sums(path.parent)

    assert after.keys() >= state.spend.keys() or any(
        row["cost_usd"] is None for row in after.values()
    )
    for key, row in after.items():
        assert row["cost_usd"] is None or row == state.spend[key]
    assert damage_in(path.parent) is None


@given(data=st.data())
def test_a_changed_bit_in_any_other_table_gives_no_other_reply_number_or_row(
    data: st.DataObject, whole: Path, state: State, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = whole.read_bytes()
    table = data.draw(st.sampled_from(sorted({*SEALED, "calls"} - {"spend"})))
    name = data.draw(st.sampled_from([table, f"sqlite_autoindex_{table}_1"]))
    start = roots(whole)[name] * PAGE
    used = [offset for offset in range(start, start + PAGE) if content[offset]]
    path = tmp_path_factory.mktemp("flipped") / "calls.sqlite"
    path.write_bytes(content)
    flip(path, data.draw(st.sampled_from(used)), bit=data.draw(st.integers(0, 7)))

    after = state_of(path.parent)

    assert after.spend == state.spend
    for key, n_spent in after.spent.items():
        assert n_spent in {0, state.spent[key]}
    for call, (text, cost_usd, logprobs) in after.replies.items():
        assert (text, cost_usd) == state.replies[call][:2]
        assert logprobs in {None, LOGPROBS}
    assert set(after.batched) <= set(state.batched)


def flipped_cost(path: Path, usd: float) -> None:
    """Change bit 4 of the second byte of a sum in dollars, which halves or doubles it."""
    stored = struct.pack(">d", usd)
    offset = path.read_bytes().index(stored, roots(path)["spend"] * PAGE)
    flip(path, offset + 1, bit=4)


def test_a_damaged_sum_is_reported_with_its_run_and_stays_unknown_when_more_is_added(
    tmp_path: Path, capsys: Printed
) -> None:
    path = filled(tmp_path)
    flipped_cost(path, 2 * 6 / 7)
    damage = damage_in(tmp_path)
    mended = mend(tmp_path)
    printed = capsys.readouterr().err
    unknown = [row for row in spend_in(tmp_path) if row["cost_usd"] is None]
    written(tmp_path, [entry(5, attempt=3)])

    assert damage is not None
    assert "table spend: 1 row with a wrong checksum" in damage
    assert mended is not None
    assert "the cost of run run-2 on 2023-11-19 (judge, m) is lost" in printed
    assert [(row["run_id"], row["calls"], row["unpriced_calls"]) for row in unknown] == [
        ("run-2", 2, 2)
    ]
    assert [row["run_id"] for row in spend_in(tmp_path) if row["cost_usd"] is None] == ["run-2"]


def test_a_lost_sum_counts_no_calls_of_another_purpose(tmp_path: Path) -> None:
    sampled = [
        replace(
            entry(number),
            run_id="run",
            finished_at_s=1.7e9,
            purpose="sample",
        )
        for number in range(2)
    ]
    judged = [
        replace(entry(number), run_id="run", finished_at_s=1.7e9) for number in range(2, N_CALLS)
    ]
    written(tmp_path, [*sampled, *judged])
    with closing(sqlite3.connect(tmp_path / "calls.sqlite")) as connection, connection:
        connection.execute("update spend set cost_usd = cost_usd / 2 where purpose = 'judge'")

    mend(tmp_path)

    by_purpose = {row["purpose"]: row for row in spend_in(tmp_path)}
    assert by_purpose["judge"]["calls"] == len(judged)
    assert by_purpose["judge"]["cost_usd"] is None
    assert by_purpose["sample"]["calls"] == len(sampled)


def test_a_sum_that_is_damaged_while_a_run_adds_to_it_stays_damaged(tmp_path: Path) -> None:
    path = filled(tmp_path)

    async def add() -> None:
        with closing(Ledger(tmp_path)) as ledger:
            with closing(sqlite3.connect(path)) as connection, connection:
                connection.execute("update spend set cost_usd = 2 * cost_usd")
                connection.execute("update spent set attempt = attempt + 64")
            await ledger.write(*recorded([entry(5, attempt=3)]))
            ledger.mark_used([("key-0", 2)])

    asyncio.run(add())

    with pytest.raises(PipelineError, match="table spend: 6 rows with a wrong checksum"):
        spend_in(tmp_path)
    after = state_of(tmp_path)
    assert [row["cost_usd"] for row in after.spend.values()] == [None] * N_CALLS
    assert after.spent["key-0"] == 0


CHANGED = (
    "text",
    "cost_usd",
    "latency_s",
    "finished_at_s",
    "model",
    "input_usd_per_mtok",
    "checksum",
)


@pytest.mark.parametrize("column", CHANGED)
def test_a_changed_value_of_a_call_is_reported_and_the_call_is_gone_after_the_repair(
    column: str, whole: Path, state: State, tmp_path: Path
) -> None:
    path = tmp_path / "calls.sqlite"
    path.write_bytes(whole.read_bytes())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            f"update calls set {column} = 7 where call_key = 'key-3' and attempt = 2"
        )

    damage = damage_in(tmp_path)
    mended = mend(tmp_path)
    after = state_of(tmp_path)

    assert damage is not None
    assert "table calls: 1 row with a wrong checksum" in damage
    assert mended is not None
    assert damage_in(tmp_path) is None
    assert state.replies.keys() - after.replies.keys() == {("key-3", 2)}
    assert after.spend == state.spend


def test_opening_a_ledger_reads_its_calls_only_after_damage_was_found(
    whole: Path, tmp_path: Path
) -> None:
    path = tmp_path / "calls.sqlite"
    path.write_bytes(whole.read_bytes())
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("update calls set cost_usd = 7 where call_key = 'key-3'")

    opened = mend(tmp_path)
    verified = mend(tmp_path, verifies_calls=True)

    assert opened is None
    assert verified is not None


def test_a_ledger_of_the_last_version_is_read_and_gets_checksums_when_it_is_opened(
    whole: Path, state: State, tmp_path: Path
) -> None:
    path = tmp_path / "calls.sqlite"
    path.write_bytes(whole.read_bytes())
    with closing(sqlite3.connect(path)) as connection, connection:
        for table in SEALED:
            connection.execute(f"alter table {table} drop column checksum")
        connection.execute("pragma user_version = 3")

    assert sums(tmp_path) == state.spend
    assert damage_in(tmp_path) is None
    assert state_of(tmp_path) == state
    flipped_cost(path, 2 * 6 / 7)
    assert damage_in(tmp_path) is not None


def test_a_ledger_of_the_last_version_that_an_older_program_has_open_is_refused_in_one_line(
    whole: Path, tmp_path: Path
) -> None:
    path = filled(tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("pragma user_version = 3")
    with (tmp_path / "calls.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        with pytest.raises(
            PipelineError, match="an older prbench has it open; wait until that has ended"
        ):
            Ledger(tmp_path)
