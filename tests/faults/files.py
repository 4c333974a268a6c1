"""Files: what clients send to have it answered in a batch, and the results that they fetch."""

import time
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.faults.bodies import error_json
from tests.faults.book import Entry
from tests.faults.sending import send, send_json


@dataclass
class StoredFile:
    """A file that was sent or made, and the entries whose results it holds."""

    id: str
    name: str
    purpose: str
    content: bytes
    entries: list[Entry] = field(default_factory=list)
    created_at: int = field(default_factory=lambda: int(time.time()))

    def described(self) -> dict[str, Any]:
        """The file object of OpenAI's interface."""
        return {
            "id": self.id, "object": "file", "bytes": len(self.content), "created_at": self.created_at,
            "filename": self.name, "purpose": self.purpose, "status": "processed",
        }  # fmt: skip


class Files:
    """All files, and the endpoints for them."""

    def __init__(self) -> None:
        self._files: dict[str, StoredFile] = {}

    def routes(self) -> list[web.RouteDef]:
        """The paths that are answered here."""
        return [
            web.post("/v1/files", self._take),
            web.get("/v1/files/{id}", self._describe),
            web.get("/v1/files/{id}/content", self._send),
        ]

    def get(self, file_id: object) -> StoredFile | None:
        """The file of this id, if there is one."""
        return self._files.get(file_id) if isinstance(file_id, str) else None

    def store(self, name: str, purpose: str, content: bytes, entries: list[Entry]) -> StoredFile:
        """Keep a file under an id of its own."""
        stored = StoredFile(f"file-{len(self._files) + 1:06d}", name, purpose, content, entries)
        self._files[stored.id] = stored
        return stored

    async def _take(self, http: web.Request) -> web.StreamResponse:
        form = await http.post()
        sent, purpose = form.get("file"), form.get("purpose")
        if not isinstance(sent, web.FileField) or not isinstance(purpose, str):
            return await refuse(http, "'file' and 'purpose' are required.")
        stored = self.store(sent.filename, purpose, sent.file.read(), [])
        return await send_json(http, stored.described())

    async def _describe(self, http: web.Request) -> web.StreamResponse:
        stored = self.get(http.match_info["id"])
        if stored is None:
            return await refuse(http, "No such File object.", 404)
        return await send_json(http, stored.described())

    async def _send(self, http: web.Request) -> web.StreamResponse:
        stored = self.get(http.match_info["id"])
        if stored is None:
            return await refuse(http, "No such File object.", 404)
        response, is_delivered = await send(http, stored.content, content_type="application/octet-stream")
        for entry in stored.entries if is_delivered else ():
            entry.is_delivered = True
        return response


async def refuse(http: web.BaseRequest, message: str, status: int = 400) -> web.StreamResponse:
    """Tell the client that its request is wrong."""
    return await send_json(http, error_json(message), status)
