"""What a published database lacks, and whether taking it in comes to the same as rebuilding from all parts."""

from collections.abc import Sequence
from pathlib import Path

import duckdb

from warehouse.contracts.tables import TABLES, Table
from warehouse.parts.current_rows import BATCH, REMOVALS, decided, view_parts
from warehouse.parts.engine import engine, holds, quoted
from warehouse.parts.loading import Names, Standing
from warehouse.parts.manifest import Part, counted_as_published


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
