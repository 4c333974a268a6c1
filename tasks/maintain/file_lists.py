"""File lists: JSON files that are written last and make the files beside them an export or a backup.

The last value of a list is a hash of all others. Older lists have none.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from tasks.dataset.foreign_files import open_inside
from tasks.rules.errors import PipelineError
from tasks.rules.text.json_text import read_json

_SHA256_HEX = 64


class Damaged(PipelineError):
    """Files are not what their list says, or the list cannot be used; nothing of them was taken over."""


def file_list(kind: str, version: int, content: dict[str, Any]) -> bytes:
    """The text of a file list of a kind."""
    document = {"format": kind, "version": version, **content}
    return json.dumps({**document, "sha256": _hash_of_list(document)}, indent=1, ensure_ascii=False).encode()


def _hash_of_list(document: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(document, sort_keys=True).encode()).hexdigest()


def read_file_list(text: bytes, path: Path | str, kind: str, version: int) -> dict[str, Any]:
    """A file list of a kind, from its text; `path` is where that was found.

    Raises:
        Damaged: it is of another kind, a newer version or none, was changed, or cannot be read.
    """
    try:
        document = read_json(text)
    except (ValueError, RecursionError) as error:
        raise Damaged(f"{path}: cannot be read ({type(error).__name__}: {error}); use another copy") from error
    if not isinstance(document, dict) or document.get("format") != kind:
        raise Damaged(f"{path}: is not a {kind}; check the path")
    if type(document.get("version")) is not int:
        raise Damaged(f"{path}: does not say its version; get it again")
    if document["version"] > version:
        raise Damaged(
            f"{path}: is of version {document['version']}, and this program knows at most {version}; "
            "use the newer program"
        )
    name, stated = list(document.items())[-1]
    # Found by its place, since its name may be what was changed.
    if isinstance(stated, str) and len(stated) == _SHA256_HEX:
        del document[name]
        if stated != _hash_of_list(document):
            raise Damaged(f"{path}: was changed: it does not have the hash that it states; use another copy")
    return document


def hash_of(path: Path, folder: Path | None = None) -> str:
    """The SHA-256 of a file; of one in a folder that came from elsewhere, no link out of it is followed.

    Raises:
        NotInside: there is one.
    """
    with path.open("rb") if folder is None else open_inside(folder, path.relative_to(folder)) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_inside(path: str) -> bool:
    """Whether a path that a file list names stays in the list's folder."""
    return path != "" and not Path(path).is_absolute() and ".." not in Path(path).parts
