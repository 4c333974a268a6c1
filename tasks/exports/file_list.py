"""The file list of an export: which tables the folder holds, in which files."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tasks.maintain import Damaged, hash_of, is_inside, read_file_list, write_file_list

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


def write_export_list(folder: Path, file_list: FileList) -> None:
    """Write the list, which makes the export whole."""
    write_file_list(folder / NAME, FORMAT, VERSION, {"canaries": "left out", **asdict(file_list)})


def read_export_list(folder: Path) -> FileList:
    """The file list of an export.

    Raises:
        Damaged: there is none, or it is of a newer version or cannot be read.
    """
    path = folder / NAME
    if not path.is_file():
        raise Damaged(f"{folder}: not a complete export, {NAME} is missing; export again")
    document = read_file_list(path, FORMAT, VERSION)
    try:
        tables = tuple(_table(each) for each in document["tables"])
        return FileList(document["made_at"], tuple(document["benchmarks"]), tables)
    except (KeyError, TypeError, AttributeError) as error:
        raise Damaged(f"{path}: cannot be read ({type(error).__name__}: {error}); export again") from error


def _table(given: dict[str, Any]) -> Exported:
    files = tuple(File(each["name"], each["n_rows"], each["n_bytes"], each["sha256"]) for each in given["files"])
    return Exported(given["name"], given["is_derived"], dict(given["columns"]), given["n_rows"], files)


def verify(folder: Path, tables: Sequence[Exported]) -> None:
    """See that every file is what the list says.

    Raises:
        Damaged: one is missing, lies elsewhere or has other content.
        NotInside: one is a link that leads out of the folder.
    """
    for file in (file for table in tables for file in table.files):
        if not isinstance(file.name, str) or not is_inside(file.name):
            raise Damaged(f"{folder / NAME}: names {file.name!r}, which is not a file of the export")
        path = folder / file.name
        if not path.is_file():
            raise Damaged(f"{path}: is missing; copy or export again")
        if path.stat().st_size != file.n_bytes or hash_of(path, folder) != file.sha256:
            raise Damaged(f"{path}: differs from what was exported (size or SHA-256); copy or export again")
