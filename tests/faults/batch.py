"""Batches: many requests in one file, answered together some time later. The endpoints for files come with them."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from aiohttp import web

from tests.faults.answers import Behaviour
from tests.faults.batch_lines import Flaw, Result, answered, read_lines, unanswered
from tests.faults.bodies import CONVERSATION
from tests.faults.book import Book, Entry
from tests.faults.content import TakenRequest
from tests.faults.files import Files, refuse
from tests.faults.sending import send_json

BatchEnd = Literal["completed", "failed", "expired"]

_PATH = "/v1/batches"
_WINDOW_S = 24 * 3600
_STAMPS = ("in_progress", "finalizing", "completed", "failed", "expired", "cancelling", "cancelled")
_UNDER_WAY = ("validating", "in_progress")
_AS_A_WHOLE: Flaw = {
    "code": "token_limit_exceeded", "message": "Enqueued token limit reached.", "param": None, "line": None,
}  # fmt: skip


class Settings(Protocol):
    """What the owner of the batches decides, at any time."""

    behaviour: Behaviour
    polls_until_done: int
    batch_end: BatchEnd
    answered_before_end: int
    written: Callable[[bytes, int], bytes]


@dataclass
class Batch:
    """A batch: what was asked for, how far it is, where its results are."""

    id: str
    asked: dict[str, Any]
    lines: list[tuple[str, Entry]]
    """(custom id, entry) of every request."""
    flaws: list[Flaw]
    """What is wrong with the input file."""
    created_at: int = field(default_factory=lambda: int(time.time()))
    status: str = "validating"
    stamps: dict[str, int] = field(default_factory=dict)
    polls: int = 0
    completed: int = 0
    failed: int = 0
    output_file_id: str | None = None
    error_file_id: str | None = None
    errors: list[Flaw] = field(default_factory=list)
    ending: asyncio.Lock = field(default_factory=asyncio.Lock)

    def turn(self, status: str) -> None:
        """Take on a status and note when."""
        self.status = status
        self.stamps.setdefault(f"{status}_at", int(time.time()))

    def described(self) -> dict[str, Any]:
        """The batch object of OpenAI's interface."""
        return {
            "id": self.id, "object": "batch", "endpoint": self.asked["endpoint"], "status": self.status,
            "input_file_id": self.asked["input_file_id"], "completion_window": self.asked["completion_window"],
            "output_file_id": self.output_file_id, "error_file_id": self.error_file_id,
            "errors": {"object": "list", "data": self.errors} if self.errors else None,
            "created_at": self.created_at, "expires_at": self.created_at + _WINDOW_S,
            **{f"{name}_at": self.stamps.get(f"{name}_at") for name in _STAMPS},
            "request_counts": {"total": len(self.lines), "completed": self.completed, "failed": self.failed},
            "metadata": self.asked.get("metadata"),
        }  # fmt: skip


class Batches:
    """All batches, and the endpoints for them and their files."""

    def __init__(self, settings: Settings, book: Book) -> None:
        self._settings = settings
        self._book = book
        self._files = Files()
        self._batches: dict[str, Batch] = {}

    def routes(self) -> list[web.RouteDef]:
        """The paths that are answered here."""
        return [
            *self._files.routes(), web.post(_PATH, self._take), web.get(_PATH, self._list),
            web.get(_PATH + "/{id}", self._poll), web.post(_PATH + "/{id}/cancel", self._cancel),
        ]  # fmt: skip

    async def _take(self, http: web.Request) -> web.StreamResponse:
        try:
            asked = await http.json()
        except ValueError:
            return await refuse(http, "The body is not JSON.")
        source = self._files.get(asked.get("input_file_id"))
        if source is None or source.purpose != "batch":
            return await refuse(http, "Invalid 'input_file_id'.")
        if asked.get("endpoint") not in CONVERSATION or asked.get("completion_window") != "24h":
            return await refuse(http, "Invalid 'endpoint' or 'completion_window'.")
        requests, flaws = read_lines(source.content, asked["endpoint"])
        headers = {name.lower(): value for name, value in http.headers.items()}
        lines = [
            (custom_id, self._book.enter(_PATH, TakenRequest(request), headers, in_batch=True))
            for custom_id, request in ({} if flaws else requests).items()
        ]
        batch = Batch(f"batch_{len(self._batches) + 1:06d}", asked, lines, flaws)
        self._batches[batch.id] = batch
        return await send_json(http, batch.described())

    async def _list(self, http: web.Request) -> web.StreamResponse:
        newest = list(reversed(self._batches.values()))
        after, limit = http.query.get("after"), int(http.query.get("limit", "20"))
        start = next((place + 1 for place, batch in enumerate(newest) if batch.id == after), 0)
        page = [batch.described() for batch in newest[start : start + limit]]
        listed = {
            "object": "list", "data": page, "first_id": page[0]["id"] if page else None,
            "last_id": page[-1]["id"] if page else None, "has_more": len(newest) > start + limit,
        }  # fmt: skip
        return await send_json(http, listed)

    async def _poll(self, http: web.Request) -> web.StreamResponse:
        batch = self._batches.get(http.match_info["id"])
        if batch is None:
            return await refuse(http, "No such batch.", 404)
        async with batch.ending:
            if batch.status == "cancelling":
                await self._end(batch, "cancelled")
            elif batch.status in _UNDER_WAY:
                await self._advance(batch)
        return await send_json(http, batch.described())

    async def _advance(self, batch: Batch) -> None:
        if batch.flaws:
            await self._end(batch, "failed")
        elif batch.polls < self._settings.polls_until_done:
            batch.polls += 1
            batch.turn("in_progress")
        else:
            await self._end(batch, self._settings.batch_end)

    async def _cancel(self, http: web.Request) -> web.StreamResponse:
        batch = self._batches.get(http.match_info["id"])
        if batch is None:
            return await refuse(http, "No such batch.", 404)
        async with batch.ending:
            if batch.status not in (*_UNDER_WAY, "cancelling"):
                return await refuse(http, f"Cannot cancel a batch with status '{batch.status}'.", 409)
            batch.turn("cancelling")
        return await send_json(http, batch.described())

    async def _end(self, batch: Batch, end: str) -> None:
        """Answer what is to be answered and put the results into files."""
        n_answered = {"completed": len(batch.lines), "failed": 0}.get(end, self._settings.answered_before_end)
        results: list[Result] = []
        for place, (custom_id, entry) in enumerate(batch.lines):
            if place < n_answered:
                results.append(answered(custom_id, entry, batch.asked["endpoint"], self._settings.behaviour))
            else:
                results.append(unanswered(custom_id, entry, end))
            self._book.close(entry, in_batch=True)
            if place % 50 == 49:
                await asyncio.sleep(0)  # others are served meanwhile
        if end == "failed":
            batch.errors = batch.flaws or [_AS_A_WHOLE]
        else:
            self._hand_out(batch, results)
        batch.turn(end)

    def _hand_out(self, batch: Batch, results: list[Result]) -> None:
        """Put results into an output and an error file. Their order is not that of the requests."""
        results.sort(key=lambda result: result.entry.digest)
        good = [result for result in results if result.is_good]
        bad = [result for result in results if not result.is_good]
        batch.completed, batch.failed = len(good), len(bad)
        batch.output_file_id = self._file_of(f"{batch.id}_output.jsonl", good)
        batch.error_file_id = self._file_of(f"{batch.id}_error.jsonl", bad)

    def _file_of(self, name: str, results: list[Result]) -> str | None:
        if not results:
            return None
        content = b"".join(self._settings.written(result.line, n) for n, result in enumerate(results, start=1))
        return self._files.store(name, "batch_output", content, [result.entry for result in results]).id
