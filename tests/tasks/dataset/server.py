"""A local HTTP server with the part of the hub's protocol that loading a data set needs."""

import dataclasses
import hashlib
import io
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from tests.faults.anything import AnyServer, Plain, Seen
from tests.tasks.dataset.rows import HUB_SCHEMA

_ID = r"(?P<id>[^/]+/[^/]+)"
_INFO = re.compile(rf"/api/datasets/{_ID}(?:/revision/(?P<rev>[^/]+))?")
_TREE = re.compile(rf"/api/datasets/{_ID}/tree/(?P<rev>[^/]+)(?:/(?P<path>.+))?")
_FILE = re.compile(rf"/datasets/{_ID}/resolve/(?P<rev>[^/]+)/(?P<path>.+)")


@dataclass(frozen=True)
class Refusal:
    """An error response: its status, its `X-Error-Code`, and the text in the paths that it is sent
    for.
    """

    status: int
    code: str | None = None
    paths: str = "/"


GATED = Refusal(401, "GatedRepo", paths="/resolve/")
"""Gated, no token: the description is public, every file is refused."""
FORBIDDEN = Refusal(403, "GatedRepo", paths=".parquet")
"""Gated, token without accepted terms: only the data files are refused."""
LOST_FILES = Refusal(404, "EntryNotFound", paths=".parquet")
"""The data files are listed but missing."""
BROKEN = Refusal(500)
"""The hub itself fails."""


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
    table = pa.Table.from_pylist(list(map(dict, rows)), schema=HUB_SCHEMA)
    pq.write_table(table, buffer)
    return buffer.getvalue()


def _readme(splits: Iterable[str]) -> bytes:
    """A data card with a header that maps splits to files, like the real one."""
    entries = [f"  - split: {split}\n    path: data/{split}-*\n" for split in splits]
    paths = "".join(entries)
    text = f"---\nconfigs:\n- config_name: default\n  data_files:\n{paths}---\n"
    return text.encode()


class HubServer(AnyServer):
    """A hub on 127.0.0.1, whose address is what `HF_ENDPOINT` has to be."""

    def __init__(self):
        super().__init__(self._response)
        self._snapshots: dict[tuple[str, str], Snapshot] = {}
        self._refusals: dict[str, Refusal] = {}

    @property
    def requests(self) -> list[str]:
        """Each request as "METHOD path"."""
        return [
            f"{request.method} {urlsplit(request.path).path}" for request in self.seen
        ]

    def publish(
        self,
        dataset_id: str,
        commit: str,
        splits: Mapping[str, Iterable[Mapping[str, Any]]],
        *,
        names: Iterable[str] = (),
        replace: Mapping[str, bytes] | None = None,
    ):
        """Serve `splits` as the content of a 40-hex `commit`, and of the branches or tags `names`.

        `replace` maps a path to bytes that are served instead of the file of the rows.
        """
        files = {data_file(split): parquet(rows) for split, rows in splits.items()}
        files["README.md"] = _readme(splits)
        snapshot = Snapshot(dataset_id, commit, files | dict(replace or {}))
        self._snapshots |= {(dataset_id, name): snapshot for name in (commit, *names)}

    def refuse(self, dataset_id: str, refusal: Refusal):
        """Respond to requests about `dataset_id` with an error from now on."""
        self._refusals[dataset_id] = refusal

    def _response(self, seen: Seen) -> Plain:
        path = urlsplit(seen.path).path
        for pattern, respond in ((_INFO, _info), (_TREE, _tree), (_FILE, _file)):
            match = pattern.fullmatch(path)
            if match:
                response = self._refused(match)
                if response is None:
                    file_path = unquote(match.groupdict().get("path") or "")
                    response = respond(self._snapshots[_key_of(match)], file_path)
                if seen.method == "HEAD":
                    response = dataclasses.replace(response, body=tuple)
                return response
        return Plain(501)

    def _refused(self, match: re.Match[str]) -> Plain | None:
        """The error that a request gets, if any."""
        refusal = self._refusals.get(match["id"])
        if refusal and refusal.paths in match.string:
            return _error(refusal.status, refusal.code)
        if match["id"] not in {dataset_id for dataset_id, _ in self._snapshots}:
            # As for a private id without a token.
            return _error(401, "RepoNotFound")
        if _key_of(match) not in self._snapshots:
            return _error(404, "RevisionNotFound")
        return None


def _key_of(match: re.Match[str]) -> tuple[str, str]:
    """The id and the revision that a request names."""
    return match["id"], unquote(match["rev"] or "main")


def _content(body: bytes, **headers: str) -> Plain:
    return Plain(
        200,
        {"Content-Length": str(len(body)), **headers},
        lambda: [body],
    )


def _error(status: int, code: str | None) -> Plain:
    """Return an error response; the hub states the kind of error in a header, not in the status."""
    headers = {"Content-Length": "0"}
    if code:
        headers["X-Error-Code"] = code
    return Plain(status, headers)


def _info(snapshot: Snapshot, _: str) -> Plain:
    """The description of a data set at a commit."""
    siblings = [{"rfilename": name} for name in sorted(snapshot.files)]
    info = {
        "id": snapshot.dataset_id,
        "sha": snapshot.commit,
        "siblings": siblings,
        "tags": [],
    }
    return _content(json.dumps(info).encode())


def _tree(snapshot: Snapshot, folder: str) -> Plain:
    """The entries of one folder, the repository's root when `folder` is empty."""
    prefix = f"{folder}/" if folder else ""
    entries = {}
    for name, body in sorted(snapshot.files.items()):
        child, _, rest = name.removeprefix(prefix).partition("/")
        if name.startswith(prefix):
            entry = {
                "type": "file",
                "size": len(body),
                "oid": _etag(body),
            }
            if rest:
                entry = {"type": "directory", "size": 0, "oid": child}
            entries[prefix + child] = entry | {"path": prefix + child}
    if not entries:
        return _error(404, "EntryNotFound")
    return _content(json.dumps(list(entries.values())).encode())


def _file(snapshot: Snapshot, path: str) -> Plain:
    """One file's bytes, with the headers by which the client's cache knows its version."""
    commit = {"X-Repo-Commit": snapshot.commit}
    if path not in snapshot.files:
        error = _error(404, "EntryNotFound")
        return dataclasses.replace(error, headers=error.headers | commit)
    body = snapshot.files[path]
    return _content(body, ETag=f'"{_etag(body)}"', **commit)


def _etag(body: bytes) -> str:
    """The hash of a file's content, 40 hex digits as for a git blob."""
    return hashlib.sha1(body, usedforsecurity=False).hexdigest()
