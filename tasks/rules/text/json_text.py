"""The reader of JSON from outside: it refuses an object with a duplicate key, because its meaning
is unclear.
"""

import json
from typing import Any

_DEEPEST = 200
"""Depth that no data and settings reach; all code that walks through them can handle several times
as much.
"""


def read_json(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: it is not JSON, or an object has a duplicate key.
        RecursionError: it is nested too deeply.
    """
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text))
    value = json.loads(text, object_pairs_hook=_each_once)
    if text.count("[") + text.count("{") > _DEEPEST:
        refuse_deep(value)
    return value


def refuse_deep(value: Any, most_values: int | None = None) -> None:
    """Refuse lists and mappings that are nested too deeply, or endlessly, or have too many values.

    Raises:
        RecursionError: they are.
    """
    waiting = [(value, 1)]
    n_seen = 0
    while waiting:
        nested, depth = waiting.pop()
        n_seen += 1
        if depth > _DEEPEST or (most_values is not None and n_seen > most_values):
            raise RecursionError("nested too deeply")
        inner = (
            nested.values()
            if isinstance(nested, dict)
            else nested
            if isinstance(nested, list)
            else ()
        )
        waiting += [(each, depth + 1) for each in inner]


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    by_key: dict[str, Any] = {}
    for key, value in pairs:
        if key in by_key:
            begin = json.dumps(dict(pairs))[:60]
            raise ValueError(f"key {key!r} appears twice in the object that begins with {begin}")
        by_key[key] = value
    return by_key
