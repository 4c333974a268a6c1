"""Rows as data frames."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from tasks.rules.errors import UsageError

if TYPE_CHECKING:
    from tasks.compare import Answer, Difference
    from warehouse import Reader

_OF_MODEL_RUN = ("model", "vintage", "judge", "judge_trial", "grading")
"""What a side of a comparison is, beside its name."""
_KINDS = ("polars", "arrow", "pandas")


def frame(reader: "Reader", query: str, parameters: Any, kind: str) -> Any:
    """The rows of a query as a data frame of a kind: polars, arrow, or pandas."""
    _refuse_unknown(kind)
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


def frame_of(rows: Sequence[Mapping[str, Any]], kind: str) -> Any:
    """Rows in memory as a data frame of a kind."""
    import pyarrow as pa

    _refuse_unknown(kind)
    return _as(pa.Table.from_pylist(list(rows)), kind)


def _as(table: Any, kind: str) -> Any:
    if kind == "arrow":
        return table
    if kind == "pandas":
        return table.to_pandas()
    import polars

    return polars.from_arrow(table)


def _refuse_unknown(kind: str) -> None:
    if kind not in _KINDS:
        raise UsageError(f"format {kind!r}: must be {', '.join(_KINDS[:-1])} or {_KINDS[-1]}")


def difference_record(answer: "Answer", difference: "Difference") -> dict[str, Any]:
    """A difference as one row."""
    from tasks.compare import sentence

    pair = difference.pair
    return {
        "first": pair.first.name,
        "second": pair.second.name,
        "split": difference.split,
        "score": answer.score,
        "first_mean": difference.first_mean,
        "second_mean": difference.second_mean,
        **asdict(difference.paired),
        "n_tasks_wanted": difference.n_wanted,
        "p_adjusted": difference.p_adjusted,
        "is_significant": difference.is_significant,
        "sentence": sentence(answer, difference),
        **{
            f"{place}_{name}": value
            for place, side in (("first", pair.first), ("second", pair.second))
            for name, value in asdict(side.model_run).items()
            if name in _OF_MODEL_RUN
        },
    }
