"""The models below `sql/`: their headers agree with what DuckDB reads."""

import json
import re
from typing import Any

import duckdb
import pytest

import sql
from warehouse.tables import TABLES

MODELS = {model.name: model for model in sql.models()}


def tables_in(query: str) -> set[str]:
    """The tables and views that a query reads, without its own CTEs, according to DuckDB's
    parser.
    """
    (text,) = duckdb.execute(
        "select json_serialize_sql($query)", {"query": query}
    ).fetchone() or ("",)
    tree = json.loads(text)
    assert not tree["error"], tree
    return set(_tables(tree, frozenset()))


def _tables(node: Any, steps: frozenset[str]) -> list[str]:
    if isinstance(node, list):
        return [name for child in node for name in _tables(child, steps)]
    if not isinstance(node, dict):
        return []
    steps |= {entry["key"] for entry in node.get("cte_map", {}).get("map", [])}
    names = [name for child in node.values() for name in _tables(child, steps)]
    if node.get("type") != "BASE_TABLE":
        return names
    name = ".".join(
        filter(None, (node["catalog_name"], node["schema_name"], node["table_name"]))
    )
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
QUERIES = [
    *(f"{file}/{name}" for file in FILES for name in sql.queries(file)),
    *(
        file for file in FILES if not sql.queries(file)
    ),  # a file with one query, of its name
]


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_reads_tables_and_models_and_nothing_else(name):
    query = re.sub(
        r"\b(from|join) \$\w+",
        r"\1 given",
        re.sub(r"\{\w+\}", "(given)", sql.read(name)),
    )

    assert tables_in(query) - {*TABLES, *MODELS, "given"} == set()


def test_what_a_model_rests_on_comes_before_it_and_ends_at_what_is_given():
    names = [
        model.name
        for model in sql.leading_to(["leaderboard"], ["tasks", "labelled_tasks"])
    ]

    assert names[-1] == "leaderboard"
    assert {
        "intermediate.mean_scores",
        "temp.decided_points",
        "intermediate.ranks",
    } < set(names)
    # neither what `tasks` depends on, nor what depends on `leaderboard`
    assert {"tasks", "labelled_tasks", "quarantine", "score_history"} & set(
        names
    ) == set()
    for model in sql.leading_to(["leaderboard"], ["tasks", "labelled_tasks"]):
        assert set(names) & set(model.depends_on) <= set(
            names[: names.index(model.name)]
        )
