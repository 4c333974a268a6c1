"""One expectation, declared as data: importing Great Expectations takes seconds, so only the runner does it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

SUITES = ("ingest", "sample", "judge")
"""The stages after which there is something to check, in the order of the pipeline."""

Severity = Literal["critical", "warning"]


@dataclass(frozen=True)
class Expectation:
    """What must hold for the rows of a table.

    Attributes:
        suite: one of `SUITES`.
        table: the rows that are looked at, a query in `sql/checks.sql`.
        check: the name in the configuration's `quality`; several expectations may share it.
        meaning: what is expected, in words.
        kind: the class in `great_expectations.expectations`.
        severity: how bad a row that fails is; the README says what follows.
        arguments: what the class takes.
    """

    suite: str
    table: str
    check: str
    meaning: str
    kind: str
    severity: Severity
    arguments: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The expectation as `checks.expectation` has it: the call that makes it."""
        return f"{self.kind}({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})"


def expect(
    suite: str, table: str, check: str, meaning: str, kind: str, *, severity: Severity = "critical", **arguments: Any
) -> Expectation:
    """An expectation, with the arguments of its class as they are."""
    return Expectation(suite, table, check, meaning, kind, severity, arguments)


def where(column: str, value: str) -> dict[str, Any]:
    """A `row_condition`: only the rows with this value are looked at."""
    return {"type": "comparison", "column": {"name": column}, "operator": "==", "parameter": value}


def where_not(column: str, value: str) -> dict[str, Any]:
    """A `row_condition`: only the rows with another value are looked at; a missing one is none."""
    differs = where(column, value) | {"operator": "!="}
    is_there = {"type": "nullity", "column": {"name": column}, "is_null": False}
    return {"type": "and", "conditions": [differs, is_there]}
