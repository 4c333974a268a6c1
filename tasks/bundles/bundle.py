"""Bundles: files in a folder or a store, and a manifest of their sizes and hashes, which is written
last.

Backups, exports, publications and certificates are kinds of bundles. Files without a manifest are
not a bundle, so a write that is killed leaves no bundle. The last value in a manifest is a hash of
all others.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple, TypeVar, get_args

from pydantic import TypeAdapter, ValidationError

from tasks.bundles.stores import Folder, Location
from tasks.rules.errors import PipelineError
from tasks.rules.text.json_text import read_json
from tasks.rules.text.numbers import list_text
from warehouse.files import hash_of, hash_of_document

MANIFEST = "manifest.json"
VERSION = 2
"""The version of manifests that this code writes; of version 1 only backups can be read."""
Kind = Literal["export", "publication", "certificate", "backup"]
KINDS: tuple[Kind, ...] = get_args(Kind)
_NOT_META = {"format", "version", "files"}
"""The entries of a manifest that are the same for all kinds; `sha256` is removed before."""
Checked = TypeVar("Checked")


class Damaged(PipelineError):
    """Files do not match their manifest, or the manifest cannot be used."""


@dataclass(frozen=True)
class File:
    """A file of a bundle: its path within the bundle, its size, and the SHA-256 of its content."""

    name: str
    n_bytes: int
    sha256: str


class Bundle(NamedTuple):
    """The content of a manifest: the kind of the bundle, the files, and further entries."""

    kind: Kind
    files: tuple[File, ...]
    meta: dict[str, Any]

    @property
    def n_bytes(self) -> int:
        """The total size of the files in bytes."""
        return sum(file.n_bytes for file in self.files)


def manifest_of(kind: Kind) -> str:
    """Return the name of the manifest of a kind of bundle."""
    return "backup.json" if kind == "backup" else MANIFEST


def file_at(path: Path, name: str) -> File:
    """Return the entry of a local file in a bundle, under this name."""
    return File(name, path.stat().st_size, hash_of(path))


def write_bundle(
    location: Location,
    kind: Kind,
    files: Mapping[File, Path | None],
    meta: Mapping[str, Any],
    *,
    name: str | None = None,
) -> Bundle:
    """Put files in a location, and then the manifest, which makes them a bundle.

    Args:
        location: the folder or store of the bundle.
        kind: one of `KINDS`.
        files: file -> its local path; None if the file is at the location already.
        meta: further entries of the manifest.
        name: the name of the manifest, if it is not the usual one of the kind.
    """
    location.put({file.name: path for file, path in files.items() if path is not None})
    document = {
        "format": f"prbench-{kind}",
        "version": VERSION,
        **meta,
        "files": [asdict(file) for file in files],
    }
    document["sha256"] = hash_of_document(document)
    text = json.dumps(document, indent=1, ensure_ascii=False)
    location.write(name or manifest_of(kind), text.encode())
    return Bundle(kind, tuple(files), dict(meta))


def read_bundle(location: Location, *kinds: Kind) -> Bundle:
    """Return the bundle of one of these kinds at a location, without reading its files.

    Raises:
        Damaged: there is no bundle, or its manifest cannot be used.
    """
    names = dict.fromkeys(map(manifest_of, kinds))
    for name in names:
        text = location.read(name)
        if text is not None:
            return parse_manifest(text, f"{location}/{name}", *kinds)
    problem = f"is not a complete {' or '.join(kinds)}, {' or '.join(names)} is missing"
    raise Damaged(f"{location}: {problem}; check the path, or write it again")


def parse_manifest(text: bytes, path: str, *kinds: Kind) -> Bundle:
    """Return the bundle that a manifest describes; `path` is the manifest's path, for messages.

    Raises:
        Damaged: it is of another kind or a newer version, was changed, cannot be read, or names
            files elsewhere.
    """
    try:
        return _parsed(read_json(text), path, kinds)
    except (ValueError, RecursionError, LookupError, TypeError, AttributeError) as error:
        raise Damaged(
            f"{path}: cannot be read ({type(error).__name__}: {error}); use another copy"
        ) from error


def _parsed(document: Any, path: str, kinds: Iterable[Kind]) -> Bundle:
    # The version comes before the hash, which a newer one may compute in another way; the rest of
    # an older one is read only if its hash is right.
    formats = {f"prbench-{kind}": kind for kind in kinds}
    kind = formats.get(str(document.get("format"))) if isinstance(document, dict) else None
    if kind is None:
        raise Damaged(f"{path}: is not a {' or '.join(formats)}; check the path")
    version = document.get("version")
    stated_hash = document.pop("sha256", None)
    if checked(int, version, path, "version") > VERSION:
        raise Damaged(
            f"{path}: is of version {version}, which this version of prbench does not know; use a"
            " newer one"
        )
    needs_hash = stated_hash is not None or version == VERSION
    if needs_hash and stated_hash != hash_of_document(document):
        raise Damaged(
            f"{path}: was changed: it does not have the hash that it states; use another copy"
        )
    if version != VERSION and kind != "backup":
        raise Damaged(
            f"{path}: is of version {version}; write the {kind} again with this version of prbench"
        )
    files = document.get("files")
    if version == 1:  # a backup of 0.1.0
        files = [{**file, "name": file["stored_as"]} for file in files]
    files = checked(tuple[File, ...], files, path, "files")
    outside = [file.name for file in files if not is_inside(file.name)]
    if outside:
        raise Damaged(
            f"{path}: names {outside[0]!r}, which is not a file of the {kind}; use another copy"
        )
    meta = {name: value for name, value in document.items() if name not in _NOT_META}
    return Bundle(kind, files, meta)


def checked(expected_type: type[Checked], value: Any, path: str, name: str) -> Checked:
    """Return the entry `name` of a manifest after checking its type; `path` is that of the
    manifest.

    Raises:
        Damaged: the value has another type.
    """
    try:
        # A number is checked strictly, so that true and "2" are none. Others are not, because JSON
        # has lists and objects instead of tuples and dataclasses.
        return TypeAdapter(expected_type).validate_python(value, strict=expected_type is int)
    except ValidationError as error:
        where = ".".join([name, *map(str, error.errors()[0]["loc"])])
        raise Damaged(
            f"{path}: cannot be read ({where}: {error.errors()[0]['msg']}); use another copy"
        ) from error


def is_inside(name: str) -> bool:
    """Return whether a name is a normalised relative path that stays in its folder."""
    path = PurePosixPath(name)
    is_normalised = str(path) == name and name != "."
    return is_normalised and not path.is_absolute() and ".." not in path.parts


def missing_from(location: Location, files: Iterable[File]) -> list[str]:
    """Return the names of the files that are missing at a location or have another size there."""
    stored_sizes = location.files()
    return [file.name for file in files if stored_sizes.get(file.name) != file.n_bytes]


def is_complete_publication(location: Location) -> bool:
    """Return whether a location holds a publication with all files in the right size.

    Raises:
        Damaged: its manifest cannot be used.
    """
    has_manifest = location.read(MANIFEST) is not None
    return has_manifest and not missing_from(location, read_bundle(location, "publication").files)


def verify_bundle(location: Location, bundle: Bundle) -> None:
    """Read all files of a bundle at a location, and compare them with its manifest.

    Raises:
        Damaged: one is missing or has other content.
        UnsafeFile: one is a link that leads out of its folder.
    """
    _refuse_if_any(location, bundle, missing_from(location, bundle.files))
    _refuse_changed(location, bundle, location.hash_of)


def fetch_bundle(location: Location, bundle: Bundle, paths: Mapping[str, Path]) -> None:
    """Copy the files of a bundle to local paths, and compare them with its manifest.

    `paths` has a path for the name of each file.

    Raises:
        Damaged: one is missing or has other content.
        UnsafeFile: one is a link that leads out of its folder.
    """
    _refuse_if_any(location, bundle, missing_from(location, bundle.files))
    location.get(paths)
    _refuse_changed(location, bundle, lambda name: hash_of(paths[name]))


@contextmanager
def verified(location: Location, bundle: Bundle) -> Iterator[Path]:
    """Yield a local folder with a bundle's verified files; if they are in a store, it is temporary.

    Raises:
        Damaged: one is missing or has other content.
        UnsafeFile: one is a link that leads out of its folder.
    """
    if isinstance(location, Folder):
        verify_bundle(location, bundle)
        yield location.path
        return
    with TemporaryDirectory(prefix="prbench-") as temporary:
        paths = {file.name: Path(temporary, file.name) for file in bundle.files}
        fetch_bundle(location, bundle, paths)
        yield Path(temporary)


def _refuse_changed(location: Location, bundle: Bundle, hash_of_name: Callable[[str], str]) -> None:
    """Refuse a bundle if a file has another hash than its manifest states."""
    changed = [file.name for file in bundle.files if hash_of_name(file.name) != file.sha256]
    _refuse_if_any(location, bundle, changed)


def _refuse_if_any(location: Location, bundle: Bundle, names: list[str]) -> None:
    """Refuse a bundle because of the named files, if there are any."""
    if names:
        advice = "use another copy"
        if bundle.kind == "backup":
            advice += ", or `prbench backup --verify`"
        raise Damaged(
            f"{location}: {list_text(names)}: missing, or changed since it was written; {advice}"
        )


POINTER = "current.json"
PUBLICATIONS_FOLDER = "publications"
PUBLICATION = re.compile(r"\d{8}T\d{6}Z-[0-9a-f]{8}")
"""Matches the name of a publication's folder: its time, and a hash of its content."""


@dataclass(frozen=True)
class Pointer:
    """The latest publication: its path below the target, a hash of its content, and its time
    (UTC).
    """

    publication: str
    content: str
    published_at: str


def read_pointer(location: Location) -> Pointer | None:
    """Return the pointer at a target; None if nothing has been published there.

    Raises:
        Damaged: the file is not a pointer, or names something other than a publication at this
            target.
    """
    text = location.read(POINTER)
    path = f"{location}/{POINTER}"
    if text is None:
        return None
    meta = parse_manifest(text, path, "publication").meta
    pointer = checked(Pointer, meta, path, "pointer")
    folder, _, name = pointer.publication.partition("/")
    if folder != PUBLICATIONS_FOLDER or not PUBLICATION.fullmatch(name):
        raise Damaged(
            f"{path}: names {pointer.publication!r}, which is not a publication; publish to another"
            " target"
        )
    return pointer


def published_in(location: Location) -> Location:
    """Return the location of the latest publication at a target; without a pointer there, the
    target itself.
    """
    pointer = read_pointer(location)
    return location if pointer is None else location.below(pointer.publication)
