"""Parquet parts: immutable files, named by time and content, and the small files that say which of them count.

Merged parts lie in a folder of their generation (`g0001/`) beside the parts as they were written. A table's manifest
says which of them stand and which files are replaced; it is swapped in by one rename, so every instant shows either the
parts before a compaction or those after it. A part that it does not name stands: writers need not know it.

`list.json` names the parts that should be there, with how many rows of each kind they came to. It is written before the
database that was built from them is put in place, so a part that it names was whole then. A part that is not in it was
written since, and what such a part holds is in the ledger or with whoever writes it.
"""

import hashlib
import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.errors import WarehouseError, cause_of
from warehouse.files import HASH_HEX, Unsound, is_whole, note, read_sealed, sync, write_named, write_sealed
from warehouse.tables import TABLES

FILE, LIST, MANIFEST = "warehouse.json", "list.json", "manifest.json"
VERSION = 4
"""What this code writes; version 4 is of November 2026. The published database is no part of it."""
DAMAGED = "damaged"
"""The folder in a warehouse to which damaged files are moved."""
_LEFTOVER_AGE_S = 3600.0
_IN_FOLDER = re.compile(r"(?:g\d+/)?[^/]+\.parquet")


class Part(NamedTuple):
    """A part that stands: its name, where it lies, and the names of the parts whose rows it has in their place."""

    name: str
    path: Path
    replaces: frozenset[str] = frozenset()

    @property
    def moment(self) -> str:
        """The milliseconds in the name: parts are ordered by them."""
        return self.name.partition("-")[0]


Standing = Mapping[str, Sequence[Part]]
"""Table -> the parts that stand, oldest first."""
Names = set[tuple[str, str]]
"""Tables and names of parts."""


class DamagedManifest(WarehouseError):
    """A manifest is not what was written; repair makes one of the parts that are there."""


@dataclass
class Manifest:
    """What a manifest file says.

    Attributes:
        generation: number of the last compaction.
        merged: the merged parts that stand, by name: generation, and names of the parts they replace.
        retired: files that are replaced and may still be there, by their path in the table's folder, with the moment
            (seconds since 1970) of the switch.
    """

    generation: int = 0
    merged: dict[str, dict[str, Any]] = field(default_factory=dict)
    retired: dict[str, float] = field(default_factory=dict)


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a table's folder; an empty one where nothing was ever merged.

    Raises:
        DamagedManifest: it is damaged, or names a file outside of the table's folder.
    """
    why: object = "it names what is not a part in this folder"
    try:
        found = Manifest(**read_sealed(folder / MANIFEST))
    except FileNotFoundError:
        return Manifest()
    except (Unsound, TypeError) as error:
        why = error
    else:
        # What is named is read, and deleted once it is replaced.
        if all(map(_IN_FOLDER.fullmatch, [*found.merged, *found.retired])):
            return found
    raise DamagedManifest(f"{folder / MANIFEST}: is damaged ({why}); `prbench aggregate` rebuilds it")


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Switch to a manifest: whoever looks at the parts after this sees what it says, also after a power cut."""
    write_sealed(folder / MANIFEST, vars(manifest))


def manifest_of_files(folder: Path) -> Manifest:
    """A manifest by which all merged parts stand that are there.

    Replaced ones among them, and parts that were merged, then stand beside them, which changes nothing that is read.
    """
    generations = {path.name: int(path.parent.name[1:]) for path in sorted(folder.glob("g[0-9]*/*.parquet"))}
    merged = {name: {"generation": generation, "replaces": []} for name, generation in generations.items()}
    return Manifest(max(generations.values(), default=0), merged)


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
        parts[name] = Part(name, path, frozenset(merged["replaces"]))
    return [parts[name] for name in sorted(parts)]


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
        known_as: set[str] = set()
        for old in run:
            manifest.merged.pop(old.name, None)
            manifest.retired[str(old.path.relative_to(folder))] = time.time()
            # A database knows a part's rows by its own name, or by those of the parts that were merged into it.
            known_as |= {old.name} if old.name in published or not old.replaces else old.replaces
        manifest.merged[part.name] = {"generation": manifest.generation, "replaces": sorted(known_as)}
    write_manifest(folder, manifest)
    return [part for _, part in made]


class PartStore:
    """The parts of every stored table below `root`, one folder a table.

    A part's name is `<milliseconds>-<content hash>.parquet`: sorted names are the order of writing, and the same
    content is not written twice. Compaction puts merged parts in the place of many.
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
        content, content_hash = _serialised(table)
        parts = self.standing(table_name)
        present = _present(parts, content_hash, table.select(TABLES[table_name].key))
        if present is not None:
            return present

        # Milliseconds of the clock, or more: a part comes after those that stand, also when the clock went back.
        # Named when it is on the disk, so that hardly any part appears after one with a later name.
        def name() -> str:
            last = max((int(part.moment) for part in self.standing(table_name)), default=0)
            return f"{max(time.time_ns() // 1_000_000, last + 1):015d}-{content_hash}.parquet"

        folder = self.root / table_name
        try:
            folder.mkdir(parents=True, exist_ok=True)
            return write_named(folder, content, name)
        except OSError as error:
            raise WarehouseError(f"{folder}: a part cannot be written: {cause_of(error, folder)}") from error

    def standing(self, table_name: str) -> list[Part]:
        """A table's parts, oldest first, all as of one instant."""
        return standing_parts(self.root / table_name)

    def all_standing(self) -> dict[str, list[Part]]:
        """The parts of every table."""
        return {table_name: self.standing(table_name) for table_name in TABLES}

    def parts(self, table_name: str) -> list[str]:
        """The names of a table's parts, oldest first."""
        return [part.name for part in self.standing(table_name)]

    def put_back(self, table_name: str, rows: pa.Table, moment: str) -> None:
        """Write rows as a part that has the place in the order that another one had."""
        content, content_hash = _serialised(rows)
        name = f"{moment}-{content_hash}.parquet"
        folder = self.root / table_name
        folder.mkdir(parents=True, exist_ok=True)
        # What comes back may be, byte for byte, a part that was merged away; it stands again.
        manifest = read_manifest(folder)
        if manifest.retired.pop(name, None) is not None:
            write_manifest(folder, manifest)
        write_named(folder, content, lambda: name)

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


def _present(parts: Sequence[Part], content_hash: str, keys: pa.Table) -> str | None:
    """The part that already holds this content, unless a later part took the place of one of its rows."""
    same = [number for number, part in enumerate(parts) if part.name.endswith(f"-{content_hash}.parquet")]
    if not same or not is_whole(parts[same[-1]].path):
        return None
    rows = {tuple(row.values()) for row in keys.to_pylist()}
    for later in parts[same[-1] + 1 :]:
        # What a damaged part holds is not known; writing once more than needed changes nothing that is read.
        if not is_whole(later.path):
            return None
        stored = pq.read_table(later.path, columns=keys.column_names).to_pylist()
        if any(tuple(row.values()) in rows for row in stored):
            return None
    return parts[same[-1]].name


def _as_arrow(table_name: str, rows: list[Mapping[str, Any]]) -> pa.Table:
    schema = TABLES[table_name].schema
    known, whole = set(schema.names), [field.name for field in schema if field.type == pa.int64()]
    for row in rows:
        if odd := sorted(set(row) ^ known):
            raise WarehouseError(f"{table_name}: a row does not have the contract's columns: {', '.join(odd)}")
        # Arrow would cut off what is behind the point without a word.
        if wrong := [name for name in whole if isinstance(row[name], float)]:
            raise WarehouseError(f"{table_name}: {wrong[0]} is {row[wrong[0]]!r} and has to be a whole number")
    try:
        return pa.Table.from_pylist(rows, schema=schema)
    except (pa.ArrowInvalid, pa.ArrowTypeError, UnicodeEncodeError, OverflowError) as error:
        raise WarehouseError(f"{table_name}: a row does not fit the contract: {error}") from error


def _serialised(table: pa.Table) -> tuple[bytes, str]:
    """The bytes of a part, and the hash in its name."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    content = bytes(sink.getvalue())
    return content, hashlib.sha256(content).hexdigest()[:HASH_HEX]


def aside(root: Path, path: Path, sub: str = "") -> str:
    """Move a damaged file of a warehouse into its folder for these, and return where it lies now.

    It is never deleted. The caller holds the publish lock.
    """
    folder = root / DAMAGED / sub
    folder.mkdir(parents=True, exist_ok=True)
    to, number = folder / path.name, 1
    while to.exists():
        number += 1
        to = folder / f"{path.name}.{number}"
    path.replace(to)
    sync(folder)
    sync(path.parent)
    return str(to.relative_to(root))


@dataclass(frozen=True)
class Loss:
    """Rows of one kind that are lost: how many there are less than there were."""

    table: str
    benchmark: str | None
    model: str | None
    judge: str | None
    vintage: str | None
    import_batch: str | None
    n_rows: int

    @property
    def line(self) -> str:
        """What is lost, in words."""
        named = (("benchmark", self.benchmark), ("model", self.model), ("judge", self.judge),
                 ("vintage", self.vintage), ("import", self.import_batch))  # fmt: skip
        of = ", ".join(f"{name} {value}" for name, value in named if value is not None)
        return f"{self.n_rows} rows of {self.table}" + (f" ({of})" if of else "") + " are lost"


Kind = tuple[Any, ...]
"""A table and what distinguishes kinds of its rows, where it has it: benchmark, model, judge, vintage, import batch."""


class Listing(NamedTuple):
    """The parts that should be there; of each kind how many rows that stand were published of them, and should be."""

    parts: frozenset[tuple[str, str]]
    rows: dict[Kind, tuple[int, int]]

    @property
    def losses(self) -> list[Loss]:
        """The kinds of which there are fewer rows than there should be."""
        return [Loss(*(*kind, should - n)) for kind, (n, should) in self.rows.items() if n < should]


def count_query() -> str:
    """The query for how many rows of each kind a database holds."""
    tables = []
    for name, table in TABLES.items():
        columns = ("benchmark", "model", "judge", "vintage", "import_batch")
        kinds = ", ".join(kind if kind in table.columns else f"null::varchar as {kind}" for kind in columns)
        tables.append(f"select '{name}' as table_name, {kinds}, count(*) as n from {name} group by all")
    return f"select * from ({' union all '.join(tables)}) where n > 0"


def write_list(parts_root: Path, listing: Listing) -> None:
    """Put the list in place, with the version of the warehouse, whose own file may be damaged one day."""
    by_table: dict[str, list[str]] = {}
    for table, part in sorted(listing.parts):
        by_table.setdefault(table, []).append(part)
    parts_root.mkdir(parents=True, exist_ok=True)
    rows = [[*kind, *numbers] for kind, numbers in listing.rows.items()]
    write_sealed(parts_root / LIST, {"parts": by_table, "kinds": rows, "version": VERSION})


def read_list(parts_root: Path) -> Listing | None:
    """The list; None where there is none. In November it had no numbers of this kind.

    Raises:
        Unsound: it is damaged.
    """
    try:
        document = read_sealed(parts_root / LIST)
        parts = frozenset((table, part) for table, names in document["parts"].items() for part in names)
        return Listing(parts, {tuple(kind): (n, should) for *kind, n, should in document.get("kinds", [])})
    except FileNotFoundError:
        return None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Unsound(f"{type(error).__name__}: {error}") from error


def losses_in(parts_root: Path) -> list[Loss]:
    """The rows that should be there and are not, as far as they were counted."""
    try:
        listing = read_list(parts_root)
    except Unsound:
        return []
    return listing.losses if listing else []


def version_in(path: Path) -> int | None:
    """The version that a file notes; None where it cannot say."""
    try:
        version = read_sealed(path)["version"]
    except (FileNotFoundError, Unsound, KeyError):
        return None
    return version if type(version) is int else None


def refuse_other_version(root: Path) -> int | None:
    """The version of the warehouse in a folder, None where there is none yet, if this code reads it.

    Raises:
        WarehouseError: it is newer or older, or cannot be read.
    """
    path, parts = root / FILE, root / "parts"
    version = version_in(path) or version_in(parts / LIST)
    if version is None and path.exists():
        raise WarehouseError(f"{path}: cannot be read, or is of a version before 3; restore it from a backup")
    if version is None and parts.is_dir() and any(parts.iterdir()):
        version = 1
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
    """Note the version of a warehouse where nothing notes it: before its first part, or since the file was damaged."""
    version, path = refuse_other_version(root), root / FILE
    if version_in(path) is None:
        if version is not None:
            note(root, f"{path}: was damaged or missing; it is written again")
        root.mkdir(parents=True, exist_ok=True)
        write_sealed(path, {"version": VERSION})
