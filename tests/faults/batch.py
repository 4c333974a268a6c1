"""Batches: many requests in one file, processed later; and the endpoints for their files."""

import asyncio
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from aiohttp import web

from tests.faults.behaviours import Behaviour, Entry, Request, failed, flaw_of
from tests.faults.bodies import CONVERSATION, error_json, json_of, send, send_json

JsonObject = dict[str, Any]

if TYPE_CHECKING:
    from tests.faults.server import FaultServer


@dataclass
class StoredFile:
    """A file that a client uploaded or the server wrote."""

    id: str
    name: str
    purpose: str
    content: bytes
    created_at: int = field(default_factory=lambda: int(time.time()))

    def described(self) -> JsonObject:
        """The file object of OpenAI's interface."""
        return {
            "id": self.id,
            "object": "file",
            "bytes": len(self.content),
            "created_at": self.created_at,
            "filename": self.name,
            "purpose": self.purpose,
            "status": "processed",
        }


async def refuse(
    http: web.BaseRequest,
    message: str,
    status: int = 400,
) -> web.StreamResponse:
    """Tell the client that its request is wrong."""
    return await send_json(http, error_json(message), status)


_LOST = {
    "code": "request_timeout",
    "message": "The request could not be completed in time.",
}
_NO_RESPONSE = {
    "code": "batch_expired",
    "message": "This request could not be executed before the batch expired.",
}


def read_lines(content: bytes, endpoint: str) -> dict[str, Request]:
    """The requests of an input file by custom id; none if the file is not sound."""
    lines = [json.loads(text) for text in content.splitlines()]
    requests = {line["custom_id"]: line["body"] for line in lines}
    methods = {(line["method"], line["url"]) for line in lines}
    models = {request["model"] for request in requests.values()}
    has_other_endpoint = methods != {("POST", endpoint)}
    if has_other_endpoint or len(requests) < len(lines) or len(models) > 1:
        return {}
    return requests


@dataclass(frozen=True)
class RequestResult:
    """The result of one request of a batch, and its line in the result file."""

    entry: Entry
    is_good: bool
    line: bytes


def result_of(
    custom_id: str,
    entry: Entry,
    endpoint: str,
    behaviour: Behaviour,
) -> RequestResult:
    """Return the result of a processed request.

    A response that would be cut off is an error; delays are ignored.
    """
    flaw = flaw_of(entry.request, CONVERSATION[endpoint])
    if flaw:
        reply = failed(400, flaw, kind="invalid_request_error")
    else:
        reply = behaviour(entry.request, entry.number)
    if reply.cuts_connection or reply.cuts_body:
        return _result(custom_id, entry, None, _LOST)
    entry.status = reply.status
    entry.is_paid = reply.is_completion
    body = json_of(endpoint, entry.request, reply)
    if reply.raw is not None:
        try:
            body = json.loads(reply.raw)
        except ValueError:  # it becomes a string, so that the line stays readable
            body = reply.raw.decode(errors="replace")
    response = {
        "status_code": reply.status,
        "request_id": f"req_{entry.digest[:24]}",
        "body": body,
    }
    return _result(custom_id, entry, response, None)


def _result(
    custom_id: str,
    entry: Entry,
    response: JsonObject | None,
    error: dict[str, str] | None,
) -> RequestResult:
    line = {
        "id": f"batch_req_{entry.digest[:24]}",
        "custom_id": custom_id,
        "response": response,
        "error": error,
    }
    is_good = response is not None and response["status_code"] == 200
    return RequestResult(entry, is_good, json.dumps(line).encode() + b"\n")


BatchEnd = Literal["completed", "failed", "expired"]

_PATH = "/v1/batches"
_UNDER_WAY = ("validating", "in_progress")
_AS_A_WHOLE = {
    "code": "token_limit_exceeded",
    "message": "Enqueued token limit reached.",
    "line": None,
}


@dataclass
class Batch:
    """A batch: its request, its progress, and its result files."""

    id: str
    request: JsonObject
    lines: list[tuple[str, Entry]]
    """(custom id, entry) of every request."""
    created_at: int = field(default_factory=lambda: int(time.time()))
    status: str = "validating"
    polls: int = 0
    completed: int = 0
    failed: int = 0
    output_file_id: str | None = None
    error_file_id: str | None = None
    errors: list[JsonObject] = field(default_factory=list)
    ending: asyncio.Lock = field(default_factory=asyncio.Lock)

    def described(self) -> JsonObject:
        """The batch object of OpenAI's interface."""
        return {
            "id": self.id,
            "object": "batch",
            "endpoint": self.request["endpoint"],
            "status": self.status,
            "input_file_id": self.request["input_file_id"],
            "completion_window": self.request["completion_window"],
            "output_file_id": self.output_file_id,
            "error_file_id": self.error_file_id,
            "errors": {"object": "list", "data": self.errors}
            if self.errors
            else None,
            "created_at": self.created_at,
            "request_counts": {
                "total": len(self.lines),
                "completed": self.completed,
                "failed": self.failed,
            },
            "metadata": self.request.get("metadata"),
        }


class Batches:
    """All batches, and the endpoints for them and their files."""

    def __init__(self, server: "FaultServer"):
        """Use the settings of a server, which may change at any time, and its book."""
        self._server = server
        self._files: dict[str, StoredFile] = {}
        self._batches: dict[str, Batch] = {}

    def routes(self) -> list[web.RouteDef]:
        """Return the paths that are served here."""
        return [
            web.post("/v1/files", self._receive_file),
            web.get("/v1/files/{id}/content", self._send_file),
            web.post(_PATH, self._create),
            web.get(_PATH, self._list),
            web.get(_PATH + "/{id}", self._poll),
        ]

    def _store(self, name: str, purpose: str, content: bytes) -> StoredFile:
        file = StoredFile(f"file-{len(self._files) + 1:06d}", name, purpose, content)
        self._files[file.id] = file
        return file

    async def _receive_file(self, http: web.Request) -> web.StreamResponse:
        form = await http.post()
        field = form.get("file")
        purpose = form.get("purpose")
        if not isinstance(field, web.FileField) or not isinstance(purpose, str):
            return await refuse(http, "'file' and 'purpose' are required.")
        file = self._store(field.filename, purpose, field.file.read())
        return await send_json(http, file.described())

    async def _send_file(self, http: web.Request) -> web.StreamResponse:
        file = self._files.get(http.match_info["id"])
        if file is None:
            return await refuse(http, "No such File object.", 404)
        return await send(http, file.content, content_type="application/octet-stream")

    async def _create(self, http: web.Request) -> web.StreamResponse:
        request = await http.json()
        source = self._files.get(request.get("input_file_id"))
        if source is None or source.purpose != "batch":
            return await refuse(http, "Invalid 'input_file_id'.")
        if (
            request.get("endpoint") not in CONVERSATION
            or request.get("completion_window") != "24h"
        ):
            return await refuse(http, "Invalid 'endpoint' or 'completion_window'.")
        requests = read_lines(source.content, request["endpoint"])
        if not requests:
            return await refuse(http, "Names repeat, or models or endpoints differ.")
        headers = {name.lower(): value for name, value in http.headers.items()}
        lines = [
            (custom_id, self._server.enter(_PATH, content, headers, in_batch=True))
            for custom_id, content in requests.items()
        ]
        batch = Batch(f"batch_{len(self._batches) + 1:06d}", request, lines)
        self._batches[batch.id] = batch
        return await send_json(http, batch.described())

    async def _list(self, http: web.Request) -> web.StreamResponse:
        batches = list(reversed(self._batches.values()))  # newest first
        limit = int(http.query.get("limit", "20"))
        start = 0
        for position, batch in enumerate(batches, start=1):
            if batch.id == http.query.get("after"):
                start = position
        data = [batch.described() for batch in batches[start : start + limit]]
        page = {
            "object": "list",
            "data": data,
            "first_id": data[0]["id"] if data else None,
            "last_id": data[-1]["id"] if data else None,
            "has_more": len(batches) > start + limit,
        }
        return await send_json(http, page)

    async def _poll(self, http: web.Request) -> web.StreamResponse:
        batch = self._batches.get(http.match_info["id"])
        if batch is None:
            return await refuse(http, "No such batch.", 404)
        async with batch.ending:
            if batch.status in _UNDER_WAY:
                if batch.polls < self._server.polls_until_done:
                    batch.polls += 1
                    batch.status = "in_progress"
                else:
                    await self._end(batch, self._server.batch_end)
        return await send_json(http, batch.described())

    async def _end(self, batch: Batch, end: str):
        """Process the requests and put the results into files."""
        n_responses = self._server.responses_before_end
        if end == "completed":
            n_responses = len(batch.lines)
        elif end == "failed":
            n_responses = 0
        results = []
        endpoint = batch.request["endpoint"]
        for index, (custom_id, entry) in enumerate(batch.lines):
            result = _result(custom_id, entry, None, _NO_RESPONSE)
            if index < n_responses:
                result = result_of(custom_id, entry, endpoint, self._server.behaviour)
            results.append(result)
            self._server.close(entry, in_batch=True)
            if index % 50 == 49:
                await asyncio.sleep(0)  # lets other requests be served
        if end == "failed":
            batch.errors = [_AS_A_WHOLE]
        else:  # not in the order of the requests
            results.sort(key=lambda result: result.entry.digest)
            completed = [result for result in results if result.is_good]
            failed = [result for result in results if not result.is_good]
            batch.completed = len(completed)
            batch.failed = len(failed)
            batch.output_file_id = self._file_of(
                f"{batch.id}_output.jsonl", completed
            )
            batch.error_file_id = self._file_of(f"{batch.id}_error.jsonl", failed)
        batch.status = end

    def _file_of(self, name: str, results: list[RequestResult]) -> str | None:
        if not results:
            return None
        content = b"".join(
            self._server.change_line(result.line, n)
            for n, result in enumerate(results, start=1)
        )
        return self._store(name, "batch_output", content).id
