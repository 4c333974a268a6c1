"""Publishing: the parts become one consistent DuckDB file, built beside the old one and swapped in by rename.

The new file starts as a copy of the last one and takes in the parts that it lacks; the models of `sql/` that stand on
them are built again. Nobody ever holds the published file open for writing, so readers are never locked out, and one
that opened the old file goes on reading it.
"""

import shutil
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from warehouse.build import build
from warehouse.errors import WarehouseError, cause_of
from warehouse.files import Unsound, is_database_whole, is_whole, note, read_sealed, sync, write_sealed
from warehouse.owner import refuse_if_lost
from warehouse.parts import (
    COPY,
    DAMAGED,
    LIST,
    MANIFEST,
    VERSION,
    Kind,
    Listing,
    Manifest,
    Names,
    Part,
    PartStore,
    Standing,
    aside,
    count_query,
    counted,
    counted_as_published,
    manifest_in,
    read_list,
    read_manifest,
    write_list,
    write_manifest,
)
from warehouse.reader import PARTS, Published, Reader, remember, stamp, what_is_published
from warehouse.rows import BATCH, REMOVALS, decided, engine, holds, quoted, standing_rows, view_parts
from warehouse.tables import TABLES, Table


class _DamagedCopy(Exception):
    """The database that was to be added to is damaged."""


@dataclass(frozen=True)
class _Look:
    """What publishing finds: the parts that stand, what the database lacks of them, and listed parts that are gone.

    `missing` is None where the database has to be built from all parts.
    """

    standing: dict[str, list[Part]]
    published: Published | None
    missing: Names | None
    gone: Names

    @property
    def everything(self) -> Names:
        """All parts that stand."""
        return {(table, part.name) for table, parts in self.standing.items() for part in parts}

    @property
    def read(self) -> Names:
        """The parts that publishing reads: whether an answer is retracted is looked up in all of them."""
        if self.missing is None:
            return self.everything
        if self.missing and self.published and self.published.retracted:
            return self.missing | {("responses", part.name) for part in self.standing["responses"]}
        return self.missing


def publish(store: PartStore, database: Path, *, must_rebuild: bool = False, must_verify: bool = False) -> bool:
    """Bring `database` up to the parts of `store`; True if it was renewed, False if it was up to date.

    With `must_rebuild` it is built from the parts alone also where adding to it would do. Every part is verified before
    it is read, with `must_verify` all that stand. Damaged ones are set aside, and what they held is restored as far as
    the last database has it; `warehouse.damage.take_notices` reports it. The caller holds the publish lock.

    Raises:
        WarehouseError: the database cannot be built; the published one stays as it is.
    """
    listing = listing_of(store, database)
    spill = database.with_name(f".{database.name}.looking.tmp.spill")
    try:
        look = _sound(store, database, listing, must_rebuild=must_rebuild, must_verify=must_verify)
        if look.missing == set():
            _keep_listed(store, look.everything, listing)
            return False
        published = look.published
        is_copy = bool(look.missing and published) and comes_to_the_same(
            look.standing, look.missing or set(), published.retracted if published else (), spill
        )
        if look.missing is not None and not is_copy:
            look = _sound(store, database, listing, must_rebuild=True)
        if look.gone:
            restore_rows(store, database, look.standing, look.gone)
            look = replace(look, standing={table: store.standing(table) for table in TABLES})
        _remove_leftovers(database)
        store.remove_leftovers()
        _put_in_place(store, database, look, listing, is_copy=is_copy)
    except _DamagedCopy:
        note(store.root.parent, f"{database}: was damaged; it is rebuilt from the parts", is_mended=True)
        return publish(store, database, must_rebuild=True)
    except (duckdb.Error, OSError) as error:
        raise WarehouseError(f"{database}: cannot be published: {cause_of(error, database)}") from error
    finally:
        _remove_leftovers(database)
    # A new retraction asks for a build from the parts alone, so a copy knows none that the last state did not.
    if is_copy or not look.standing["retractions"]:
        remember(database, Published(look.everything, published.retracted if is_copy and published else ()))
    return True


def _sound(
    store: PartStore, database: Path, listing: Listing | None, *, must_rebuild: bool, must_verify: bool = False
) -> _Look:
    """What is there, when everything that is damaged has been set aside."""
    set_aside: Names = set()
    while True:
        standing = {table: store.standing(table) for table in TABLES}
        gone = gone_from(standing, set(listing.parts)) if listing else set()
        # Contracts or models that changed, and parts that went away, ask for a build from the parts alone.
        published = None if must_rebuild or gone else what_is_published(database)
        missing = None if published is None else missing_in(standing, published.parts)
        look = _Look(standing, published, missing, gone)
        damaged = set_aside_damaged(store, standing, look.everything if must_verify else look.read, listing)
        if not damaged:
            note_missing_parts(store, gone, set_aside)
            return look
        set_aside |= damaged


def _put_in_place(store: PartStore, database: Path, look: _Look, listing: Listing | None, *, is_copy: bool) -> None:
    """Build the database beside the old one, note what it was built from, and swap it in."""
    from warehouse.blocks import fill_up

    building = database.with_name(f".{database.name}.{uuid.uuid4().hex}.tmp")
    try:
        if is_copy:
            shutil.copyfile(database, building)
        missing = look.missing if is_copy and look.missing else look.everything
        n_rows = build(look.standing, building, missing, stamp(), is_copy=is_copy)
    except duckdb.Error as error:
        if not is_copy or is_database_whole(database):
            raise
        raise _DamagedCopy from error
    fill_up(building)
    sync(building)
    if listing and look.gone:
        add_losses(store.root.parent, listing.rows, n_rows, {table for table, _ in look.gone})
    settle(store.root.parent, n_rows)
    _list(store, look.everything, n_rows)
    refuse_if_lost(database)
    building.replace(database)
    sync(database.parent)


def _keep_listed(store: PartStore, parts: Names, listing: Listing | None) -> None:
    """Write the list of parts where there is none, since it was damaged or deleted."""
    if listing and not (store.root / LIST).exists():
        _list(store, parts, listing.rows)


def _list(store: PartStore, parts: Names, n_rows: dict[Kind, int]) -> None:
    if parts:
        write_list(store.root, parts, n_rows, VERSION)


def _remove_leftovers(database: Path) -> None:
    """Remove what unfinished publishing left behind: under the lock, nobody else is building."""
    for leftover in database.parent.glob(f".{database.name}.*.tmp*"):
        shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()


def missing_in(standing: Standing, published: Names) -> Names | None:
    """The parts that a database with the parts `published` lacks; None if it holds parts that are no more.

    Parts that were merged since they were published are no loss, and the merged part lacks if one of them did.
    """
    missing: Names = set()
    for table_name, parts in standing.items():
        held = {part for table, part in published if table == table_name}
        known = counted_as_published(parts, held)
        if not held <= _accounted_for(parts, known):
            return None
        missing |= {(table_name, part.name) for part in parts if part.name not in known}
    return missing


def gone_from(standing: Standing, listed: Names) -> Names:
    """The listed parts that neither stand nor were merged into one that stands."""
    gone: Names = set()
    for table_name, parts in standing.items():
        held = {part for table, part in listed if table == table_name}
        lost = held - _accounted_for(parts, counted_as_published(parts, held))
        gone |= {(table_name, part) for part in lost}
    return gone


def _accounted_for(parts: Sequence[Part], known: set[str]) -> set[str]:
    return known.union(*(part.replaces for part in parts))


def comes_to_the_same(standing: Standing, missing: Names, retracted: Sequence[str], spill: Path) -> bool:
    """Whether adding the missing parts to what is published gives the rows that a build from all parts gives.

    It does when no missing row has to give way to, or stay behind, a published row of a part with a later name, and
    when nothing changes in what is removed or retracted (`retracted`: the batches whose retraction is published).
    """
    tables = {table for table, _ in missing}
    if tables & {"retractions", REMOVALS}:
        return False
    late = {name: found for name in tables if (found := _late(name, standing[name], missing))}
    asks_retracted = bool(retracted) and "responses" in tables
    if not late and not asks_retracted:
        return True
    with engine(spill) as connection:
        if asks_retracted and _touches_retracted(connection, standing, missing, retracted):
            return False
        return not any(_is_too_late(connection, TABLES[name], standing[name], late[name], missing) for name in late)


def _touches_retracted(
    connection: duckdb.DuckDBPyConnection, standing: Standing, missing: Names, retracted: Sequence[str]
) -> bool:
    """Whether a missing response is retracted, or takes the place of one: verdicts that stand or fell with it turn."""
    table, parts = TABLES["responses"], standing["responses"]
    new = [part.path for part in parts if (table.name, part.name) in missing]
    view_parts(connection, table, new, "new_answers")
    view_parts(connection, table, [part.path for part in parts], "answers")
    batches = ", ".join(map(quoted, retracted))
    taken_back = f"select response_id from answers where {BATCH} in ({batches})"
    return holds(connection, f"select 1 from new_answers where response_id in ({taken_back})")


def _late(table_name: str, parts: Sequence[Part], missing: Names) -> list[Part]:
    """The missing parts of a table that come before a published one, oldest first."""
    published = [part.name for part in parts if (table_name, part.name) not in missing]
    return [part for part in parts if (table_name, part.name) in missing and published and part.name < published[-1]]


def _is_too_late(
    connection: duckdb.DuckDBPyConnection, table: Table, parts: Sequence[Part], late: Sequence[Part], missing: Names
) -> bool:
    """Whether a late part comes before a published one that has a row with one of its keys, so that order matters.

    A decided row and a failed one come to the same in any order.
    """
    after = [part.path for part in parts if (table.name, part.name) not in missing and part.name > late[0].name]
    view_parts(connection, table, [part.path for part in late], "late")
    view_parts(connection, table, after, "after")
    same = " and ".join(f"late.{column} = after.{column}" for column in table.key)
    if table.keeps == "decided":
        same += f" and {decided('late.')} = {decided('after.')}"
    return holds(connection, f"select 1 from late inner join after on {same} and late.part < after.part")


_ROWS_A_PART = 50_000
_MOST_NAMED = 3


def listing_of(store: PartStore, database: Path) -> Listing | None:
    """Which parts should be there: by their list, or by the last database where that is missing or damaged."""
    try:
        listing = read_list(store.root)
    except Unsound as error:
        path = store.root / LIST
        to = aside(store.root.parent, path)
        note(store.root.parent, f"{path}: was damaged ({error}), is now {to.name}; it is written again", is_mended=True)
        listing = None
    return listing or listed_by(database)


def listed_by(database: Path) -> Listing | None:
    """The parts that a database holds, with how many rows of each kind; None where it cannot say."""
    if not database.exists():
        return None
    try:
        with Reader(database) as reader:
            parts = frozenset((row["table_name"], row["part"]) for row in reader.rows(f"from {PARTS}"))
            columns: dict[str, set[str]] = defaultdict(set)
            for row in reader.rows("select table_name, column_name from duckdb_columns() where not internal"):
                columns[row["table_name"]].add(row["column_name"])
            return Listing(parts, counted(reader.table(count_query(columns))[1]))
    except (duckdb.Error, OSError, ValueError, WarehouseError):
        return None


def set_aside_damaged(store: PartStore, standing: Standing, reading: Names, listing: Listing | None) -> Names:
    """Set those of some parts aside whose content is not what their names say; these, and merged ones that are gone.

    The caller holds the publish lock.
    """
    damaged: Names = set()
    for table_name, parts in standing.items():
        for part in parts:
            name = table_name, part.name
            if part.is_merged and not part.path.exists():
                store.forget(table_name, part)
            elif name in reading and not is_whole(part.path):
                _set_aside(store, table_name, part, listing)
            else:
                continue
            damaged.add(name)
    return damaged


def _set_aside(store: PartStore, table_name: str, part: Part, listing: Listing | None) -> None:
    root, n_rows = store.root.parent, rows_said(part.path)
    to = store.set_aside(table_name, part).relative_to(root)
    line = f"{part.path}: is damaged, since its content is not what its name says; it is now {to}"
    if listing is None:
        add_unknown(root, table_name, part.name, n_rows)
    elif (table_name, part.name) not in listing.parts:
        line += "; it was not published yet: the next `prbench run` brings back what the ledger holds of it"
    note(root, line)


def rows_said(path: Path) -> int | None:
    """How many rows a damaged part says that it has."""
    try:
        return int(pq.read_metadata(path).num_rows)
    except (OSError, pa.ArrowException, ValueError):
        return None


def note_missing_parts(store: PartStore, gone: Names, set_aside: Names) -> None:
    """Note parts that should be there and are not."""
    missing = Counter(table for table, _ in gone - set_aside)
    for table_name, number in sorted(missing.items()):
        names = sorted(part for table, part in gone - set_aside if table == table_name)[:_MOST_NAMED]
        more = f" and {number - len(names)} more" if number > len(names) else ""
        note(store.root.parent, f"{store.root / table_name}: {', '.join(names)}{more}: missing")


def restore_rows(store: PartStore, database: Path, standing: Standing, gone: Names) -> Names:
    """Write the rows that parts held which are gone as new parts, as far as the last database has them.

    It is used only if every block of it is whole.
    """
    if not database.exists() or not is_database_whole(database):
        return set()
    written: Names = set()
    with engine(database.with_name(f".{database.name}.restoring.tmp.spill")) as connection:
        connection.execute(f"attach {quoted(database)} as last (read_only)")
        parts = connection.execute(f"select table_name, part from last.{PARTS}").fetchall()
        held: Names = {(table, part) for table, part in parts}
        for table_name in sorted({table for table, _ in gone & held}):
            names = sorted(part for table, part in gone & held if table == table_name)
            left = counted_as_published(standing[table_name], {part for table, part in held if table == table_name})
            paths = [part.path for part in standing[table_name] if part.name in left]
            written |= _restore_table(connection, store, TABLES[table_name], paths, names)
    return written


def _restore_table(
    connection: duckdb.DuckDBPyConnection, store: PartStore, table: Table, left: list[Path], names: list[str]
) -> Names:
    # Other code may have built the database, before a column was added.
    known = _columns(connection, table.name)
    columns = ", ".join(f'"{column}"' if column in known else f'null as "{column}"' for column in table.columns)
    key = ", ".join(table.key)
    lost = f"select {columns} from last.{table.name}"
    if left:
        view_parts(connection, table, left, "left_parts")
        own = ", ".join(f'"{column}"' for column in table.columns)
        lost += f" except {standing_rows(table, 'left_parts', own)}"
    # A decided row stood before those of later parts, and any other one behind those of earlier parts.
    first, last = names[0].partition("-")[0], names[-1].partition("-")[0]
    places = {first: decided(), last: f"not {decided()}"} if table.keeps == "decided" else {last: "true"}
    if first == last:
        places = {last: "true"}
    written: Names = set()
    n_rows = 0
    for moment, condition in places.items():
        found = connection.sql(f"select * from ({lost}) where {condition} order by {key}")
        for batch in found.to_arrow_reader(_ROWS_A_PART):
            rows = pa.Table.from_batches([batch]).select(list(table.columns)).cast(table.schema)
            written.add((table.name, store.put_back(table.name, rows, moment)))
            n_rows += rows.num_rows
    note(
        store.root.parent,
        f"{store.root / table.name}: {n_rows} rows were restored from the last published database",
    )
    return written


def _columns(connection: duckdb.DuckDBPyConnection, table_name: str) -> set[str]:
    rows = connection.execute(
        "select column_name from duckdb_columns() where database_name = 'last' and table_name = ?", [table_name]
    ).fetchall()
    return {column for (column,) in rows}


LOSSES = "losses.json"
_MOST_NAMED = 10
_WHAT_TO_DO = (
    "what is lost comes back with the next `prbench run` if its replies are in the ledger, and with importing it again "
    "if it was imported; no call is made for it unless you ask: `prbench run --replace-lost` calls again for what is "
    "still missing, and ends this message"
)


@dataclass(frozen=True)
class Loss:
    """Rows of one kind that are lost: how many there were before, and how many there are now.

    Where nothing is known of the rows but the part that held them, `part` names it and `n_before` is what its own
    metadata says (None where that cannot be read either); such a loss ends only when the user lets it go.
    """

    table: str
    benchmark: str | None
    model: str | None
    judge: str | None
    import_batch: str | None
    n_before: int | None
    n_now: int = 0
    part: str | None = None

    @property
    def kind(self) -> Kind:
        """The kind of the rows."""
        return self.table, self.benchmark, self.model, self.judge, self.import_batch

    @property
    def n_rows(self) -> int | None:
        """How many rows are lost, as far as that is known."""
        return None if self.n_before is None else self.n_before - self.n_now

    @property
    def line(self) -> str:
        """What is lost, in words."""
        named = (("benchmark", self.benchmark), ("model", self.model), ("judge", self.judge),
                 ("import", self.import_batch), ("part", self.part))  # fmt: skip
        of = ", ".join(f"{name} {value}" for name, value in named if value is not None)
        number = "an unknown number of" if self.n_rows is None else f"{self.n_rows}"
        return f"{number} rows of {self.table}" + (f" ({of})" if of else "") + " are lost"


def lines_on(losses: Sequence[Loss]) -> list[str]:
    """What is lost and what to do, in words."""
    if not losses:
        return []
    lines = [loss.line for loss in losses[:_MOST_NAMED]]
    if len(losses) > _MOST_NAMED:
        lines.append(f"and rows of {len(losses) - _MOST_NAMED} more kinds; `prbench doctor` lists all")
    return [*lines, _WHAT_TO_DO]


def read_losses(root: Path) -> list[Loss]:
    """The losses of a warehouse; none where their record cannot be read."""
    try:
        return [Loss(**each) for each in read_sealed(root / DAMAGED / LOSSES)["losses"]]
    except FileNotFoundError:
        return []
    except (Unsound, KeyError, TypeError):
        return []


def mend_losses(root: Path) -> None:
    """Set a record of losses aside that cannot be read: what it said is not known any more."""
    path = root / DAMAGED / LOSSES
    try:
        if path.exists():
            read_sealed(path)
    except Unsound as error:
        to = aside(root, path)
        note(root, f"{path}: was damaged ({error}) and is now {to.name}; what was lost before is not known any more")


def add_losses(root: Path, before: Mapping[Kind, int], now: Mapping[Kind, int], tables: Iterable[str]) -> None:
    """Note of which kinds of some tables there are fewer rows than before."""
    missing = [
        Loss(*kind, n_before=n_before, n_now=now.get(kind, 0))
        for kind, n_before in before.items()
        if kind[0] in set(tables) and now.get(kind, 0) < n_before
    ]
    known = {loss.kind for loss in missing}
    # What was lost before from the same kind is still to come back: the count of then is the one to reach.
    earlier = [loss for loss in read_losses(root) if loss.part is not None or loss.kind not in known]
    highest = {loss.kind: loss.n_before for loss in read_losses(root) if loss.part is None}
    missing = [replace(loss, n_before=max(loss.n_before or 0, highest.get(loss.kind) or 0)) for loss in missing]
    if missing:
        write_losses(root, [*earlier, *missing])


def add_unknown(root: Path, table: str, part: str, n_rows: int | None) -> None:
    """Note that the rows of a part are lost of which nothing else is known."""
    write_losses(root, [*read_losses(root), Loss(table, None, None, None, None, n_rows, part=part)])


def settle(root: Path, now: Mapping[Kind, int]) -> None:
    """Look how much of what was lost is there again."""
    losses = read_losses(root)
    looked = [loss if loss.part else replace(loss, n_now=now.get(loss.kind, 0)) for loss in losses]
    left = [loss for loss in looked if loss.n_rows is None or loss.n_rows > 0]
    if left != losses:
        write_losses(root, left)


def write_losses(root: Path, losses: list[Loss]) -> None:
    """Make these the losses."""
    path = root / DAMAGED / LOSSES
    if losses:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_sealed(path, {"losses": [asdict(loss) for loss in losses]})
    else:
        path.unlink(missing_ok=True)


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
