"""Running a suite over frames of rows, and saying which rows failed.

Nothing here knows a benchmark or a stage: the rules come as data, the rows as pandas frames with the columns `key`,
`task_id` and `note` beside those that the rules look at.
"""

import logging
import os
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from expectations.suites import build_expectation

_IDENTITY = ["key", "task_id", "note"]


class Rule(Protocol):
    """What a rule must say; `tasks.rules.records.Invariant` does."""

    @property
    def check_name(self) -> str:
        """The check that the rule belongs to."""

    @property
    def frame(self) -> str:
        """The frame of rows that it looks at."""

    @property
    def kind(self) -> str:
        """The expectation, a key of `suites.EXPECTATIONS`."""

    @property
    def arguments(self) -> Mapping[str, Any]:
        """The expectation's arguments."""

    @property
    def policy(self) -> str:
        """What follows where it does not hold, in one word."""

    @property
    def meaning(self) -> str:
        """The rule in words."""


@dataclass(frozen=True)
class Failure:
    """A row that failed: its key, the task it belongs to, and what it is like."""

    key: str
    task_id: str
    note: str


@dataclass(frozen=True)
class Finding:
    """What came of one rule: how many rows were looked at, and which failed."""

    rule: Rule
    expectation: str
    n_evaluated: int
    failures: tuple[Failure, ...]

    @property
    def success(self) -> bool:
        """Whether no row failed."""
        return not self.failures


def run_suite(name: str, rules: Sequence[Rule], frame_of: Callable[[str], Any]) -> list[Finding]:
    """Validate every frame that the rules look at, each frame once.

    Args:
        name: the suite's name.
        rules: what must hold.
        frame_of: gives the pandas frame of a frame's name.

    Raises:
        RuntimeError: an expectation could not be evaluated; a rule that was not asked is not a rule that holds.
    """
    by_frame: dict[str, list[Rule]] = defaultdict(list)
    for rule in rules:
        by_frame[rule.frame].append(rule)
    context = _context()
    findings: list[Finding] = []
    for frame_name, frame_rules in by_frame.items():
        frame = frame_of(frame_name)
        if frame.empty:
            findings += [Finding(rule, described(rule), 0, ()) for rule in frame_rules]
            continue
        outcome = _validated(context, f"{name}-{frame_name}", frame_rules, frame)
        findings += [_finding(frame_rules, result, len(frame)) for result in outcome.results]
    return findings


def _validated(context: Any, name: str, rules: list[Rule], frame: Any) -> Any:
    import great_expectations as gx

    source = context.data_sources.add_or_update_pandas(name)
    batch = source.add_dataframe_asset(name).add_batch_definition_whole_dataframe(name)
    suite = context.suites.add_or_update(gx.ExpectationSuite(name=name))
    for position, rule in enumerate(rules):
        suite.add_expectation(build_expectation(rule.kind, rule.arguments, {"position": position}))
    definition = gx.ValidationDefinition(name=name, data=batch, suite=suite)
    return context.validation_definitions.add_or_update(definition).run(
        batch_parameters={"dataframe": frame},
        result_format={"result_format": "COMPLETE", "unexpected_index_column_names": _IDENTITY},
    )


def _finding(rules: list[Rule], result: Any, n_rows: int) -> Finding:
    rule = rules[result.expectation_config.meta["position"]]
    if result.exception_info.get("raised_exception"):
        raise RuntimeError(f"{described(rule)}: {result.exception_info.get('exception_message')}")
    rows = result.result.get("unexpected_index_list") or []
    if bool(rows) == bool(result.success):
        raise RuntimeError(f"{described(rule)}: failed without naming a row")
    failures = tuple(Failure(str(row["key"]), str(row["task_id"]), str(row["note"])) for row in rows)
    return Finding(rule, described(rule), n_rows, failures)


def described(rule: Rule) -> str:
    """A rule as it stands in `checks.expectation`."""
    arguments = ", ".join(f"{name}={value!r}" for name, value in rule.arguments.items() if name != "column")
    return f"{rule.arguments['column']}: {rule.kind}({arguments})"


def _context() -> Any:
    os.environ.setdefault("GX_ANALYTICS_ENABLED", "false")
    import great_expectations as gx

    # It would tell where its temporary folder is.
    logging.getLogger("great_expectations.data_context.types.base").setLevel(logging.WARNING)
    context = gx.get_context(mode="ephemeral")
    context.variables.progress_bars = gx.data_context.types.base.ProgressBarsConfig(globally=False)
    return context
