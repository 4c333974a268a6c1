"""A chart as JSON for a page, with what `assets/charts.js` has to know of it."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import altair as alt
from altair.utils.schemapi import debug_mode


def unchecked() -> AbstractContextManager[None]:
    """Have Altair check no part of a chart when it is made, which takes as long as all else; the tests do it."""
    return debug_mode(False)


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
