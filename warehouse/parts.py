"""Parquet parts: immutable files, named by time and content, and the small files that say which of them count.

Merged parts lie in a folder of their generation (`g0001/`) beside the parts as they were written. The manifest says
which of them stand and which files are replaced; it is swapped in by one rename, so every instant shows either the
parts before a compaction or those after it. A part that it does not name stands: writers need not know it.
"""

import hashlib
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.errors import WarehouseError, cause_of
from warehouse.files import HASH_HEX, Unsound, is_whole, note, read_sealed, sync, write_named, write_sealed
from warehouse.tables import TABLES

MANIFEST = "manifest.json"
COPY = "manifest-copy.json"
_IN_FOLDER = re.compile(r"(?:g\d+/)?[^/]+\.parquet")


@dataclass(frozen=True)
class Part:
    """A part that stands: its name, where it lies, and the names of the parts whose place it took.

    It has the rows of those in `replaces`. `n_rows` is known of merged parts only.
    """

    name: str
    path: Path
    replaces: frozenset[str] = frozenset()
    n_rows: int | None = None

    @property
    def is_merged(self) -> bool:
        """Whether compaction made it."""
        return self.n_rows is not None

    @property
    def moment(self) -> str:
        """The milliseconds in the name: parts are ordered by them."""
        return self.name.partition("-")[0]


Standing = Mapping[str, Sequence[Part]]
"""Table -> the parts that stand, oldest first."""
Names = set[tuple[str, str]]
"""Tables and names of parts."""


@dataclass
class Manifest:
    """What a manifest file says.

    Attributes:
        generation: number of the last compaction.
        merged: the merged parts that stand, by name: generation, rows, and names of the parts they replace.
        retired: files that are replaced and may still be there, by their path in the table's folder, with the moment
            (seconds since 1970) of the switch.
    """

    generation: int = 0
    merged: dict[str, dict[str, Any]] = field(default_factory=dict)
    retired: dict[str, float] = field(default_factory=dict)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a table's folder, or its copy where it is damaged; an empty one where nothing was ever merged.

    Raises:
        WarehouseError: both are damaged.
    """
    causes = []
    for name in (MANIFEST, COPY):
        try:
            return manifest_in(folder / name)
        except FileNotFoundError:
            continue
        except Unsound as error:
            causes.append(f"{folder / name}: cannot be read ({error}); `prbench aggregate` rebuilds it")
    if causes:
        raise WarehouseError(causes[0])
    return Manifest()


def manifest_in(path: Path) -> Manifest:
    """What one file says.

    Raises:
        FileNotFoundError: there is none.
        Unsound: it is damaged, or names a file outside of the table's folder.
    """
    try:
        found = Manifest(**read_sealed(path))
    except TypeError as error:
        raise Unsound(str(error)) from error
    # What is named is read, and deleted once it is replaced.
    wrong = next((name for name in [*found.merged, *found.retired] if not _IN_FOLDER.fullmatch(name)), None)
    if wrong is not None:
        raise Unsound(f"{wrong!r} is not a part in this folder")
    return found


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Switch to a manifest: whoever looks at the parts after this sees what it says, also after a power cut."""
    document = {"generation": manifest.generation, "merged": manifest.merged, "retired": manifest.retired}
    # The copy first: it is then never older than the manifest that it stands in for.
    write_sealed(folder / COPY, document)
    write_sealed(folder / MANIFEST, document)


def generation_folder(folder: Path, generation: int) -> Path:
    """Where the merged parts of a generation lie."""
    return folder / f"g{generation:04d}"


def standing_parts(folder: Path) -> list[Part]:
    """The parts of a table's folder that stand, oldest first, as of one instant.

    The manifest is read before the folder: what it names stays on the disk for the time of grace.
    """
    manifest = read_manifest(folder)
    names = {path.name for path in folder.glob("[0-9]*.parquet")} - manifest.retired.keys()
    parts = {name: Part(name, folder / name) for name in names}
    for name, merged in manifest.merged.items():
        path = generation_folder(folder, merged["generation"]) / name
        parts[name] = Part(name, path, frozenset(merged["replaces"]), merged["n_rows"])
    return [parts[name] for name in sorted(parts)]


def place_of(folder: Path, name: str) -> Path:
    """Where a part lies, one that was replaced but not deleted yet included."""
    manifest = read_manifest(folder)
    if name in manifest.merged:
        return generation_folder(folder, manifest.merged[name]["generation"]) / name
    former = (path for path in manifest.retired if Path(path).name == name)
    return folder / next(former, name)


def counted_as_published(parts: Iterable[Part], published: set[str]) -> set[str]:
    """The names of the parts whose rows a database holds that took in the parts `published`."""
    return {part.name for part in parts if part.name in published or (part.replaces and part.replaces <= published)}


def replace_parts(
    folder: Path,
    runs: Sequence[Sequence[Part]],
    write: Callable[[Sequence[Part], Path], Part],
    published: Collection[str] = (),
) -> list[Part]:
    """Write one new part for each run of parts, and switch the table to the new parts by one rename of the manifest.

    A kill leaves the table as it was or as it is to be. The old files stay for the time of grace, and compaction
    deletes them. `published` are the names of parts that the database holds: it then need not take in a new part with
    the same rows. The caller holds the publish lock.
    """
    if not runs:
        return []
    manifest = read_manifest(folder)
    manifest.generation += 1
    into = generation_folder(folder, manifest.generation)
    made = [(run, write(run, into)) for run in runs]
    sync(into)
    sync(folder)
    for run, part in made:
        for old in run:
            manifest.merged.pop(old.name, None)
            manifest.retired[str(old.path.relative_to(folder))] = time.time()
        manifest.merged[part.name] = {
            "generation": manifest.generation, "n_rows": part.n_rows,
            "replaces": sorted({name for old in run for name in _known_as(old, published)}),
        }  # fmt: skip
    write_manifest(folder, manifest)
    return [part for _, part in made]


def _known_as(part: Part, published: Collection[str]) -> Collection[str]:
    """The names by which a database knows a part's rows: its own, or those of the parts that were merged into it."""
    return {part.name} if part.name in published or not part.replaces else part.replaces


DAMAGED = "damaged"
"""The folder in a warehouse to which damaged files are moved."""
_LEFTOVER_AGE_S = 3600.0


class PartStore:
    """The parts of every stored table below `root`, one folder a table.

    A part's name is `<milliseconds>-<content hash>.parquet`: sorted names are the order of writing, and the same
    content is not written twice. Compaction puts merged parts in the place of many (see `warehouse.manifest`).
    """

    def __init__(self, root: Path) -> None:
        self.root = root / "parts"

    def write(self, table_name: str, rows: Iterable[Mapping[str, Any]]) -> str | None:
        """Write rows as one part and return its name; None when there are no rows.

        The part is on disk, under its final name, when this returns. Where a part of this content stands already,
        its name is returned and nothing is written.

        Raises:
            WarehouseError: a row does not fit the table's contract, or the disk refuses.
        """
        given = list(rows)
        if not given:
            return None
        table = _as_arrow(table_name, given)
        content = _serialise(table)
        content_hash = hashlib.sha256(content).hexdigest()[:HASH_HEX]
        present = self._standing(table_name, content_hash, table)
        if present is not None:
            return present
        folder = self.root / table_name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # Named when it is on the disk, so that hardly any part appears after one with a later name.
            return write_named(folder, content, lambda: f"{self._next_moment(table_name):015d}-{content_hash}.parquet")
        except OSError as error:
            raise WarehouseError(f"{folder}: a part cannot be written: {cause_of(error, folder)}") from error

    def _next_moment(self, table_name: str) -> int:
        """Milliseconds of the clock, or more: a part comes after those that stand, also when the clock went back."""
        last = max((int(part.partition("-")[0]) for part in self.parts(table_name)), default=0)
        return max(time.time_ns() // 1_000_000, last + 1)

    def _standing(self, table_name: str, content_hash: str, table: pa.Table) -> str | None:
        """The part that already holds this content, unless a later part took the place of one of its rows."""
        parts = self.parts(table_name)
        same = [part for part in parts if part.endswith(f"-{content_hash}.parquet")]
        if not same or not is_whole(self.path(table_name, same[-1])):
            return None
        key = list(TABLES[table_name].key)
        rows = {tuple(row.values()) for row in table.select(key).to_pylist()}
        for later in parts[parts.index(same[-1]) + 1 :]:
            path = self.path(table_name, later)
            # What a damaged part holds is not known; writing once more than needed changes nothing that is read.
            if not is_whole(path):
                return None
            stored = pq.read_table(path, columns=key).to_pylist()
            if any(tuple(row.values()) in rows for row in stored):
                return None
        return same[-1]

    def standing(self, table_name: str) -> list[Part]:
        """A table's parts, oldest first, all as of one instant."""
        return standing_parts(self.root / table_name)

    def parts(self, table_name: str) -> list[str]:
        """The names of a table's parts, oldest first."""
        return [part.name for part in self.standing(table_name)]

    def path(self, table_name: str, part: str) -> Path:
        """Where a part lies."""
        return place_of(self.root / table_name, part)

    def put_back(self, table_name: str, rows: pa.Table, moment: str) -> str:
        """Write rows as a part that has the place in the order that another one had, and return its name."""
        content = _serialise(rows)
        name = f"{moment}-{hashlib.sha256(content).hexdigest()[:HASH_HEX]}.parquet"
        folder = self.root / table_name
        folder.mkdir(parents=True, exist_ok=True)
        # What comes back may be, byte for byte, a part that was merged away; it stands again.
        manifest = read_manifest(folder)
        if manifest.retired.pop(name, None) is not None:
            write_manifest(folder, manifest)
        return write_named(folder, content, lambda: name)

    def set_aside(self, table_name: str, part: Part) -> Path:
        """Move a damaged part out of the way, and return where it lies now. It is never deleted.

        The caller holds the publish lock.
        """
        to = aside(self.root.parent, part.path, table_name)
        sync(part.path.parent)
        self.forget(table_name, part)
        return to

    def forget(self, table_name: str, part: Part) -> None:
        """Take a part that is gone off the manifest, if it is a merged one."""
        folder = self.root / table_name
        manifest = read_manifest(folder)
        if manifest.merged.pop(part.name, None) is not None:
            write_manifest(folder, manifest)

    def remove_leftovers(self) -> None:
        """Remove what writers that were killed left behind: temporary files that have not been touched for long."""
        oldest_s = time.time() - _LEFTOVER_AGE_S
        for leftover in self.root.glob("*/.*.tmp"):
            with suppress(FileNotFoundError):  # its writer renamed it since it was listed
                if leftover.stat().st_mtime < oldest_s:
                    leftover.unlink()


def aside(root: Path, path: Path, sub: str = "") -> Path:
    """Move a damaged file of a warehouse into its folder for these, and return where it lies now."""
    folder = root / DAMAGED / sub
    folder.mkdir(parents=True, exist_ok=True)
    to, number = folder / path.name, 1
    while to.exists():
        number += 1
        to = folder / f"{path.name}.{number}"
    path.replace(to)
    sync(folder)
    return to


def _as_arrow(table_name: str, rows: list[Mapping[str, Any]]) -> pa.Table:
    schema = TABLES[table_name].schema
    known = set(schema.names)
    for row in rows:
        if set(row) != known:
            odd = sorted(set(row) ^ known)
            raise WarehouseError(f"{table_name}: a row does not have the contract's columns: {', '.join(odd)}")
    whole = [field.name for field in schema if field.type == pa.int64()]
    for row in rows:
        for name in whole:
            # Arrow would cut off what is behind the point without a word.
            if isinstance(row[name], float):
                raise WarehouseError(f"{table_name}: {name} is {row[name]!r} and has to be a whole number")
    try:
        return pa.Table.from_pylist(rows, schema=schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError, OverflowError) as error:
        raise WarehouseError(f"{table_name}: a row does not fit the contract: {error}") from error


def _serialise(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return bytes(sink.getvalue())


LIST = "list.json"
_KINDS = ("benchmark", "model", "judge", "import_batch")
Kind = tuple[str, str | None, str | None, str | None, str | None]
"""A table and what distinguishes kinds of its rows, where the table has it: benchmark, model, judge, import batch."""


@dataclass(frozen=True)
class Listing:
    """The parts that should be there, and how many rows that stand were published of them, by their kind."""

    parts: frozenset[tuple[str, str]]
    rows: dict[Kind, int]


def count_query(columns: Mapping[str, Collection[str]] | None = None) -> str:
    """The query for how many rows of each kind a database holds.

    `columns` are those of its tables, where an earlier version built it; what it lacks has no rows.
    """
    known = {name: table.columns for name, table in TABLES.items()} if columns is None else columns
    tables = []
    for name in TABLES.keys() & known.keys():
        kinds = ", ".join(kind if kind in known[name] else f"null::varchar as {kind}" for kind in _KINDS)
        tables.append(f"select '{name}' as table_name, {kinds}, count(*) as n from {name} group by all")
    return f"select * from ({' union all '.join(tables)}) where n > 0"


def counted(rows: Iterable[tuple[str, str | None, str | None, str | None, str | None, int]]) -> dict[Kind, int]:
    """What `count_query` finds, by kind."""
    return {(table, benchmark, model, judge, batch): n for table, benchmark, model, judge, batch, n in rows}


def write_list(parts_root: Path, parts: Names, rows: dict[Kind, int], version: int) -> None:
    """Put the list in place, with the version of the warehouse, whose own file may be damaged one day."""
    by_table: dict[str, list[str]] = {}
    for table, part in sorted(parts):
        by_table.setdefault(table, []).append(part)
    parts_root.mkdir(parents=True, exist_ok=True)
    document = {"parts": by_table, "rows": [[*kind, n] for kind, n in rows.items()], "version": version}
    write_sealed(parts_root / LIST, document)


def read_list(parts_root: Path) -> Listing | None:
    """The list; None where there is none.

    Raises:
        Unsound: it is damaged.
    """
    try:
        document = read_sealed(parts_root / LIST)
    except FileNotFoundError:
        return None
    try:
        parts = frozenset((table, part) for table, names in document["parts"].items() for part in names)
        return Listing(parts, counted((table, *kind) for table, *kind in document["rows"]))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Unsound(f"{type(error).__name__}: {error}") from error


def noted_version(parts_root: Path) -> int | None:
    """The version of the warehouse by its list of parts; None where it is unknown."""
    try:
        return int(read_sealed(parts_root / LIST)["version"])
    except (FileNotFoundError, Unsound, KeyError, TypeError, ValueError):
        return None


FILE = "warehouse.json"
VERSION = 4
"""What this code writes; version 4 is of November 2026."""


def _version_of(root: Path) -> int | None:
    """The version of the warehouse in a folder; None where there is none yet, 1 where nothing says it.

    Raises:
        WarehouseError: its version is unknown.
    """
    path, parts = root / FILE, root / "parts"
    try:
        return _version_in(path)
    except FileNotFoundError:
        return (noted_version(parts) or 1) if parts.is_dir() and any(parts.iterdir()) else None
    except Unsound as error:
        noted = noted_version(parts)
        if noted is None:
            raise WarehouseError(
                f"{path}: cannot be read ({error}), or is of a version before 3; restore it from a backup"
            ) from error
        return noted


def _version_in(path: Path) -> int:
    version = read_sealed(path).get("version")
    if type(version) is not int:
        raise Unsound(f"its version is {version!r}")
    return version


def mend_version(root: Path) -> None:
    """Rewrite the file of a version where it is damaged and the version is known from elsewhere."""
    try:
        _version_in(root / FILE)
    except FileNotFoundError:
        return
    except Unsound as error:
        refuse_other_version(root)
        write_sealed(root / FILE, {"version": VERSION})
        note(root, f"{root / FILE}: was damaged ({error}); a new file is written")


def refuse_other_version(root: Path) -> int | None:
    """The version of the warehouse in a folder, None where there is none yet, if this code reads it.

    Raises:
        WarehouseError: it is newer or older.
    """
    version = _version_of(root)
    if version is not None and version > VERSION:
        raise WarehouseError(
            f"{root}: this warehouse was written by a newer prbench (version {version}, this one knows {VERSION}); "
            "upgrade prbench"
        )
    if version is not None and version < VERSION:
        raise WarehouseError(
            f"{root}: this warehouse was written by an older prbench (version {version}, this one reads {VERSION}); "
            "run the prbench of November 2026 on it once, or choose another folder with --warehouse"
        )
    return version


def begin(root: Path) -> None:
    """Note the version of a warehouse that is about to get its first part."""
    if refuse_other_version(root) is None:
        root.mkdir(parents=True, exist_ok=True)
        write_sealed(root / FILE, {"version": VERSION})
