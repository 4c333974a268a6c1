"""The models below `sql/`: their headers agree with what DuckDB reads, and each output column is on
a line of its own.
"""

import contextlib
import json
import re
import shutil
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

import sql
from warehouse import Warehouse
from warehouse.build import opened
from warehouse.reader import has_row
from warehouse.tables import TABLES

Node = dict[str, Any]
"""A node of the tree of a parsed query."""

MODELS = {model.name: model for model in sql.models()}


def parsed(query: str) -> Node:
    """Return the tree of a query, according to DuckDB's parser."""
    (text,) = duckdb.execute(
        "select json_serialize_sql($query)", {"query": query}
    ).fetchone() or ("",)
    tree = json.loads(text)
    assert not tree["error"], tree
    return tree


def tables_in(query: str) -> set[str]:
    """The tables and views that a query reads, without its own CTEs."""
    return set(_tables(parsed(query), frozenset()))


def _tables(node: Any, steps: frozenset[str]) -> list[str]:
    if isinstance(node, list):
        return [name for child in node for name in _tables(child, steps)]
    if not isinstance(node, dict):
        return []
    steps |= {entry["key"] for entry in node.get("cte_map", {}).get("map", [])}
    names = [name for child in node.values() for name in _tables(child, steps)]
    if node.get("type") != "BASE_TABLE":
        return names
    path = (
        node["catalog_name"],
        node["schema_name"],
        node["table_name"],
    )
    name = ".".join(filter(None, path))
    return names if name in steps else [*names, name]


@pytest.mark.parametrize("name", MODELS)
def test_a_model_declares_the_tables_that_it_reads_and_no_others(name):
    model = MODELS[name]

    assert sorted(tables_in(model.query)) == sorted(model.depends_on)


PATHS = [
    path
    for folder in ("figures", "queries", "report")
    for path in (sql.FOLDER / folder).glob("*.sql")
]
FILES = sorted(f"{path.parent.name}/{path.stem}" for path in PATHS)
QUERIES = []
for file in FILES:
    names = sql.queries(file)
    # A file without names of queries has one query, of the file's name.
    QUERIES += [f"{file}/{name}" for name in names] or [file]


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_reads_tables_and_models_and_nothing_else(name):
    query = re.sub(r"\{\w+\}", "(given)", sql.read(name))
    query = re.sub(r"\b(from|join) \$\w+", r"\1 given", query)

    assert tables_in(query) - {*TABLES, *MODELS, "given"} == set()


def test_what_a_model_rests_on_comes_before_it_and_ends_at_what_is_given():
    models = sql.leading_to(["leaderboard"], ["tasks", "labelled_tasks"])

    names = [model.name for model in models]
    inputs = {"intermediate.mean_scores", "temp.decided_points", "intermediate.ranks"}
    # neither what `tasks` depends on, nor what depends on `leaderboard`
    others = {"tasks", "labelled_tasks", "quarantine", "score_history"}
    assert names[-1] == "leaderboard"
    assert inputs < set(names)
    assert others.isdisjoint(names)
    for position, model in enumerate(models):
        assert set(model.depends_on).isdisjoint(names[position:])


OPEN_COLUMNS = "intermediate.measured"
"""Its columns are the measures that other models read, so it cannot list them."""
LISTING = sorted(MODELS.keys() - {OPEN_COLUMNS})


def outermost(query: str) -> Node:
    """Return the outermost node of a query."""
    (statement,) = parsed(query)["statements"]
    return statement["node"]


def last_selects(node: Node) -> list[Node]:
    """Return the selects of a query that make its rows: one, or the branches of a union."""
    if node["type"] == "SELECT_NODE":
        return [node]
    return [select for branch in node["children"] for select in last_selects(branch)]


def stars(node: Any) -> list[Node]:
    """Return each `*` and `columns(...)` below a node."""
    if isinstance(node, list):
        return [star for child in node for star in stars(child)]
    if not isinstance(node, dict):
        return []
    nested_stars = stars(list(node.values()))
    return [node, *nested_stars] if node.get("type") == "STAR" else nested_stars


@pytest.mark.parametrize("name", LISTING)
def test_a_model_lists_its_columns_each_on_a_line(name):
    query = MODELS[name].query
    branch, *_ = last_selects(outermost(query))

    columns = branch["select_list"]
    lines = [query.count("\n", 0, column["query_location"]) for column in columns]

    assert [column for column in columns if column["type"] == "STAR"] == []
    assert len(set(lines)) == len(columns)


@pytest.mark.parametrize("name", LISTING)
def test_further_branches_of_a_union_list_their_columns_or_are_a_whole_relation(name):
    _, *branches = last_selects(outermost(MODELS[name].query))

    for branch in branches:
        columns = branch["select_list"]
        if stars(columns):
            (star,) = columns
            assert star["type"] == "STAR"
            assert not star["exclude_list"]
            assert not star["replace_list"]


@pytest.mark.parametrize("name", MODELS)
def test_no_model_chooses_columns_by_a_pattern_of_their_names(name):
    patterns = [star for star in stars(parsed(MODELS[name].query)) if star["columns"]]

    assert patterns == []
    assert r"\0" not in MODELS[name].query


@contextlib.contextmanager
def emptied(
    connection: duckdb.DuckDBPyConnection, tables: list[str]
) -> Iterator[None]:
    """Empty tables for the time of a block."""
    for number, table in enumerate(tables):
        connection.execute(f"create temp table kept_{number} as from {table}")
        connection.execute(f"delete from {table}")
    yield
    for number, table in enumerate(tables):
        connection.execute(f"insert into {table} from kept_{number}")
        connection.execute(f"drop table kept_{number}")


@pytest.mark.slow
def test_a_table_has_no_row_without_what_it_needs(world_job, tmp_path):
    database = Path(shutil.copy(Warehouse(world_job.warehouse).database, tmp_path))
    names_by_need = defaultdict(list)
    for model in sql.models():
        if model.needs:
            names_by_need[model.needs].append(model.name)
    filled = set()
    with opened(database) as connection:
        for step in sql.models():
            if step.kind == "step":
                connection.execute(f"create temp table {step.name} as {step.query}")
        for need, names in names_by_need.items():
            upstream = sql.leading_to(names)
            assert any(
                need in (model.name, *model.depends_on) for model in upstream
            ), need
            filled |= {name for name in names if has_row(connection, f"from {name}")}
            with emptied(connection, [need, *names]):
                for name in names:
                    assert not has_row(connection, f"({MODELS[name].query})"), name
    # The world has no probabilities, and no verdicts beside other neighbours.
    assert sum(map(len, names_by_need.values())) == len(filled) + 2
