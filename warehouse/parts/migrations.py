"""The version of a warehouse's files, and the steps that bring an older warehouse up to it.

A step may be cut off at any instant and is then done again, so it must come to the same when it is done twice. The
published database is no part of the version: it is rebuilt whenever the code that builds it has changed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from warehouse.contracts.columns import FORMER_COLUMNS
from warehouse.contracts.tables import FORMER_TABLES, TABLES
from warehouse.files.atomic import Unsound, read_sealed, write_sealed
from warehouse.files.damage import is_whole, note
from warehouse.files.errors import WarehouseError, cause_of
from warehouse.parts.manifest import Part, replace_parts, standing_parts
from warehouse.parts.merging import rewritten
from warehouse.parts.part_list import noted_version

FILE = "warehouse.json"


@dataclass(frozen=True)
class Migration:
    """A step to a version: what it does, in words, and to the root folder; None where no file has to change."""

    version: int
    meaning: str
    apply: Callable[[Path], None] | None = None


def _rename(root: Path) -> None:
    parts = root / "parts"
    former = {name: column for column, name in FORMER_COLUMNS.items()}

    def write(run: Sequence[Part], into: Path) -> Part:
        rows = pq.read_table(run[0].path)
        named = rows.rename_columns([former.get(name, name) for name in rows.column_names])
        # Without a key by today's names no row of the old part is taken over as it is.
        return rewritten(TABLES["evidence"], run, into, {}, named.to_pylist())

    # A damaged part is left for publishing to set aside.
    old = [
        [part]
        for part in standing_parts(parts / "evidence")
        if is_whole(part.path) and not former.keys().isdisjoint(pq.read_schema(part.path).names)
    ]
    replace_parts(parts / "evidence", old, write, changes_rows=True)
    for name, former_name in FORMER_TABLES.items():
        if (parts / former_name).is_dir():
            (parts / former_name).replace(parts / name)


MIGRATIONS = (
    Migration(2, "Parts may be merged (parts/<table>/manifest.json) and imports retracted; older code knows neither."),
    Migration(
        3,
        "Single responses may be removed, with their verdicts; the parts that should be there are listed "
        "(parts/list.json); small files show their own damage; warehouse.json names the parser that read the replies.",
    ),
    Migration(4, "Evidence is numbered by chunk (chunk_number, n_chunks); graders that vote are grader_sets.", _rename),
)
"""All steps, in their order; version 1 has no file that says so."""


def known_version() -> int:
    """The version that this code writes."""
    return MIGRATIONS[-1].version


def version_of(root: Path) -> int | None:
    """The version of the warehouse in a folder; None where there is none yet.

    Raises:
        WarehouseError: its version is unknown.
    """
    path = root / FILE
    try:
        return _version_in(path)
    except FileNotFoundError:
        parts = root / "parts"
        return 1 if parts.is_dir() and any(parts.iterdir()) else None
    except Unsound as error:
        noted = noted_version(root / "parts")
        if noted is None:
            raise WarehouseError(f"{path}: cannot be read ({error}); restore it from a backup") from error
        return noted


def _version_in(path: Path) -> int:
    version = read_sealed(path, must_be_sealed=False).get("version")
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
        version = version_of(root)
        assert version is not None
        _note(root, version)
        note(root, f"{root / FILE}: was damaged ({error}); a new file is written")


def refuse_newer(root: Path) -> int | None:
    """The version of the warehouse in a folder, unless newer code wrote it.

    Raises:
        WarehouseError: it is newer than this code.
    """
    version = version_of(root)
    if version is not None and version > known_version():
        raise WarehouseError(
            f"{root}: this warehouse was written by a newer prbench (version {version}, this one knows "
            f"{known_version()}); upgrade prbench"
        )
    return version


def begin(root: Path) -> None:
    """Note the version of a warehouse that is about to get its first part; an older one is left as it is."""
    if refuse_newer(root) is None:
        root.mkdir(parents=True, exist_ok=True)
        _note(root, known_version())


def is_old(root: Path) -> bool:
    """Whether there are steps to do."""
    version = refuse_newer(root)
    return version is not None and version < known_version()


def migrate(root: Path) -> list[Migration]:
    """Do the steps that are missing and return them. The caller is alone on this warehouse.

    Raises:
        WarehouseError: the warehouse is newer than this code, or the disk refuses.
    """
    version = refuse_newer(root)
    missing = [step for step in MIGRATIONS if version is not None and step.version > version]
    for step in missing:
        try:
            if step.apply:
                step.apply(root)
            _note(root, step.version)
        except OSError as error:
            raise WarehouseError(
                f"{root}: cannot be migrated to version {step.version}: {cause_of(error, root)}"
            ) from error
    return missing


def parser_of(root: Path) -> int:
    """By which version of the parser of replies the stored verdicts and answers were read; 1 where nothing says so."""
    return int(_noted(root).get("parser", 1))


def note_parser(root: Path, parser: int) -> None:
    """Note by which version of the parser all that is stored was read."""
    begin(root)
    write_sealed(root / FILE, {"version": version_of(root), **_noted(root), "parser": parser})


def _note(root: Path, version: int) -> None:
    write_sealed(root / FILE, {**_noted(root), "version": version})


def _noted(root: Path) -> dict[str, Any]:
    try:
        return read_sealed(root / FILE, must_be_sealed=False)
    except (FileNotFoundError, Unsound):
        return {}
