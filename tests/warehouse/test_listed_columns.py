"""The models below `sql/` show what comes out: each output column is on a line of its own."""

import json
from typing import Any

import duckdb
import pytest

import sql

OPEN_COLUMNS = "intermediate.measured"
"""Its columns are the measures that other models read, so it cannot list them."""
MODELS = {model.name: model for model in sql.models()}
LISTING = sorted(MODELS.keys() - {OPEN_COLUMNS})


def parsed(query: str) -> dict[str, Any]:
    """Return the outermost node of a query, according to DuckDB's parser."""
    (text,) = duckdb.execute(
        "select json_serialize_sql($query)", {"query": query}
    ).fetchone() or ("",)
    (statement,) = json.loads(text)["statements"]
    return statement["node"]


def last_selects(node: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the selects of a query that make its rows: one, or the branches of a union."""
    if node["type"] == "SELECT_NODE":
        return [node]
    return [select for branch in node["children"] for select in last_selects(branch)]


def stars(node: Any) -> list[dict[str, Any]]:
    """Return each `*` and `columns(...)` below a node."""
    if isinstance(node, list):
        return [star for child in node for star in stars(child)]
    if not isinstance(node, dict):
        return []
    nested_stars = stars(list(node.values()))
    return [node, *nested_stars] if node.get("type") == "STAR" else nested_stars


def is_plain(star: dict[str, Any]) -> bool:
    """Return whether a star is `*` or `name.*`, and does not leave out or replace columns."""
    return not (star["columns"] or star["exclude_list"] or star["replace_list"])


@pytest.mark.parametrize("name", LISTING)
def test_a_model_lists_its_columns_each_on_a_line(name):
    query = MODELS[name].query
    branch, *_ = last_selects(parsed(query))

    columns = branch["select_list"]
    lines = [query.count("\n", 0, column["query_location"]) for column in columns]

    assert [column for column in columns if column["type"] == "STAR"] == []
    assert len(set(lines)) == len(columns)


@pytest.mark.parametrize("name", LISTING)
def test_further_branches_of_a_union_list_their_columns_or_are_a_whole_relation(name):
    _, *branches = last_selects(parsed(MODELS[name].query))

    for branch in branches:
        columns = branch["select_list"]
        if stars(columns):
            (star,) = columns
            assert star["type"] == "STAR"
            assert is_plain(star)


@pytest.mark.parametrize("name", MODELS)
def test_no_model_chooses_columns_by_a_pattern_of_their_names(name):
    patterns = [star for star in stars(parsed(MODELS[name].query)) if star["columns"]]

    assert patterns == []
    assert r"\0" not in MODELS[name].query
