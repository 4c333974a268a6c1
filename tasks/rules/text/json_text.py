"""Reading JSON that somebody hands in: an object in which a key appears twice does not say what is meant."""

import json
from json import decoder, scanner
from typing import Any

_DEEPEST = 200
"""No data and no settings are nested so deeply, and whatever walks through them later bears several times as much."""


class KeyTwice(ValueError):
    """An object has a key twice; where in the text the object begins is known once it was looked for."""

    def __init__(self, key: str) -> None:
        super().__init__(f"key {key!r} appears twice")
        self.at: int | None = None


def read_json(text: str | bytes) -> Any:
    """The value of a JSON text.

    Raises:
        KeyTwice: an object has a key twice; in a text of several lines the message names the object's.
        ValueError: it is no JSON.
        RecursionError: it is nested too deeply.
    """
    if isinstance(text, bytes):
        text = text.decode(json.detect_encoding(text))
    try:
        value = json.loads(text, object_pairs_hook=_each_once)
    except KeyTwice as error:
        at = _place(text)
        if at is None or "\n" not in text.strip():
            raise
        raise ValueError(f"{error} in the object that begins in line {text.count(chr(10), 0, at) + 1}") from error
    if text.count("[") + text.count("{") > _DEEPEST:
        refuse_deep(value)
    return value


def refuse_deep(value: Any, most_values: int | None = None) -> None:
    """Refuse lists and mappings that are nested too deeply, or endlessly, or hold too many values.

    Raises:
        RecursionError: they are.
    """
    waiting, n_seen = [(value, 1)], 0
    while waiting:
        found, depth = waiting.pop()
        n_seen += 1
        if depth > _DEEPEST or (most_values is not None and n_seen > most_values):
            raise RecursionError("nested too deeply")
        inner = found.values() if isinstance(found, dict) else found if isinstance(found, list) else ()
        waiting += [(each, depth + 1) for each in inner]


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise KeyTwice(key)
        found[key] = value
    return found


class _Locating(json.JSONDecoder):
    """A slower decoder, which knows where the object stands that it refuses."""

    def __init__(self) -> None:
        super().__init__(object_pairs_hook=_each_once)
        self.parse_object = self._object
        self.scan_once = scanner.py_make_scanner(self)  # type: ignore[attr-defined]

    def _object(self, text_and_end: tuple[str, int], *others: Any) -> Any:
        try:
            return decoder.JSONObject(text_and_end, *others)  # type: ignore[attr-defined]
        except KeyTwice as error:
            if error.at is None:
                error.at = text_and_end[1] - 1
            raise


def _place(text: str) -> int | None:
    try:
        _Locating().decode(text)
    except KeyTwice as error:
        return error.at
    except RecursionError:  # the slower decoder bears less
        return None
    return None
