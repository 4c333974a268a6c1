"""The runner: it names the rows that fail, and an expectation that could not be evaluated never
passes.
"""

from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pytest

from expectations import (
    IS_NOT_OK,
    IS_OK,
    ExpectationResult,
    FailedRow,
    all_expectations,
    expect,
    run_suite,
)
from expectations.failing import condition_of, query_of

KEYS = ("<b>one</b>", "two\n", "3", "")


def rows(**columns: list[Any]) -> pd.DataFrame:
    """A frame of rows with awkward keys."""
    n_rows = len(next(iter(columns.values())))
    return pd.DataFrame({"key": KEYS[:n_rows], **columns})


def result_on(frame: pd.DataFrame, kind: str, **arguments: Any) -> ExpectationResult:
    """The result of an expectation of this kind on the table `things`."""
    expectation = expect(
        "ingest",
        "things",
        "a_check",
        "things are right",
        kind,
        **arguments,
    )
    [result] = run_suite([expectation], {"things": frame}.__getitem__)
    return result


KINDS: list[tuple[str, dict[str, Any], dict[str, list[Any]], list[int]]] = [
    (
        "ExpectColumnValuesToBeBetween",
        {
            "column": "a",
            "min_value": 1,
            "max_value": 2,
        },
        {"a": [1, 2, 3, None]},
        [2],
    ),
    (
        "ExpectColumnValuesToBeBetween",
        {
            "column": "a",
            "min_value": 0,
            "strict_min": True,
        },
        {"a": [0, 1, -1]},
        [0, 2],
    ),
    (
        "ExpectColumnValuesToNotBeNull",
        {"column": "a"},
        {"a": [1.0, None]},
        [1],
    ),
    (
        "ExpectColumnValuesToBeInSet",
        {"column": "a", "value_set": ["x"]},
        {"a": ["x", "y"]},
        [1],
    ),
    (
        "ExpectColumnValuesToNotBeInSet",
        {"column": "a", "value_set": [0]},
        {"a": [1.0, 0.0, None]},
        [1],
    ),
    (
        "ExpectColumnValuesToMatchRegex",
        {"column": "a", "regex": "^u"},
        {"a": ["u", "au", ""]},
        [1, 2],
    ),
    (
        "ExpectCompoundColumnsToBeUnique",
        {"column_list": ["a", "b"]},
        {"a": [1, 1, 1], "b": [1, 2, 1]},
        [0, 2],
    ),
    (
        "ExpectColumnPairValuesToBeEqual",
        {"column_A": "a", "column_B": "b"},
        {"a": [1.0, None, 1.0, None], "b": [1.0, None, None, 0.0]},
        [2, 3],
    ),
    (
        "ExpectColumnValueLengthsToBeBetween",
        {
            "column": "a",
            "min_value": 1,
            "row_condition": IS_OK,
        },
        {"a": ["", "x", ""], "status": ["bad", "ok", "ok"]},
        [2],
    ),
    (
        "ExpectColumnValuesToBeNull",
        {"column": "a", "row_condition": IS_NOT_OK},
        {"a": ["x", "x", "x", None], "status": ["bad", "ok", None, "bad"]},
        [0],
    ),
]


@pytest.mark.parametrize(("kind", "arguments", "columns", "failing"), KINDS)
def test_the_failing_rows_are_named_and_all_counted(
    kind, arguments, columns, failing
):
    frame = rows(**columns)

    result = result_on(frame, kind, **arguments)

    failing_keys = [KEYS[index] for index in failing]
    assert [failure.key for failure in result.failures] == failing_keys
    assert result.n_evaluated == len(frame)


@pytest.mark.parametrize(("kind", "arguments", "columns", "failing"), KINDS)
def test_sql_finds_the_rows_that_great_expectations_names(
    kind, arguments, columns, failing
):
    expectation = expect("ingest", "things", "a_check", "right", kind, **arguments)
    checked = pa.Table.from_pandas(rows(**columns))

    matching = duckdb.from_arrow(checked).filter(condition_of(expectation))

    keys = matching.project("key").fetchnumpy()["key"]
    assert [*keys] == [KEYS[index] for index in failing]


def test_checks_that_only_a_benchmark_declares_are_left_to_great_expectations():
    declared = {
        "table": "criteria",
        "expectation": "ExpectColumnValuesToMatchRegex",
        "meaning": "a title has no white space",
        "column": "title",
        "regex": r"^\S*$",
    }
    [of_benchmark, *_] = all_expectations({"one_word": declared})

    assert query_of([of_benchmark]) is None


def test_a_failure_has_the_task_and_the_note_of_its_row():
    frame = rows(
        task_id=["t1", "t2"],
        note=["good", "bad $note {x}"],
        a=[1.0, None],
    )

    result = result_on(frame, "ExpectColumnValuesToNotBeNull", column="a")

    assert result.failures == (FailedRow("two\n", "t2", "bad $note {x}"),)


def test_findings_are_in_the_order_of_the_expectations_and_each_table_is_read_once():
    def not_null(table, column):
        return expect(
            "ingest",
            table,
            f"{table}_{column}",
            "there",
            "ExpectColumnValuesToNotBeNull",
            column=column,
        )

    tables = []

    def frame_of(table):
        tables.append(table)
        return rows(a=[1.0, None], b=[1.0, 2.0])

    expectations = [
        not_null("x", "b"),
        not_null("y", "a"),
        not_null("x", "a"),
    ]

    results = run_suite(expectations, frame_of)

    assert [result.expectation for result in results] == expectations
    assert [len(result.failures) for result in results] == [0, 1, 1]
    assert tables == ["x", "y"]


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("ExpectColumnValuesToBeWhatever", {"column": "a"}),
        ("ExpectColumnValuesToNotBeNull", {"column": "missing"}),
    ],
)
def test_what_cannot_be_evaluated_is_an_error(kind, arguments):
    with pytest.raises(RuntimeError, match=kind):
        result_on(
            rows(a=[1.0]),
            kind,
            **arguments,
        )
