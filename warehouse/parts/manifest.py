"""The manifest of a table's parts: which merged parts there are, and which parts they took the place of.

Merged parts lie in a folder of their generation (`g0001/`) beside the parts as they were written. The manifest says
which of them stand and which files are replaced; it is swapped in by one rename, so every instant shows either the
parts before a compaction or those after it. A part that it does not name stands: writers need not know it.

It is sealed by its own hash and has a copy, which is written first and stands in where the manifest is damaged.
"""

import re
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from warehouse.files.atomic import Unsound, read_sealed, sync, write_sealed
from warehouse.files.errors import WarehouseError

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
