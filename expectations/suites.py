"""The expectations that rules can name."""

from collections.abc import Mapping
from typing import Any

EXPECTATIONS = {
    "between": "ExpectColumnValuesToBeBetween",
    "at_least": "ExpectColumnValuesToBeBetween",
    "not_null": "ExpectColumnValuesToNotBeNull",
    "in": "ExpectColumnValuesToBeInSet",
    "not_in": "ExpectColumnValuesToNotBeInSet",
    "matches": "ExpectColumnValuesToMatchRegex",
}
"""Kind of rule -> class of Great Expectations."""

_RENAMED = {"values": "value_set"}


def build_expectation(kind: str, arguments: Mapping[str, Any], meta: Mapping[str, Any]) -> Any:
    """The expectation of a rule.

    Raises:
        KeyError: no expectation is known for this kind.
    """
    import great_expectations as gx

    cls = getattr(gx.expectations, EXPECTATIONS[kind])
    return cls(**{_RENAMED.get(name, name): value for name, value in arguments.items()}, meta=dict(meta))
