"""Which rows of a figure its charts show, and one chart for each split and judge among them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import altair as alt

from tasks.report.content.figures import Plot, Row, Rows

Draw = Callable[[Rows], alt.TopLevelMixin]


def on_full_splits(rows: Rows) -> Rows:
    """The rows on full splits, of which hard splits are a part; all rows where there are only hard ones."""
    return [row for row in rows if not row["is_hard"]] or rows


def by_value(rows: Rows, column: str, draw: Draw) -> list[Plot]:
    """A chart for each value of a column, in the order of the rows."""
    return [Plot(value, draw([row for row in rows if row[column] == value])) for value in names_in_order(rows, column)]


def by_split(rows: Rows, draw: Draw, what: str = "") -> list[Plot]:
    """A chart for each full split, and for each judge where there are several (`by_judge_and_split`)."""
    return by_judge_and_split(on_full_splits(rows), draw, what)


def by_judge_and_split(rows: Rows, draw: Draw, what: str = "", judge: str = "judging") -> list[Plot]:
    """A chart for each split, and for each judge where there are several: judges are never mixed in one.

    A chart whose judge is not chosen on the page is hidden there.

    Args:
        rows: with `split`, and a column for the judge where judges matter.
        draw: makes a chart of the rows of one split and judge.
        what: what the charts show, where a split has several.
        judge: the column of the judge.
    """
    groups: dict[tuple[Any, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.get(judge), row["split"]), []).append(row)
    has_several = len({judging for judging, _ in groups}) > 1
    return [
        Plot(
            (f"{what}, {split}" if what else split) + (f", judged by {judging}" if has_several else ""),
            draw(of_group),
        )
        for (judging, split), of_group in groups.items()
    ]


def picked(rows: Rows, *columns: str) -> list[dict[str, Any]]:
    """The rows with what a chart needs of them, and with what the choice on the page looks at."""
    return [{name: row[name] for name in (*columns, "model", "judging") if name in row} for row in rows]


def names_in_order(rows: Rows, column: str) -> list[Any]:
    """The values of a column, each once, in the order of the rows."""
    return list(dict.fromkeys(row[column] for row in rows))


def range_of(rows: Rows, *columns: str) -> Sequence[float]:
    """The lowest and the highest value of some columns; 0 and 1 where there is none."""
    values = [row[column] for row in rows for column in columns if row[column] is not None]
    return (min(values), max(values)) if values else (0.0, 1.0)


def listed(names: Iterable[str], most: int = 8) -> str:
    """Names for a sentence, and how many more there are."""
    found = list(dict.fromkeys(names))
    more = f" and {len(found) - most} more" if len(found) > most else ""
    return ", ".join(found[:most]) + more
