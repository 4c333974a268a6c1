"""A local HTTP server that speaks as much of the hub's protocol as loading a data set needs."""

import hashlib
import io
import json
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from tests.tasks.dataset.rows import HUB_SCHEMA

_ID = r"(?P<id>[^/]+/[^/]+)"
_INFO = re.compile(rf"/api/datasets/{_ID}(?:/revision/(?P<rev>[^/]+))?")
_TREE = re.compile(rf"/api/datasets/{_ID}/tree/(?P<rev>[^/]+)(?:/(?P<path>.+))?")
_FILE = re.compile(rf"/datasets/{_ID}/resolve/(?P<rev>[^/]+)/(?P<path>.+)")


@dataclass(frozen=True)
class Refusal:
    """An error response: status, `X-Error-Code`, and the text that a path must contain to get it."""

    status: int
    code: str | None = None
    paths: str = "/"


GATED = Refusal(401, "GatedRepo", paths="/resolve/")
"""Gated, no token: the description is public, every file is refused."""
FORBIDDEN = Refusal(403, "GatedRepo", paths=".parquet")
"""Gated, token without accepted terms: only the data files are refused."""
LOST_FILES = Refusal(404, "EntryNotFound", paths=".parquet")
"""The data files are listed but not there."""
BROKEN = Refusal(500)
"""The hub itself fails."""


@dataclass(frozen=True)
class HttpResponse:
    """Status, headers and body of one HTTP response; a HEAD request gets it without the body."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Snapshot:
    """A data set at a commit: its files by path."""

    dataset_id: str
    commit: str
    files: Mapping[str, bytes]


def data_file(split: str) -> str:
    """The path of a split's only Parquet file inside the repository."""
    return f"data/{split}-00000-of-00001.parquet"


def parquet(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """A Parquet file of rows in the hub's shape."""
    buffer = io.BytesIO()
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows], schema=HUB_SCHEMA), buffer)
    return buffer.getvalue()


def _readme(splits: Iterable[str]) -> bytes:
    """A data card whose header says, as the real one does, which files belong to which split."""
    paths = "".join(f"  - split: {split}\n    path: data/{split}-*\n" for split in splits)
    return f"---\nconfigs:\n- config_name: default\n  data_files:\n{paths}---\n".encode()


class HubServer:
    """A hub on 127.0.0.1.

    `url` is what `HF_ENDPOINT` has to be; `requests` lists each request as "METHOD path".
    """

    def __init__(self) -> None:
        self.requests: list[str] = []
        self._files: dict[tuple[str, str], dict[str, bytes]] = {}
        self._commits: dict[tuple[str, str], str] = {}
        self._refusals: dict[str, Refusal] = {}
        self.url = ""

    def publish(
        self, dataset_id: str, commit: str, splits: Mapping[str, Iterable[Mapping[str, Any]]], *,
        names: Iterable[str] = (), replace: Mapping[str, bytes] | None = None,
    ) -> None:  # fmt: skip
        """Serve `splits` as the content of a 40-hex `commit`, and of the branches or tags `names`.

        `replace` maps a path to bytes that are served in place of what the rows would give.
        """
        files = {data_file(split): parquet(rows) for split, rows in splits.items()}
        files["README.md"] = _readme(splits)
        self._files[dataset_id, commit] = files | dict(replace or {})
        self._commits |= {(dataset_id, name): commit for name in (commit, *names)}

    def refuse(self, dataset_id: str, refusal: Refusal) -> None:
        """Respond to requests about `dataset_id` with an error from now on."""
        self._refusals[dataset_id] = refusal

    def respond(self, path: str) -> HttpResponse:
        """Return the hub's HTTP response to a path without its query."""
        for pattern, reply in ((_INFO, _info), (_TREE, _tree), (_FILE, _file)):
            if match := pattern.fullmatch(path):
                inside = unquote(match.groupdict().get("path") or "")
                snapshot = self._find(path, match["id"], unquote(match["rev"] or "main"))
                return snapshot if isinstance(snapshot, HttpResponse) else reply(snapshot, inside)
        return HttpResponse(501, b"the test server does not speak this part of the protocol")

    def _find(self, path: str, dataset_id: str, revision: str) -> Snapshot | HttpResponse:
        """The content of a data set at a revision, or the error in its place."""
        refusal = self._refusals.get(dataset_id)
        if refusal and refusal.paths in path:
            return _error(refusal.status, refusal.code)
        if not any(known == dataset_id for known, _ in self._files):
            return _error(401, "RepoNotFound")  # without a token, both for a private id and for one that is not there
        commit = self._commits.get((dataset_id, revision))
        if commit is None:
            return _error(404, "RevisionNotFound")
        return Snapshot(dataset_id, commit, self._files[dataset_id, commit])


def _error(status: int, code: str | None) -> HttpResponse:
    """Return an error response; the hub states the kind of error in a header, not in the status."""
    return HttpResponse(status, headers={"X-Error-Code": code} if code else {})


def _info(snapshot: Snapshot, _: str) -> HttpResponse:
    """The description of a data set at a commit."""
    siblings = [{"rfilename": name} for name in sorted(snapshot.files)]
    info = {"id": snapshot.dataset_id, "sha": snapshot.commit, "siblings": siblings, "tags": []}
    return HttpResponse(200, json.dumps(info).encode())


def _tree(snapshot: Snapshot, folder: str) -> HttpResponse:
    """The entries of one folder, the repository's root when `folder` is empty."""
    prefix = f"{folder}/" if folder else ""
    entries: dict[str, dict[str, Any]] = {}
    for name, body in sorted(snapshot.files.items()):
        child, _, rest = name.removeprefix(prefix).partition("/")
        if name.startswith(prefix):
            kind, size, oid = ("directory", 0, child) if rest else ("file", len(body), _etag(body))
            entries[prefix + child] = {"type": kind, "path": prefix + child, "size": size, "oid": oid}
    return HttpResponse(200, json.dumps(list(entries.values())).encode()) if entries else _error(404, "EntryNotFound")


def _file(snapshot: Snapshot, path: str) -> HttpResponse:
    """One file's bytes, with the headers by which the client's cache knows its version."""
    commit = {"X-Repo-Commit": snapshot.commit}
    if path not in snapshot.files:
        return HttpResponse(404, headers=commit | {"X-Error-Code": "EntryNotFound"})
    body = snapshot.files[path]
    return HttpResponse(200, body, commit | {"ETag": f'"{_etag(body)}"'})


def _etag(body: bytes) -> str:
    """The hash of a file's content, 40 hex digits as for a git blob."""
    return hashlib.sha1(body, usedforsecurity=False).hexdigest()


@contextmanager
def serving_hub() -> Iterator[HubServer]:
    """A hub that runs until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            path = urlsplit(self.path).path
            hub.requests.append(f"{self.command} {path}")
            http_response = hub.respond(path)
            self.send_response(http_response.status)
            for name, value in {**http_response.headers, "Content-Length": str(len(http_response.body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(http_response.body)

        do_HEAD = do_GET  # noqa: N815 - the name that http.server calls

        def log_message(self, *_: Any) -> None:
            """Nothing on stderr: `requests` is the log."""

    hub = HubServer()
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hub.url = f"http://127.0.0.1:{server.server_port}"
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        yield hub
        server.shutdown()
