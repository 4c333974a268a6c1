"""Log-probabilities are kept beside a reply, and go with it."""

import asyncio
import contextlib
from pathlib import Path

from tasks.llm.ledger.entries import Entry
from tasks.llm.ledger.files import ledger_path, writer_of
from tasks.llm.ledger.ledger import Ledger
from tasks.llm.ledger.pruning import prune
from tasks.llm.replies import OK, Reply

LOGPROBS = (("{", -0.01), ("true", -0.5), ("}", 0.0))


def entry(key: str, logprobs: tuple[tuple[str, float], ...] | None, finished_at_s: float = 1.0) -> Entry:
    reply = Reply(OK, "{true}", logprobs=logprobs)
    return Entry(key, 1, f"cell of {key}", "a-run", "m", "", "{}", reply, True, finished_at_s)


def recorded(folder: Path, *entries: Entry) -> None:
    ledger = Ledger(folder)

    async def record() -> None:
        for each in entries:
            await ledger.record(each)

    asyncio.run(record())
    ledger.close()


def kept(folder: Path, key: str) -> Reply | None:
    ledger = Ledger(folder)
    found = ledger.history(key).answer_for(f"cell of {key}")
    ledger.close()
    return found


def test_a_reply_comes_back_with_its_log_probabilities_or_without(tmp_path: Path) -> None:
    recorded(tmp_path, entry("a", LOGPROBS), entry("b", None))
    with_them, without = kept(tmp_path, "a"), kept(tmp_path, "b")
    assert with_them is not None
    assert without is not None
    assert (LOGPROBS, None) == (with_them.logprobs, without.logprobs)


def test_they_are_deleted_with_their_reply(tmp_path: Path) -> None:
    recorded(tmp_path, entry("a", LOGPROBS, 1.0), entry("b", LOGPROBS, 9.0))
    assert 1 == prune(tmp_path, 5.0, lambda cells: dict.fromkeys(cells, True)).entries
    with contextlib.closing(writer_of(ledger_path(tmp_path))) as connection:
        assert [("b",)] == connection.execute("select call_key from logprobs").fetchall()


def test_damaged_ones_are_unknown_and_the_reply_stands(tmp_path: Path) -> None:
    recorded(tmp_path, entry("a", LOGPROBS))
    with contextlib.closing(writer_of(ledger_path(tmp_path))) as connection:
        connection.execute("update logprobs set tokens = '[[1'")
    found = kept(tmp_path, "a")
    assert found is not None
    assert ("{true}", None) == (found.text, found.logprobs)
