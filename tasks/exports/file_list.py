"""The file list of an export: which tables the folder holds, in which files."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tasks.maintain import Damaged, file_list, hash_of, is_inside, read_file_list
from tasks.stores import Folder, Store

NAME = "manifest.json"
FORMAT = "prbench-export"
VERSION = 1


@dataclass(frozen=True)
class File:
    """One Parquet file of a table."""

    name: str
    n_rows: int
    n_bytes: int
    sha256: str


@dataclass(frozen=True)
class Exported:
    """One table: its columns with their types, its files in order; a derived one is computed and not imported."""

    name: str
    is_derived: bool
    columns: dict[str, str]
    n_rows: int
    files: tuple[File, ...]


@dataclass(frozen=True)
class FileList:
    """What an export holds, and when it was made (UTC)."""

    made_at: str
    benchmarks: tuple[str, ...]
    tables: tuple[Exported, ...]


def write_export_list(place: Folder | Store, files: FileList, **more: Any) -> None:
    """Write the list, which makes the export whole; with what else a publication holds."""
    place.write(NAME, file_list(FORMAT, VERSION, {"canaries": "left out", **asdict(files), **more}))


def read_export_list(place: Folder | Store) -> FileList:
    """The file list of an export.

    Raises:
        Damaged: there is none, or it is of a newer version or cannot be read, or names files elsewhere.
    """
    path, text = f"{place}/{NAME}", place.read(NAME)
    if text is None:
        raise Damaged(f"{place}: not a complete export, {NAME} is missing; export again")
    document = read_file_list(text, path, FORMAT, VERSION)
    try:
        tables = tuple(_table(each) for each in document["tables"])
        files = FileList(document["made_at"], tuple(document["benchmarks"]), tables)
    except (KeyError, TypeError, AttributeError) as error:
        raise Damaged(f"{path}: cannot be read ({type(error).__name__}: {error}); export again") from error
    for file in (file for table in tables for file in table.files):
        if not isinstance(file.name, str) or not is_inside(file.name):
            raise Damaged(f"{path}: names {file.name!r}, which is not a file of the export")
    return files


def _table(given: dict[str, Any]) -> Exported:
    files = tuple(File(each["name"], each["n_rows"], each["n_bytes"], each["sha256"]) for each in given["files"])
    return Exported(given["name"], given["is_derived"], dict(given["columns"]), given["n_rows"], files)


def verify(folder: Path, tables: Sequence[Exported], shown: str | None = None) -> None:
    """See that every file is what the list says; `shown` is where they are from, if not from the folder.

    Raises:
        Damaged: one is missing or has other content.
        NotInside: one is a link that leads out of the folder.
    """
    for file in (file for table in tables for file in table.files):
        path, name = folder / file.name, f"{shown or folder}/{file.name}"
        if not path.is_file():
            raise Damaged(f"{name}: is missing; copy or export again")
        if path.stat().st_size != file.n_bytes or hash_of(path, folder) != file.sha256:
            raise Damaged(f"{name}: differs from what was exported (size or SHA-256); copy or export again")
