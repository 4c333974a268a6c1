"""The version of a warehouse's files, which this code reads or refuses.

The published database is no part of it: it is rebuilt whenever the code that builds it has changed.
"""

from pathlib import Path

from warehouse.files.atomic import Unsound, read_sealed, write_sealed
from warehouse.files.damage import note
from warehouse.files.errors import WarehouseError
from warehouse.parts.part_list import noted_version

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
