"""A changed bit in the ledger never gives another number: it is reported, and the number is
unknown.
"""

import asyncio
import fcntl
import shutil
import struct
from contextlib import closing
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.llm.calls.batches import Submissions, SubmittedCall
from tasks.llm.ledger.entries import SEALED, SPEND_KEY, Entry, statements_recording
from tasks.llm.ledger.ledger import Ledger, spend_in
from tasks.llm.ledger.opening import damage_in, repair_if_damaged
from tasks.llm.replies import Reply
from tasks.rules.errors import PipelineError
from tests.kit import one_line, write_calls
from tests.tasks.llm.ledger.conftest import (
    LOGPROBS,
    PAGE_BYTES,
    database,
    entry,
    offset_of,
)
from tests.warehouse.parts import flip

N_CALLS = 6
Spend = dict[tuple[str, ...], dict[str, Any]]


@dataclass
class State:
    """What is read from a ledger: sums by key; by call its spent attempts and its replies; and the
    calls of open batches.
    """

    spend: Spend
    spent_attempts: dict[str, int]
    replies: dict[tuple[str, int], Reply]
    batched_calls: set[SubmittedCall]


def judge_entry(number: int, attempt: int = 1, **values: Any) -> Entry:
    """A call of a judge; each call has a day of its own, and runs have two calls each."""
    reply = Reply(
        "ok",
        f"reply {number}",
        prompt_tokens=number,
        cost_usd=(number + 1) / 7,
        logprobs=LOGPROBS,
    )
    usual_values = {
        "attempt": attempt,
        "run_id": f"run-{number % 3}",
        "finished_at_s": 1.7e9 + 86_400 * number,
        "purpose": "judge",
    }
    return entry(number, reply, **usual_values | values)


def fill(folder: Path):
    """Write a ledger with rows in each table."""
    entries = [judge_entry(number, 1) for number in range(N_CALLS)]
    entries += [judge_entry(number, 2) for number in range(N_CALLS)]
    write_calls(folder, entries, [("key-0", 1)])

    async def submit():
        with closing(Ledger(folder)) as ledger:
            submissions = Submissions(ledger, "an endpoint")
            await submissions.begin([SubmittedCall("key", "cell", "{}")])

    asyncio.run(submit())


def sums(folder: Path) -> Spend:
    read_key = itemgetter(*SPEND_KEY)
    return {read_key(row): row for row in spend_in(folder)}


def state_of(folder: Path) -> State:
    """Return what is read from a ledger after it was opened, and repaired if necessary."""
    state = State({}, {}, {}, set())
    with closing(Ledger(folder)) as ledger:
        for number in range(N_CALLS):
            history = ledger.history(f"key-{number}")
            state.spent_attempts[f"key-{number}"] = history.spent
            for stored_entry in history.entries:
                call = (stored_entry.call_key, stored_entry.attempt)
                state.replies[call] = stored_entry.reply
        for submission in Submissions(ledger, "an endpoint").open_submissions():
            state.batched_calls.update(submission.calls)
    state.spend = sums(folder)
    return state


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Path:
    """The folder of a closed ledger with rows in each table."""
    folder = tmp_path_factory.mktemp("original")
    fill(folder)
    return folder


@pytest.fixture(scope="module")
def state(original: Path) -> State:
    return state_of(original)


@pytest.fixture
def copy(original: Path, tmp_path) -> Path:
    """The folder of a copy of that ledger, to damage."""
    shutil.copy(original / "calls.sqlite", tmp_path)
    return tmp_path


def flip_a_bit(data: st.DataObject, folder: Path, name: str):
    """Change one bit in the page of a table or an index; this small file has one for each."""
    path = folder / "calls.sqlite"
    start = offset_of(folder, name)
    page = path.read_bytes()[start : start + PAGE_BYTES]
    used_offsets = [start + offset for offset, byte in enumerate(page) if byte]
    offset = data.draw(st.sampled_from(used_offsets))
    flip(path, offset, bit=data.draw(st.integers(0, 7)))


@given(data=st.data())
def test_a_changed_bit_gives_no_other_sum_before_or_after_the_repair(
    data,
    original,
    state,
    tmp_path_factory,
):
    folder = tmp_path_factory.mktemp("flipped")
    shutil.copy(original / "calls.sqlite", folder)
    name = data.draw(st.sampled_from(["spend", "sqlite_autoindex_spend_1"]))
    flip_a_bit(data, folder, name)

    if damage_in(folder) is None:
        assert sums(folder) == state.spend
    else:
        with pytest.raises(PipelineError, match=one_line("damaged")):
            spend_in(folder)
        repair_if_damaged(folder)
    spend = sums(folder)

    known_spend = {
        key: row for key, row in spend.items() if row["cost_usd"] is not None
    }
    assert known_spend.items() <= state.spend.items()
    if len(known_spend) == len(spend):  # a lost sum is shown as unknown
        assert spend == state.spend
    assert damage_in(folder) is None


@given(data=st.data())
def test_a_changed_bit_in_any_other_table_gives_no_other_reply_number_or_row(
    data,
    original,
    state,
    tmp_path_factory,
):
    folder = tmp_path_factory.mktemp("flipped")
    shutil.copy(original / "calls.sqlite", folder)
    table = data.draw(st.sampled_from(sorted({*SEALED, "calls"} - {"spend"})))
    name = data.draw(st.sampled_from([table, f"sqlite_autoindex_{table}_1"]))
    flip_a_bit(data, folder, name)

    repaired_state = state_of(folder)

    assert repaired_state.spend == state.spend
    for key, n_spent in repaired_state.spent_attempts.items():
        assert n_spent in {0, state.spent_attempts[key]}
    for call, reply in repaired_state.replies.items():
        assert reply.text == state.replies[call].text
        assert reply.cost_usd == state.replies[call].cost_usd
        assert reply.logprobs in {None, LOGPROBS}
    assert repaired_state.batched_calls <= state.batched_calls


def damage_sum(folder: Path):
    """Change bit 4 of the second byte of a sum in dollars, which halves or doubles it."""
    path = folder / "calls.sqlite"
    sum_of_key_5 = struct.pack(">d", 2 * 6 / 7)
    offset = path.read_bytes().index(sum_of_key_5, offset_of(folder, "spend"))
    flip(path, offset + 1, bit=4)


def test_a_damaged_sum_is_reported_with_its_run(copy, capsys):
    damage_sum(copy)

    damage = damage_in(copy)
    repair_if_damaged(copy)

    printed = capsys.readouterr().err
    assert "table spend: 1 row with a wrong checksum" in str(damage)
    assert "the cost of run run-2 on 2023-11-19 (judge, m) is lost" in printed


def test_a_damaged_sum_stays_unknown_when_more_is_added(copy):
    damage_sum(copy)
    repair_if_damaged(copy)
    [unknown_row] = [row for row in spend_in(copy) if row["cost_usd"] is None]

    write_calls(copy, [judge_entry(5, attempt=3)])

    [later_row] = [row for row in spend_in(copy) if row["cost_usd"] is None]
    assert unknown_row["run_id"] == "run-2"
    assert unknown_row["calls"] == 2
    assert unknown_row["unpriced_calls"] == 2
    assert later_row["calls"] == 3


def test_a_lost_sum_counts_no_calls_of_another_purpose(tmp_path):
    purposes = ["sample"] * 2 + ["judge"] * 4
    entries = [
        judge_entry(number, run_id="run", finished_at_s=1.7e9, purpose=purpose)
        for number, purpose in enumerate(purposes)
    ]
    write_calls(tmp_path, entries)
    with database(tmp_path) as connection:
        connection.execute(
            "update spend set cost_usd = cost_usd / 2 where purpose = 'judge'"
        )

    repair_if_damaged(tmp_path)

    judge_row, sample_row = spend_in(tmp_path)
    assert judge_row["purpose"] == "judge"
    assert judge_row["calls"] == 4
    assert judge_row["cost_usd"] is None
    assert sample_row["calls"] == 2


def test_a_number_that_is_damaged_while_a_run_adds_to_it_stays_damaged(copy):
    async def add():
        with closing(Ledger(copy)) as ledger:
            with database(copy) as connection:
                connection.execute("update spend set cost_usd = 2 * cost_usd")
                connection.execute("update spent set attempt = attempt + 64")
            await ledger.write(*statements_recording([judge_entry(5, attempt=3)]))
            ledger.mark_spent([("key-0", 2)])

    asyncio.run(add())

    damage = "table spend: 6 rows with a wrong checksum"
    with pytest.raises(PipelineError, match=damage):
        spend_in(copy)
    repaired_state = state_of(copy)
    costs = [row["cost_usd"] for row in repaired_state.spend.values()]
    assert costs == [None] * N_CALLS
    assert repaired_state.spent_attempts["key-0"] == 0


CHANGED_COLUMNS = (
    "text",
    "cost_usd",
    "latency_s",
    "finished_at_s",
    "model",
    "input_usd_per_mtok",
    "checksum",
)


@pytest.mark.parametrize("column", CHANGED_COLUMNS)
def test_a_changed_value_of_a_call_is_reported_and_the_call_is_gone_after_the_repair(
    column,
    copy,
    state,
):
    with database(copy) as connection:
        connection.execute(
            f"update calls set {column} = 7 where call_key = 'key-3' and attempt = 2"
        )

    damage = damage_in(copy)
    repair_if_damaged(copy)

    repaired_state = state_of(copy)
    assert "table calls: 1 row with a wrong checksum" in str(damage)
    assert damage_in(copy) is None
    assert state.replies.keys() - repaired_state.replies.keys() == {("key-3", 2)}
    assert repaired_state.spend == state.spend


def test_opening_a_ledger_reads_its_calls_only_after_damage_was_found(copy):
    with database(copy) as connection:
        connection.execute("update calls set cost_usd = 7 where call_key = 'key-3'")

    line_without_calls = repair_if_damaged(copy)
    line_with_calls = repair_if_damaged(copy, verifies_calls=True)

    assert line_without_calls is None
    assert line_with_calls is not None


def test_a_ledger_of_the_last_version_is_read_and_gets_checksums_when_it_is_opened(
    copy,
    state,
):
    with database(copy) as connection:
        for table in SEALED:
            connection.execute(f"alter table {table} drop column checksum")
        connection.execute("pragma user_version = 3")

    assert sums(copy) == state.spend
    assert damage_in(copy) is None
    assert state_of(copy) == state
    damage_sum(copy)
    assert damage_in(copy) is not None


def test_a_ledger_of_the_last_version_that_an_older_program_has_open_is_refused_in_one_line(
    copy,
):
    with database(copy) as connection:
        connection.execute("pragma user_version = 3")
    reason = "an older prbench has it open; wait until that has ended"

    with (copy / "calls.lock").open("a+") as lock:
        fcntl.flock(lock, fcntl.LOCK_SH)
        with pytest.raises(PipelineError, match=one_line(reason)):
            Ledger(copy)
