"""Alerts after a night, from the figures of other stages."""

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from typing import Any, Literal, NamedTuple, get_args

from tasks.config.job import Job
from tasks.llm.redaction import redacted, safe
from tasks.llm.retirement import ANNOUNCED_DAYS, retirement_text
from tasks.rules.identity import digest
from tasks.rules.statistics.comparison import holm, is_drop, is_significant
from tasks.rules.statistics.control import drift_line
from tasks.rules.text.characters import one_line, storable
from tasks.rules.text.numbers import list_text, p_value_text
from tasks.run.run_context import Retirement
from tasks.run.writing import LEFT_OUT, StageReport

Kind = Literal[
    "failure",
    "skipped",
    "budget",
    "stop_time",
    "coverage",
    "judge_drift",
    "score_drop",
    "quality",
    "retirement",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""The kinds of alerts in their order in a message: causes come before what they may explain."""
Row = Mapping[str, Any]
"""A row of another stage, or the facts of an alert."""


@dataclass(frozen=True)
class Alert:
    """An alert about a night.

    Names and errors may come from outside, so they are stored as one line of text without this
    process's secrets, and as JSON values.

    Attributes:
        subject: label of its model or judge; empty for the night itself.
        line: a sentence with numbers, for people.
        facts: the same for machines.
        whom: what it happened to, such as `judge strict`; empty for the night itself.
        happened: what happened, in a few words for a title.
        cause: `whom` of the alert that may explain this one.
    """

    kind: Kind
    subject: str
    line: str
    facts: Row = field(default_factory=dict)
    whom: str = ""
    happened: str = ""
    cause: str = ""

    def __post_init__(self) -> None:
        for name in ("subject", "whom", "happened", "cause"):
            object.__setattr__(self, name, safe(getattr(self, name)))
        # The line is cut; the facts are complete.
        object.__setattr__(self, "line", one_line(redacted(storable(self.line)), 1_000))
        object.__setattr__(self, "facts", _plain(self.facts))

    @property
    def headline(self) -> str:
        """What happened to whom."""
        return f"{self.whom} {self.happened}".strip() or one_line(self.line, 120)


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold; a number that is not finite becomes null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if value is None or isinstance(value, int | float):
        return value
    return redacted(storable(str(value)))


COMPARED = (
    "model",
    "judge",
    "judge_trial",
    "split",
    "score",
    "first_vintage",
    "second_vintage",
    "first_mean",
    "second_mean",
    "difference",
    "ci_low",
    "ci_high",
    "p_value",
    "n_tasks",
    "n_wanted",
)
"""The figures of a nightly model compared with its last night, on a split, under a judge.

The difference is second minus first, so a drop is negative; `p_value` is two-sided and not
corrected. `n_tasks` of the `n_wanted` tasks are compared.
"""


def drop_alerts(
    comparisons: Sequence[Row],
    *,
    least_drop: float,
    alpha: float,
    drifted_judges: Mapping[str, str] = {},
) -> list[Alert]:
    """Return an alert for each model that dropped significantly, by at least `least_drop`.

    The p-values of all comparisons together are corrected (Holm), so a night without a true drop
    gives a false alert with a probability of at most alpha. If the judge drifted in the same night,
    the alert says so.

    Args:
        comparisons: each with the figures of `COMPARED`.
        least_drop: in the unit of the score.
        alpha: the level of the test.
        drifted_judges: judge -> the judge outside its control limits that may explain a drop:
            itself or a member of the panel.
    """
    p_values = [comparison["p_value"] for comparison in comparisons]
    alerts = []
    for comparison, p_adjusted in zip(comparisons, holm(p_values), strict=True):
        if p_adjusted is None or not is_significant(p_adjusted, alpha):
            continue
        if is_drop(comparison["difference"], least_drop):
            row = {**comparison, "p_adjusted": p_adjusted}
            means = _means(row["first_mean"], row["second_mean"])
            happened = f"fell on {row['split']}: {means}"
            alerts.append(_drop_alert(row, _drop_line(row), happened, drifted_judges))
    return alerts


def _drop_line(row: Row) -> str:
    """Return the sentence about a drop, with its interval and corrected p-value."""
    interval = ""
    if row["ci_low"] is not None:
        interval = f"95 % interval {row['ci_low']:+.3f} to {row['ci_high']:+.3f}, "
    p_value = p_value_text(row["p_adjusted"])
    n_tasks = str(row["n_tasks"])
    if row["n_tasks"] != row["n_wanted"]:
        n_tasks += f" of {row['n_wanted']}"
    return (
        f"{row['model']} fell by {-row['difference']:.3f} on {row['split']} ({row['score']}, judged"
        f" by {judge_name(row)}): {row['second_mean']:.3f} in {row['second_vintage']},"
        f" {row['first_mean']:.3f} in {row['first_vintage']}; {interval}corrected p {p_value},"
        f" {n_tasks} tasks"
    )


def judge_name(row: Row) -> str:
    """Return the name of a judge, with the number of its repetition after the first."""
    if row["judge_trial"] == 1:
        return str(row["judge"])
    return f"{row['judge']} #{row['judge_trial']}"


def _means(first_mean: float, second_mean: float) -> str:
    """Return two means, with as many decimals as their difference needs."""
    decimals = 2 if round(abs(second_mean - first_mean), 3) >= 0.1 else 3
    return f"{short_number(first_mean, decimals)} to {short_number(second_mean, decimals)}"


def short_number(value: float, decimals: int) -> str:
    """Return a number without the zero before its point."""
    text = f"{value:z.{decimals}f}"
    return re.sub(r"^(-?)0\.", r"\1.", text)


def _drop_alert(row: Row, line: str, happened: str, drifted_judges: Mapping[str, str]) -> Alert:
    judge = drifted_judges.get(row["judge"])
    cause = ""
    if judge is not None:
        name = judge
        if judge != row["judge"]:
            name += f", a member of {row['judge']},"
        line += f"; {name} drifted the same night, so the judge may be the cause, not the model"
        cause = f"judge {judge}"
    facts = {**row, "judge_drifted": judge is not None}
    return Alert(
        "score_drop",
        row["model"],
        line,
        facts,
        whom=row["model"],
        happened=happened,
        cause=cause,
    )


def stopping_drop_alerts(
    looks: Iterable[Row], *, drifted_judges: Mapping[str, str] = {}
) -> list[Alert]:
    """Return an alert for each model whose last look is a drop, in a night with `stopping`.

    All comparisons and looks together give a false alert with at most the configured probability,
    so no correction is needed.
    """
    alerts = []
    for look in looks:
        if look["decision"] == "dropped":
            fall = -look["mean_difference"]
            happened = f"fell by {short_number(fall, 3)} since {look['compared_vintage']}"
            line = (
                f"{look['model']} fell by more than {look['least_difference']:g}"
                f" ({look['score_name']}, judged by {look['judge']}): by {fall:.3f} since"
                f" {look['compared_vintage']}, interval at every look {look['sequence_low']:+.3f}"
                f" to {look['sequence_high']:+.3f}, settled after {look['n_tasks_evaluated']} of"
                f" {look['n_tasks_planned']} tasks"
            )
            facts = {**look, "difference": look["mean_difference"]}
            alerts.append(_drop_alert(facts, line, happened, drifted_judges))
    return alerts


def drift_alerts(drifted: Iterable[Row]) -> list[Alert]:
    """Return an alert for each judge that is outside its control limits (rows of `judge_drift`)."""
    return [
        Alert(
            "judge_drift",
            row["judge"],
            drift_line(row),
            row,
            whom=f"judge {row['judge']}",
            happened="drifted",
        )
        for row in drifted
    ]


def alerts_of_reports(reports: Sequence[StageReport]) -> list[Alert]:
    """Return alerts on a reached budget or stop time, and on data quality below the bar.

    Coverage, also of rewritten criteria, has alerts of its own (`causes.py`).
    """
    at_budget = [report for report in reports if report.is_at_budget]
    at_stop_time = [report for report in reports if report.is_at_stop_time]
    alerts = []
    if at_budget:
        alerts.append(_limit_alert("budget", "its budget", at_budget))
    if at_stop_time:
        alerts.append(_limit_alert("stop_time", "its stop time", at_stop_time))
    for report in reports:
        if report.is_below_bar and report.stage not in {"coverage", "derive"}:
            alerts.append(_quality_alert(report))
    return alerts


def _limit_alert(kind: Kind, limit: str, reports: Sequence[StageReport]) -> Alert:
    """Return one alert for all stages that a limit stopped.

    The reasons are their warnings on that, all of which begin with the same words (`AT_BUDGET` in
    `tasks/run/writing.py`, and `tasks/run/run_context.py`).
    """
    stop_lines = []
    n_skipped = Counter[str]()
    # A stage has several reports, of different models.
    for report in reports:
        stop_lines += [line for line in report.warnings if line.startswith("stopped at")]
        n_skipped[report.stage] += report.skipped
    reasons = list(dict.fromkeys(stop_lines))
    skipped_text = ", ".join(f"{count} in {stage}" for stage, count in n_skipped.items())
    line = "; ".join([f"the run reached {limit}; skipped: {skipped_text}", *reasons])
    n_done = sum(report.rows for report in reports)
    n_wanted = n_done + sum(n_skipped.values())
    facts = {
        "skipped": n_skipped,
        "warnings": reasons,
        "share": n_done / (n_wanted or 1),
    }
    return Alert(kind, "", line, facts, happened=f"the run reached {limit}")


def retirement_alerts(ends: Iterable[Retirement], today: date) -> Iterator[Alert]:
    """Yield an alert for each model that was switched off, or will be soon.

    It stays the same until the next of the `ANNOUNCED_DAYS`, so each of them is announced once.
    """
    for end in ends:
        left_days = (end.retires_on - today).days
        announced_days = min(days for days in ANNOUNCED_DAYS if left_days <= days)
        yield Alert(
            "retirement",
            subject=end.callee.label,
            line=str(end),
            facts={"retires_on": end.retires_on, "announced_days": announced_days},
            happened=retirement_text(str(end.callee), end.retires_on, today),
        )


def _quality_alert(report: StageReport) -> Alert:
    lines = [line for line in report.warnings if LEFT_OUT in line] or report.warnings
    return Alert(
        "quality",
        subject="",
        line=f"{report.stage}: data quality is below the bar: {list_text(lines, 3, '; ')}",
        facts={"stage": report.stage, "warnings": lines},
        happened=f"data quality fell below the bar ({report.stage})",
    )


failure_alert = partial(Alert, "failure", "")
"""Makes an alert that a night ended with an error, from the line on it."""
skipped_alert = partial(Alert, "skipped", "")
"""Makes an alert that a night did not take place, from the line on the reason."""


def alert_id(job: Job, alert: Alert) -> str:
    """Return the id of an alert of a job: a hash of what it says and, of most kinds, of its run or
    night.

    Equal findings of a night have one id, also if it runs again. An alert about a failed or skipped
    run has a new id each time; one about data quality keeps its id every night until the data
    changes, and one about the end of a model until that is nearer.
    """
    if alert.kind in {"failure", "skipped"}:
        period = job.run_id
    elif alert.kind in {"quality", "retirement"}:
        period = ""
    else:
        period = job.night or job.run_id
    # The line on a model's end also has versions and figures, which change between the days.
    text = alert.happened if alert.kind == "retirement" else alert.line
    facts = json.dumps(alert.facts, sort_keys=True)
    return digest(
        "alert",
        period,
        job.benchmark,
        alert.kind,
        alert.subject,
        text,
        facts,
    )


class _State(NamedTuple):
    """The facts that identify a state that may last for nights, and the fact that is its level."""

    identity: tuple[str, ...]
    level: str


_STATES = {
    "budget": _State((), "share"),
    "stop_time": _State((), "share"),
    "coverage": _State(("of", "happened"), "share"),
    "judge_drift": _State(("cause",), "agreement"),
    "score_drop": _State(("judge", "judge_trial", "split", "score", "first_vintage"), "difference"),
}
"""Kind of alert -> its state.

A drop of a model with `stopping` is always since its earlier nights, so it has none of the last
three facts. Failed and skipped runs are events, and alerts on quality and on ends of models have
the same id until they change.
"""
_NOTICEABLE = 0.05
"""A smaller difference of the level is no change."""


def is_unchanged(kind: str, subject: str, facts: Row, alert: Alert) -> bool:
    """Return whether a stored alert of an earlier night is about the same state as an alert."""
    if kind not in _STATES or (kind, subject) != (alert.kind, alert.subject):
        return False
    state = _STATES[kind]
    if any(facts.get(name) != alert.facts.get(name) for name in state.identity):
        return False
    stored_level = facts.get(state.level)
    level = alert.facts.get(state.level)
    if stored_level is None or level is None:
        return False
    return bool(abs(stored_level - level) < _NOTICEABLE)
