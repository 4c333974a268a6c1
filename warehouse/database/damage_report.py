"""Damage to manifests, which say what parts there are; and an account of all that is damaged."""

from pathlib import Path

from warehouse.contracts.tables import TABLES
from warehouse.database.increments import gone_from
from warehouse.database.recovery import listed_by, rows_said
from warehouse.files.atomic import Unsound
from warehouse.files.damage import is_whole, note
from warehouse.files.errors import WarehouseError
from warehouse.parts.manifest import COPY, MANIFEST, Manifest, Part, manifest_in, read_manifest, write_manifest
from warehouse.parts.part_list import LIST, Listing, read_list
from warehouse.parts.store import PartStore, aside


def mend_manifests(store: PartStore, listing: Listing | None) -> None:
    """Restore manifests that are damaged or missing: from their copy, or from the merged parts that are there."""
    for table_name in TABLES:
        folder = store.root / table_name
        causes = [cause for name in (MANIFEST, COPY) if (cause := _damage_of(folder / name))]
        for path, why in causes:
            where = aside(store.root.parent, path, table_name).relative_to(store.root.parent)
            note(store.root.parent, f"{path}: is damaged ({why}); it is now {where}, and was rebuilt")
        is_there = [(folder / name).exists() for name in (MANIFEST, COPY)]
        if any(is_there):
            if not all(is_there) or causes:
                write_manifest(folder, read_manifest(folder))
        elif causes or _is_missed(folder, table_name, listing):
            write_manifest(folder, _of_merged_parts(folder))
            if not causes:
                note(store.root.parent, f"{folder / MANIFEST}: is missing; it was rebuilt from the merged parts")


def _damage_of(path: Path) -> tuple[Path, str] | None:
    """A manifest with what is wrong about it, if it is damaged."""
    try:
        manifest_in(path)
    except FileNotFoundError:
        pass
    except Unsound as error:
        return path, str(error)
    return None


def _is_missed(folder: Path, table_name: str, listing: Listing | None) -> bool:
    """Whether merged parts are there that should stand, but no manifest that says so."""
    merged = {path.name for path in folder.glob("g[0-9]*/*.parquet")}
    return listing is not None and any((table_name, name) in listing.parts for name in merged)


def _of_merged_parts(folder: Path) -> Manifest:
    """A manifest by which all merged parts stand that are there.

    Replaced ones among them, and parts that were merged, then stand beside them, which changes nothing that is read.
    """
    paths = sorted(folder.glob("g[0-9]*/*.parquet"))
    generations = {path.name: int(path.parent.name[1:]) for path in paths}
    merged = {
        path.name: {"generation": generations[path.name], "n_rows": rows_said(path) or 0, "replaces": []}
        for path in paths
    }  # fmt: skip
    return Manifest(max(generations.values(), default=0), merged)


def damage_of(store: PartStore, database: Path) -> list[str]:
    """What is damaged or missing, in words; nothing is changed."""
    found = []
    listing = None
    try:
        listing = read_list(store.root) or listed_by(database)
    except Unsound as error:
        found.append(f"{store.root / LIST}: is damaged ({error})")
    standing: dict[str, list[Part]] = {}
    for table_name in TABLES:
        folder = store.root / table_name
        found += [f"{folder / name}: is damaged" for name in (MANIFEST, COPY) if _damage_of(folder / name)]
        try:
            standing[table_name] = store.standing(table_name)
        except WarehouseError:
            continue
        found += [f"{part.path}: is damaged" for part in standing[table_name] if not is_whole(part.path)]
    gone = gone_from(standing, set(listing.parts)) if listing else set()
    found += [f"{store.root / table_name / name}: is missing" for table_name, name in sorted(gone)]
    return found
