"""JSON from outside, in which duplicate keys are refused because their meaning is unclear, and
values as JSON or text.
"""

import json
import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

_DEEPEST = 200
"""Data and settings are never nested as deeply; code that walks through them can handle several
times this depth.
"""


def read_json(text: str | bytes) -> Any:
    """Return the value of a JSON text.

    Raises:
        ValueError: it is not JSON, or an object has a duplicate key.
        RecursionError: it is nested too deeply.
    """
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text))
    value = json.loads(text, object_pairs_hook=_unique_keys)
    # Fewer brackets cannot be nested too deeply.
    if text.count("[") + text.count("{") > _DEEPEST:
        refuse_deep(value)
    return value


def refuse_deep(value: Any, most_values: float = math.inf) -> None:
    """Refuse lists and mappings that are nested too deeply, or endlessly, or have too many values.

    Raises:
        RecursionError: they are.
    """
    pending = [(value, 1)]
    n_values = 0
    while pending:
        nested, depth = pending.pop()
        n_values += 1
        if depth > _DEEPEST or n_values > most_values:
            raise RecursionError("nested too deeply")
        if isinstance(nested, dict):
            nested = list(nested.values())
        if isinstance(nested, list):
            pending += [(inner, depth + 1) for inner in nested]


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    by_key: dict[str, Any] = {}
    for key, value in pairs:
        if key in by_key:
            begin = json.dumps(dict(pairs))[:60]
            raise ValueError(f"key {key!r} appears twice in the object that begins with {begin}")
        by_key[key] = value
    return by_key


def json_value(value: Any) -> Any:
    """Return a value that JSON can hold.

    Decimals are numbers, NaN and infinity None, bytes as DuckDB writes them, and values and keys of
    other types are text.
    """
    if isinstance(value, str | int | None):
        return value
    if isinstance(value, Mapping):
        return {plain_text(name): json_value(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [json_value(part) for part in value]
    if isinstance(value, float | Decimal):
        return float(value) if math.isfinite(value) else None
    return plain_text(value)


def plain_text(value: Any) -> str:
    """Return a value as text: a nested or missing one and a truth value as JSON, bytes as DuckDB
    writes them.
    """
    if isinstance(value, Mapping | list | tuple | bool | None):
        return json.dumps(json_value(value), ensure_ascii=False)
    if isinstance(value, bytes):
        return "".join(map(_byte_text, value))
    return str(value)


def _byte_text(byte: int) -> str:
    is_plain = 32 <= byte < 127 and byte not in b"\\'\""
    return chr(byte) if is_plain else f"\\x{byte:02X}"
