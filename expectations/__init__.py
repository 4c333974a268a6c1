"""Data quality with Great Expectations: the expectations after each stage, declared as data, and
their runner.

The runner checks frames of rows and names the rows that failed. It knows no benchmark and no stage.
A frame has the checked columns and the column `key`, which names a row; it may have `task_id`, the
row's task, and `note`, a description of the row. Importing Great Expectations takes seconds, so
only the runner does it.
"""

import logging
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

SUITES = ("ingest", "sample", "judge")
"""The stages with checks, in the order of the pipeline."""

Severity = Literal["critical", "warning"]


@dataclass(frozen=True)
class Expectation:
    """A condition that every row of a table must meet.

    Attributes:
        suite: one of `SUITES`.
        table: the checked rows, a query in `sql/checks.sql`.
        check: the name in the configuration's `quality`; several expectations may share it.
        meaning: the expectation as a sentence.
        kind: the class in `great_expectations.expectations`.
        severity: severity of a failing row; the README describes the consequences.
        arguments: the arguments of the class.
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
        """The expectation as in the column `checks.expectation`: the call that creates it."""
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{self.kind}({arguments})"


def expect(
    suite: str,
    table: str,
    check: str,
    meaning: str,
    kind: str,
    *,
    severity: Severity = "critical",
    **arguments: Any,
) -> Expectation:
    """Return an expectation; the arguments of its class are passed on unchanged."""
    return Expectation(suite, table, check, meaning, kind, severity, arguments)


IS_OK = {
    "type": "comparison",
    "column": {"name": "status"},
    "operator": "==",
    "parameter": "ok",
}
_HAS_STATUS = {
    "type": "nullity",
    "column": {"name": "status"},
    "is_null": False,
}
IS_NOT_OK = {"type": "and", "conditions": [IS_OK | {"operator": "!="}, _HAS_STATUS]}
"""`IS_OK` and `IS_NOT_OK` are values of `row_condition`: only such rows are checked."""

_TABLES = ("criteria", "rubrics")
"""The tables on which a benchmark may declare checks of its own."""
_criterion_check = partial(expect, "ingest", "criteria")
_rubric_check = partial(expect, "ingest", "rubrics")

_BLANK = "\t-\r\x1c- \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000"
r"""All white space. It is spelled out because the engines of regular expressions do not agree on
what `\s` is.
"""

_WITHOUT_BOUNDS = (
    _criterion_check(
        "weight_in_band",
        "a weight lies in the band of its class",
        "ExpectColumnValuesToBeInSet",
        severity="warning",
        column="distance_from_band",
        value_set=[0],
    ),
    _criterion_check(
        "category_known",
        "a category belongs to the vocabulary of its field",
        "ExpectColumnValuesToNotBeNull",
        severity="warning",
        column="known_category",
    ),
    _criterion_check(
        "unique_criterion_id",
        "a criterion id appears once in a task",
        "ExpectCompoundColumnsToBeUnique",
        column_list=["task_id", "criterion_id"],
    ),
    _criterion_check(
        "title_once",
        "a criterion's title appears once in a task",
        "ExpectCompoundColumnsToBeUnique",
        severity="warning",
        column_list=["task_id", "title"],
    ),
    _criterion_check(
        "title_not_empty",
        "a criterion's title is not empty",
        "ExpectColumnValuesToMatchRegex",
        column="title",
        regex=f"[^{_BLANK}]",
    ),
    _rubric_check(
        "positive_criterion",
        "a task has at least one positive criterion",
        "ExpectColumnValuesToBeBetween",
        column="n_positive",
        min_value=0,
        strict_min=True,
    ),
    _rubric_check(
        "labels_known",
        "the labels of a task are known",
        "ExpectColumnValuesToBeInSet",
        severity="warning",
        column="n_unknown_labels",
        value_set=[0],
    ),
    _rubric_check(
        "unique_task_id",
        "a task id appears once in a split, with one content",
        "ExpectColumnValuesToBeInSet",
        column="n_rows",
        value_set=[1],
    ),
    _rubric_check(
        "prompt_not_empty",
        "no user turn is empty",
        "ExpectColumnValuesToMatchRegex",
        column="turn_pattern",
        regex="^[^e]+$",
    ),
)


def weight_range(lowest: float, highest: float, *, is_whole: bool = False) -> Iterator[Expectation]:
    """Yield the expectations that weights are numbers within the bounds, and not 0."""
    weight_check = partial(_criterion_check, "weight_range")
    yield weight_check(
        f"weights are from {lowest:g} to {highest:g}",
        "ExpectColumnValuesToBeBetween",
        column="weight",
        min_value=lowest,
        max_value=highest,
    )
    yield weight_check("weights are numbers", "ExpectColumnValuesToNotBeNull", column="weight")
    yield weight_check(
        "weights are not 0",
        "ExpectColumnValuesToNotBeInSet",
        column="weight",
        value_set=[0],
    )
    if is_whole:
        yield weight_check(
            "weights are whole numbers",
            "ExpectColumnValuesToBeInSet",
            column="weight_fraction",
            value_set=[0],
        )


def weight_class_known(classes: list[str]) -> Iterator[Expectation]:
    """Yield the expectation that stated weight classes are known."""
    yield _criterion_check(
        "weight_class_known",
        f"a weight class is one of the {len(classes)}",
        "ExpectColumnValuesToBeInSet",
        column="severity",
        value_set=classes,
    )


def criteria_per_task(fewest: int, most: int | None = None) -> Iterator[Expectation]:
    """Yield the expectation that the number of criteria of a rubric is within the bounds."""
    number = f"{fewest} or more" if most is None else f"{fewest} to {most}"
    yield _rubric_check(
        "criteria_per_task",
        f"a task has {number} criteria",
        "ExpectColumnValuesToBeBetween",
        column="n_criteria",
        min_value=fewest,
        max_value=most,
    )


def turns_contiguous(*, alternate: bool = False, are_stated: bool = False) -> Iterator[Expectation]:
    """Yield the expectations of the turns: the conversation ends with the user.

    With `alternate` the turns also alternate without a gap; with `are_stated` the row states the
    number of user turns.
    """
    turns_check = partial(_rubric_check, "turns_contiguous")
    pattern = r"[ue]$"
    meaning = "the conversation ends with the user"
    if alternate:
        pattern = r"^[ue](?:a[ue])*$"
        meaning = "user and assistant turns alternate without a gap and end with the user"
    yield turns_check(
        meaning,
        "ExpectColumnValuesToMatchRegex",
        column="turn_pattern",
        regex=pattern,
    )
    if are_stated:
        yield turns_check(
            "there are as many user turns as the row says",
            "ExpectColumnPairValuesToBeEqual",
            column_A="turns",
            column_B="n_user_turns",
        )


def _without_bounds(expectation: Expectation, /) -> list[Expectation]:
    """Return the expectation of a check that takes no bounds; giving some is a `TypeError`."""
    return [expectation]


CHECKS: dict[str, Callable[..., Iterable[Expectation]]] = {
    "weight_range": weight_range,
    "weight_class_known": weight_class_known,
    "criteria_per_task": criteria_per_task,
    "turns_contiguous": turns_contiguous,
}
"""The checks that a benchmark can declare: name in the configuration's `quality` -> a function from
the bounds to expectations.
"""
for _expectation in _WITHOUT_BOUNDS:
    CHECKS[_expectation.check] = partial(_without_bounds, _expectation)


def all_expectations(invariants: Mapping[str, Mapping[str, Any]]) -> list[Expectation]:
    """Return the expectations on a benchmark's data, on responses and on verdicts.

    `invariants` are the checks that the benchmark declares, each with its bounds.

    Raises:
        ValueError: bounds do not fit their check, or the benchmark's own check is incomplete.
    """
    expectations: list[Expectation] = []
    for name, bounds in invariants.items():
        if name not in CHECKS and "expectation" not in bounds:
            raise ValueError(
                f"invariants: there is no check {name}; known are {', '.join(sorted(CHECKS))}"
            )
        check = CHECKS.get(name, partial(_declared_check, name))
        try:
            expectations += check(**bounds)
        except TypeError as error:
            raise ValueError(f"invariants: {name}: {error}") from error
    return [*expectations, *_RESULT_EXPECTATIONS]


def _declared_check(
    check: str,
    *,
    table: str,
    expectation: str,
    meaning: str,
    severity: Severity = "critical",
    **arguments: Any,
) -> list[Expectation]:
    """Return a check that is not one of `CHECKS`: the benchmark declares its table and
    expectation.
    """
    if table not in _TABLES or severity not in ("critical", "warning"):
        raise ValueError(
            f"invariants: {check}: `table` is {' or '.join(_TABLES)}, `severity` is critical or"
            " warning"
        )
    return [expect("ingest", table, check, meaning, expectation, severity=severity, **arguments)]


_response_check = partial(expect, "sample", "responses")
_verdict_check = partial(expect, "judge", "verdicts")

_RESULT_EXPECTATIONS = (
    _response_check(
        "response_not_empty",
        "no response is empty",
        "ExpectColumnValueLengthsToBeBetween",
        column="first_visible",
        min_value=1,
        row_condition=IS_OK,
    ),
    _response_check(
        "response_status",
        "a response whose status is ok has a text",
        "ExpectColumnValuesToNotBeNull",
        column="first_character",
        row_condition=IS_OK,
    ),
    _response_check(
        "response_status",
        "a response that failed has no text",
        "ExpectColumnValuesToBeNull",
        column="first_character",
        row_condition=IS_NOT_OK,
    ),
    _verdict_check(
        "verdict_value",
        "met is 1, partial 0.5, unmet 0, and a failure has no value",
        "ExpectColumnPairValuesToBeEqual",
        column_A="value",
        column_B="value_of_status",
    ),
    _verdict_check(
        "verdict_has_response",
        "no verdict without its response",
        "ExpectColumnValuesToNotBeNull",
        column="response_trial",
    ),
    _verdict_check(
        "verdict_has_criterion",
        "no verdict without its criterion",
        "ExpectColumnValuesToNotBeNull",
        column="criterion_position",
    ),
    expect(
        "judge",
        "judged_responses",
        "verdict_count",
        "a response that is judged has a verdict for each criterion",
        "ExpectColumnValuesToBeInSet",
        severity="warning",
        column="n_missing",
        value_set=[0],
    ),
)


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


def run_suite(
    expectations: Sequence[Expectation],
    frame_of: Callable[[str], Any],
    sound_sizes: Mapping[str, int] = {},
) -> list[ExpectationResult]:
    """Check all expectations and return a result for each, in their order.

    Each table is read once.

    Args:
        expectations: what must hold.
        frame_of: returns the rows of a table as a pandas frame.
        sound_sizes: the numbers of rows of tables all of whose rows are known to meet their
            expectations; these are not read.

    Raises:
        RuntimeError: an expectation could not be evaluated; it never counts as met.
    """
    results = [
        ExpectationResult(expectation, sound_sizes.get(expectation.table, 0), ())
        for expectation in expectations
    ]
    for table in dict.fromkeys(expectation.table for expectation in expectations):
        if table in sound_sizes:
            continue
        frame = frame_of(table)
        if frame.empty:
            continue
        for validation in _validated(expectations, table, frame):
            index = validation.expectation_config.meta["index"]
            failures = _failures(expectations[index], validation, frame)
            results[index] = ExpectationResult(expectations[index], len(frame), failures)
    return results


def _validated(expectations: Sequence[Expectation], table: str, frame: Any) -> Any:
    """Return the results of Great Expectations on the rows of one table."""
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    import great_expectations as gx

    # Great Expectations logs the path of its temporary folder.
    logging.getLogger("great_expectations.data_context.types.base").setLevel(logging.WARNING)
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = gx.data_context.types.base.ProgressBarsConfig(globally=False)
    suite = gx.ExpectationSuite(name="suite")
    for index, expectation in enumerate(expectations):
        if expectation.table != table:
            continue
        kind = getattr(gx.expectations, expectation.kind, None)
        if kind is None:
            raise RuntimeError(f"{expectation.check}: Great Expectations has no {expectation.kind}")
        suite.add_expectation(
            kind(**expectation.arguments, severity=expectation.severity, meta={"index": index})
        )
    # Great Expectations hashes all its input, and texts take long.
    batch = context.data_sources.pandas_default.read_dataframe(
        frame.drop(columns=["key", "note"], errors="ignore")
    )
    return batch.validate(suite, result_format={"result_format": "COMPLETE"}).results


def _failures(expectation: Expectation, result: Any, frame: Any) -> tuple[FailedRow, ...]:
    """Return the rows that failed.

    Great Expectations returns their positions, because it does not get the column `key`.
    """
    if result.exception_info.get("raised_exception"):
        raise RuntimeError(f"{expectation.text}: {result.exception_info.get('exception_message')}")
    positions = result.result.get("unexpected_index_list") or []
    # A failure names rows, and a success names none: `mostly` cannot be used.
    if bool(positions) == bool(result.success):
        raise RuntimeError(f"{expectation.text}: its result and the rows that it names contradict")
    columns = [name for name in ("key", "task_id", "note") if name in frame]
    failing = frame.loc[positions, columns].astype(str)
    return tuple(FailedRow(**row) for row in failing.to_dict("records"))
