"""Which rows of a figure its charts show, a chart for each split and judge among them, and a chart as JSON."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import altair as alt

from tasks.report.content.figures import Plot, Row, Rows

Draw = Callable[..., alt.TopLevelMixin]
"""Makes a chart of rows, and of what else it is told by name."""


def on_full_splits(rows: Rows) -> Rows:
    """The rows on full splits, of which hard splits are a part; all rows where there are only hard ones."""
    return [row for row in rows if not row["is_hard"]] or rows


def by_value(rows: Rows, column: str, draw: Draw, **how: Any) -> list[Plot]:
    """A chart for each value of a column, in the order of the rows."""
    values = names_in_order(rows, column)
    return [Plot(value, draw([row for row in rows if row[column] == value], **how)) for value in values]


def by_split(rows: Rows, draw: Draw, what: str = "", known: str = "", **how: Any) -> list[Plot]:
    """A chart for each full split, and for each judge where there are several (`by_judge_and_split`).

    Rows without a value in the column `known` are left out.
    """
    found = [row for row in rows if row[known] is not None] if known else rows
    return by_judge_and_split(on_full_splits(found), draw, what, **how)


def by_judge_and_split(rows: Rows, draw: Draw, what: str = "", judge: str = "judging", **how: Any) -> list[Plot]:
    """A chart for each split, and for each judge where there are several: judges are never mixed in one.

    A chart whose judge is not chosen on the page is hidden there.

    Args:
        rows: with `split`, and a column for the judge where judges matter.
        draw: makes a chart of the rows of one split and judge, and of `how`.
        what: what the charts show, where a split has several.
        judge: the column of the judge.
        how: how it is drawn, by name.
    """
    groups: dict[tuple[Any, str], list[Row]] = {}
    for row in rows:
        groups.setdefault((row.get(judge), row["split"]), []).append(row)
    has_several = len({judging for judging, _ in groups}) > 1
    return [
        Plot(
            (f"{what}, {split}" if what else split) + (f", judged by {judging}" if has_several else ""),
            draw(of_group, **how),
        )
        for (judging, split), of_group in groups.items()
    ]


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


def specification(chart: alt.TopLevelMixin) -> dict[str, Any]:
    """A chart as JSON, as wide as its place.

    `usermeta` says what decides how high it is, and what it cannot be drawn without (see `assets/charts.js`).
    """
    with alt.data_transformers.enable(consolidate_datasets=False):  # the rows stay at one known place, `data.values`
        found = chart.to_dict(validate=False) | {"autosize": {"type": "fit-x", "contains": "padding"}}
    return found | {"usermeta": {**found.get("usermeta", {}), "needed": _needed(found)}}


def _needed(found: Mapping[str, Any]) -> list[list[str]]:
    """The columns of each axis of numbers, and of the shade: a chart without a value in any of them shows nothing."""
    columns: dict[str, set[str]] = {"x": set(), "y": set(), "color": set()}
    for layer in (found, *found.get("layer", ())):
        for channel, of_channel in columns.items():
            definition = layer.get("encoding", {}).get(channel, {})
            if definition.get("type") == "quantitative" and "field" in definition:
                of_channel.add(definition["field"])
    return [sorted(of_channel) for of_channel in columns.values() if of_channel]


def shows_anything(found: Mapping[str, Any]) -> bool:
    """Whether a chart has a value for each of its axes."""
    rows = found["data"]["values"]
    return all(any(row.get(column) is not None for row in rows for column in of) for of in found["usermeta"]["needed"])
