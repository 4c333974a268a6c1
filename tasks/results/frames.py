"""Rows as data frames."""

from typing import TYPE_CHECKING, Any

from tasks.rules.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from warehouse import Reader

_DIFFERENCE = (
    ("text", "first second split score"),
    ("number", "first_mean second_mean difference ci_low ci_high p_value p_adjusted smallest_detectable"),
    ("flag", "is_significant is_small"), ("count", "n_tasks n_tasks_wanted n_differing"),
    ("text", "sentence first_model first_vintage first_judge first_grading"), ("count", "first_judge_trial"),
    ("text", "second_model second_vintage second_judge second_grading"), ("count", "second_judge_trial"),
)  # fmt: skip


def frame(reader: "Reader", query: str, parameters: Any, kind: str) -> Any:
    """The rows of a query as a data frame of a kind: polars, arrow, or pandas."""
    return reader.frame(query, parameters) if kind == "pandas" else _as(reader.arrow(query, parameters), kind)


def refuse_writing(query: str) -> None:
    """Refuse a query that does more than read.

    Raises:
        UsageError: it is none, or several, or one that changes something.
    """
    import duckdb

    try:
        statements = duckdb.extract_statements(query)
    except duckdb.Error as error:
        raise UsageError(f"sql: {str(error).strip().splitlines()[0]}") from error
    reads = {duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN}
    if [each.type in reads for each in statements] != [True]:
        raise UsageError("sql: give one query that reads, such as `select * from leaderboard`")


def frame_of(records: list[dict[str, Any]], schema: "pa.Schema", kind: str) -> Any:
    """Rows in memory as a data frame of a kind; columns have their types even where no value is known, or no row."""
    import pyarrow as pa

    return _as(pa.Table.from_pylist(records, schema=schema), kind)


def difference_schema() -> "pa.Schema":
    """The columns of a difference, with their types."""
    import pyarrow as pa

    types = {"text": pa.string(), "number": pa.float64(), "count": pa.int64(), "flag": pa.bool_()}
    return pa.schema([(name, types[kind]) for kind, names in _DIFFERENCE for name in names.split()])


def _as(table: Any, kind: str) -> Any:
    if kind == "arrow":
        return table
    if kind == "pandas":
        return table.to_pandas()
    if kind != "polars":
        raise UsageError(f"format {kind!r}: must be polars, arrow or pandas")
    import polars

    return polars.from_arrow(table)
