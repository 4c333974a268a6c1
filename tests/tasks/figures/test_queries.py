"""Values in a query: they reach the database unchanged, whatever they are."""

from collections import Counter

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sql
from tasks.figures.figure import columns
from tasks.figures.queries import Rows, filled, literal
from tasks.figures.shown import PAGES
from tests.tasks.report.synthetic.attacks import ATTACKS

# DuckDB keeps no NUL in a string; the contracts store none.
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
finite = st.floats(allow_nan=False, allow_infinity=False)
values = st.one_of(
    texts, st.sampled_from(ATTACKS), st.integers(-(2**31), 2**31), finite, st.booleans(), st.none()
)
connection = duckdb.connect()


@given(values)
def test_a_literal_is_read_as_the_value(value: object) -> None:
    ((result,),) = connection.execute(f"select {literal(value)}").fetchall()

    assert type(value) is type(result)
    assert value == result


@given(st.lists(texts, min_size=1))
def test_a_list_is_read_as_the_list(listed: list[str]) -> None:
    assert [(listed,)] == connection.execute(f"select {literal(listed)}").fetchall()


@given(st.lists(st.tuples(texts, texts), min_size=1, max_size=5))
def test_rows_are_joined_as_a_table(rows: list[tuple[str, str]]) -> None:
    result = connection.execute(f"from {literal(Rows(tuple(rows), 2))} as given (a, b)").fetchall()

    assert rows == result


def test_no_rows_are_a_table_without_rows() -> None:
    relation = connection.execute(f"select a, b from {literal(Rows((), 2))} as given (a, b)")

    assert [column[0] for column in relation.description or []] == ["a", "b"]
    assert relation.fetchall() == []


def test_a_query_that_asks_for_what_is_not_given_is_refused() -> None:
    with pytest.raises(KeyError, match="dataset_revision"):
        filled("overview/last_checks", {"benchmark": "prbench"})


def test_a_column_without_a_title_is_named() -> None:
    with pytest.raises(LookupError, match=r"'halves' in sql/schema.yml"):
        columns("model halves")


def test_a_value_that_looks_like_a_place_is_not_filled_again() -> None:
    text = filled(
        "overview/last_checks", {"benchmark": "$dataset_revision", "dataset_revision": "$benchmark"}
    )

    assert "benchmark = '$dataset_revision' and dataset_revision = '$benchmark'" in text


def test_a_figure_has_the_only_query_of_its_name() -> None:
    files = [
        path.stem
        for path in (sql.FOLDER / "figures").glob("*.sql")
        if path.stem not in {"shared", "scope"}
    ]
    names = Counter(name for file in files for name in sql.queries(f"figures/{file}"))
    figures = [figure for page in PAGES for figure in page.figures]

    assert [figure.name for figure in figures if not figure.query and names[figure.name] != 1] == []
