"""Queries of figures: values reach the database unchanged, whatever they are."""

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sql
from tasks.figures.figure import table_columns
from tasks.figures.scope import Table, literal, with_literals
from tasks.figures.shown import FIGURES
from tests.tasks.report.synthetic.attacks import ATTACKS

# DuckDB keeps no NUL in a string; the contracts store none.
texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]))
values = st.one_of(
    texts,
    st.sampled_from(ATTACKS),
    st.integers(-(2**31), 2**31),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.none(),
)
connection = duckdb.connect()
COLUMNS = {"a": "varchar", "b": "bigint"}


@given(values)
def test_a_literal_is_read_as_the_value(value):
    ((result,),) = connection.execute(f"select {literal(value)}").fetchall()

    assert type(result) is type(value)
    assert result == value


@given(st.lists(texts, min_size=1))
def test_a_list_is_read_as_the_list(elements):
    query = f"select {literal(elements)}"

    assert connection.execute(query).fetchall() == [(elements,)]


@given(
    st.lists(st.tuples(texts, st.none() | st.integers(0, 9)), min_size=1, max_size=5)
)
def test_rows_are_joined_as_a_table(rows):
    query = f"select a, b from {literal(Table(COLUMNS, rows))} as named"

    assert connection.execute(query).fetchall() == rows


def test_no_rows_are_a_table_with_columns_of_their_types():
    query = f"from {literal(Table(COLUMNS, []))} as named"

    relation = connection.execute(query)

    types = {name: str(kind) for name, kind, *_ in relation.description or []}
    assert types == {"a": "VARCHAR", "b": "BIGINT"}
    assert relation.fetchall() == []


def test_a_parameter_without_a_value_is_refused():
    with pytest.raises(KeyError, match="dataset_revision"):
        with_literals(
            "select $benchmark, $dataset_revision", {"benchmark": "prbench"}
        )


def test_a_value_that_looks_like_a_parameter_is_not_filled_again():
    text = with_literals("select $a, $b", {"a": "$b", "b": "$a"})

    assert text == "select '$b', '$a'"


def test_a_dollar_in_a_text_a_name_or_a_comment_is_no_parameter():
    query = "select '$a''$a' as \"$a\", $a -- not $a\n"

    assert (
        with_literals(query, {"a": 1}) == "select '$a''$a' as \"$a\", 1 -- not $a\n"
    )


def test_an_error_names_a_column_without_a_title():
    with pytest.raises(LookupError, match=r"'halves' in sql/schema.yml"):
        table_columns("model", "halves")


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_a_query_or_is_computed(name):
    figure = FIGURES[name]

    assert bool(figure.query) != bool(figure.compute)
    if figure.query:
        assert sql.read(f"figures/{figure.query}")
