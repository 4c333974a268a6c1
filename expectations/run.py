"""The runner of expectations on frames of rows; it names the rows that failed.

Nothing here knows a benchmark or a stage. A frame has the checked columns and the column `key`, which names a row; it
may have `task_id`, the row's task, and `note`, a description of the row.
"""

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from expectations.suites import Expectation


@dataclass(frozen=True)
class FailedRow:
    """A row that failed: its key, and its task and description, if its table has them."""

    key: str
    task_id: str = ""
    note: str = ""


@dataclass(frozen=True)
class ExpectationResult:
    """The result of one expectation: the number of checked rows, and the failed rows."""

    expectation: Expectation
    n_evaluated: int
    failures: tuple[FailedRow, ...]


def run_suite(expectations: Sequence[Expectation], frame_of: Callable[[str], Any]) -> list[ExpectationResult]:
    """Check all expectations and return a finding for each, in their order. Each table is read once.

    Args:
        expectations: what must hold.
        frame_of: returns the rows of a table as a pandas frame.

    Raises:
        RuntimeError: an expectation could not be evaluated; it never counts as met.
    """
    results = [ExpectationResult(each, 0, ()) for each in expectations]
    for table in dict.fromkeys(each.table for each in expectations):
        wanted = {index: each for index, each in enumerate(expectations) if each.table == table}
        frame = frame_of(table)
        for result in [] if frame.empty else _validated(wanted, frame).results:
            index = result.expectation_config.meta["place"]
            results[index] = ExpectationResult(wanted[index], len(frame), _failures(wanted[index], result, frame))
    return results


def _validated(expectations: Mapping[int, Expectation], frame: Any) -> Any:
    """Return the result of Great Expectations on the rows of one table."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    import great_expectations as gx

    # Great Expectations logs the path of its temporary folder.
    logging.getLogger("great_expectations.data_context.types.base").setLevel(logging.WARNING)
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = gx.data_context.types.base.ProgressBarsConfig(globally=False)
    suite = gx.ExpectationSuite(name="suite")
    for index, each in expectations.items():
        kind = getattr(gx.expectations, each.kind, None)
        if kind is None:
            raise RuntimeError(f"{each.check}: Great Expectations has no {each.kind}")
        suite.add_expectation(kind(**each.arguments, severity=each.severity, meta={"place": index}))
    # Great Expectations hashes all its input, and texts take long.
    batch = context.data_sources.pandas_default.read_dataframe(frame.drop(columns=["key", "note"], errors="ignore"))
    return batch.validate(suite, result_format={"result_format": "COMPLETE"})


def _failures(expectation: Expectation, result: Any, frame: Any) -> tuple[FailedRow, ...]:
    """Return the rows that failed.

    Great Expectations returns their positions, because it gets no columns that name them.
    """
    if result.exception_info.get("raised_exception"):
        raise RuntimeError(f"{expectation.text}: {result.exception_info.get('exception_message')}")
    positions = result.result.get("unexpected_index_list") or []
    if bool(positions) == bool(result.success):
        raise RuntimeError(f"{expectation.text}: failed without naming a row")
    failing = frame.loc[positions, [name for name in ("key", "task_id", "note") if name in frame]].astype(str)
    return tuple(FailedRow(**row) for row in failing.to_dict("records"))
