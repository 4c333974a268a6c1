"""Alerts after a night, from the figures of other stages, and the message that contains them."""

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from typing import Any, Literal, NamedTuple, get_args

from tasks.config.job import Job
from tasks.llm.environment import redacted, safe
from tasks.rules.identity import digest
from tasks.rules.statistics.comparison import holm, is_significant
from tasks.rules.statistics.control import drift_line
from tasks.rules.text.characters import one_line, storable, visible
from tasks.rules.text.numbers import some
from tasks.run.writing import LEFT_OUT, StageReport

Kind = Literal["failure", "skipped", "budget", "stop_time", "judge_drift", "score_drop", "coverage", "quality"]
KINDS: tuple[Kind, ...] = get_args(Kind)
"""The kinds of alerts in their order in a message: first those about the end of a night, then its findings."""


@dataclass(frozen=True)
class Alert:
    """An alert about a night.

    Names and errors may come from outside, so they are stored as one line of text without this process's secrets, and
    as JSON values.

    Attributes:
        subject: label of its model or judge; empty for the night itself.
        line: a sentence with numbers, for people.
        facts: the same for machines.
    """

    kind: Kind
    subject: str
    line: str
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "subject", safe(self.subject))
        # The line is cut; the facts are complete.
        object.__setattr__(self, "line", one_line(redacted(storable(self.line)), 1_000))
        object.__setattr__(self, "facts", _plain(self.facts))


def _plain(value: Any) -> Any:
    """Return a value that JSON can hold; a number that is not finite becomes null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if value is None or isinstance(value, int | float) else redacted(storable(str(value)))


COMPARED = (
    "model", "judge", "judge_trial", "split", "score", "first_vintage", "second_vintage", "first_mean", "second_mean",
    "difference", "ci_low", "ci_high", "p_value", "n_tasks", "n_wanted",
)  # fmt: skip
"""The figures of a nightly model compared with its last night, on a split, under a judge.

The difference is second minus first, so a drop is negative; `p_value` is two-sided and not corrected. `n_tasks` of the
`n_wanted` tasks are compared.
"""


def drops(
    comparisons: Sequence[Mapping[str, Any]], *, least_drop: float, alpha: float, drifted_judges: Collection[str] = ()
) -> list[Alert]:
    """Return an alert for each comparison of a night in which a model dropped significantly, by at least `least_drop`.

    The p-values of all comparisons together are corrected (Holm), so a night without a true drop gives a false alert
    with a probability of at most alpha. If the judge drifted in the same night, the alert says so.

    Args:
        comparisons: each with the figures of `COMPARED`.
        least_drop: in the unit of the score.
        alpha: the level of the test.
        drifted_judges: the labels of judges outside their control limits.
    """
    adjusted = holm([each["p_value"] for each in comparisons])
    alerts = []
    for each, p_adjusted in zip(comparisons, adjusted, strict=True):
        fall = -each["difference"]
        if p_adjusted is None or not is_significant(p_adjusted, alpha) or fall <= 0 or fall < least_drop:
            continue
        share = "" if each["n_tasks"] == each["n_wanted"] else f" of {each['n_wanted']}"
        ci = "" if each["ci_low"] is None else f"95 % interval {each['ci_low']:+.3f} to {each['ci_high']:+.3f}, "
        p_value = "below 0.0001" if p_adjusted < 0.0001 else f"{p_adjusted:.4f}"
        line = (
            f"{each['model']} fell by {fall:.3f} on {each['split']} ({each['score']}, judged by {each['judge']}): "
            f"{each['second_mean']:.3f} in {each['second_vintage']}, {each['first_mean']:.3f} in "
            f"{each['first_vintage']}; {ci}corrected p {p_value}, {each['n_tasks']}{share} tasks"
        )
        alerts.append(_drop({**each, "p_adjusted": p_adjusted}, line, drifted_judges))
    return alerts


def _drop(row: Mapping[str, Any], line: str, drifted_judges: Collection[str]) -> Alert:
    judge, has_drifted = row["judge"], row["judge"] in drifted_judges
    if has_drifted:
        line += f"; {judge} drifted the same night, so the judge may be the cause, not the model"
    return Alert("score_drop", row["model"], line, {**row, "judge_drifted": has_drifted})


def stopping_drops(looks: Iterable[Mapping[str, Any]], *, drifted_judges: Collection[str] = ()) -> list[Alert]:
    """Return an alert for each model whose last look is a drop, in a night with `stopping`.

    All comparisons and looks together give a false alert with at most the configured probability, so no correction is
    needed.
    """
    return [
        _drop(
            look,
            f"{look['model']} fell by more than {look['least_difference']:g} ({look['score_name']}, judged by "
            f"{look['judge']}): by {-look['mean_difference']:.3f} since {look['compared_vintage']}, interval at every "
            f"look {look['sequence_low']:+.3f} to {look['sequence_high']:+.3f}, settled after "
            f"{look['n_tasks_evaluated']} of {look['n_tasks_planned']} tasks",
            drifted_judges,
        )
        for look in looks
        if look["decision"] == "dropped"
    ]


def drifts(drifted: Iterable[Mapping[str, Any]]) -> list[Alert]:
    """Return an alert for each judge that is outside its control limits (rows of `judge_drift`)."""
    return [Alert("judge_drift", row["judge"], drift_line(row), row) for row in drifted]


def alerts_of_reports(reports: Sequence[StageReport]) -> list[Alert]:
    """Return alerts from the reports of a night's stages.

    They are about the budget or the stop time, coverage or quality below the bar, and an incomplete control set.
    """
    alerts = [
        *_stopped("budget", "its budget", [report for report in reports if report.is_at_budget]),
        *_stopped("stop_time", "its stop time", [report for report in reports if report.is_at_stop_time]),
    ]
    stopped = dict.fromkeys(line for report in reports for line in report.stopped)
    for report in reports:
        if report.is_below_bar and report.stage == "coverage":
            lines = [*stopped, *report.warnings]
            alerts.append(Alert("coverage", "", some(lines, 3, "; "), {"warnings": lines}))
        elif report.is_below_bar:
            lines = [line for line in report.warnings if LEFT_OUT in line] or report.warnings
            line = f"{report.stage}: data quality is below the bar: {some(lines, 3, '; ')}"
            alerts.append(Alert("quality", "", line, {"stage": report.stage, "warnings": lines}))
        # A reached budget or stop time is a separate alert.
        is_cut_short = report.is_at_budget or report.is_at_stop_time
        if report.stage == "drift" and (report.failures or (report.skipped and not is_cut_short)):
            # Without verdicts on the control set, a drift of the judge could not be detected.
            missing = [f"{count} {status}" for status, count in sorted(report.failures.items())]
            line = f"the control set was not fully judged: {', '.join([*missing, f'{report.skipped} skipped'])}"
            facts = {"failures": report.failures, "skipped": report.skipped, "warnings": report.warnings}
            alerts.append(Alert("coverage", "", f"{line}; drift of a judge may be missed", facts))
    return alerts


def _stopped(kind: Kind, what: str, reports: Sequence[StageReport]) -> list[Alert]:
    """Return one alert for all stages that were stopped."""
    if not reports:
        return []
    why = dict.fromkeys(line for report in reports for line in report.warnings if line.startswith("stopped at"))
    n_skipped = {report.stage: report.skipped for report in reports}
    by_stage = ", ".join(f"{count} in {stage}" for stage, count in n_skipped.items())
    line = "; ".join([f"the run reached {what}; skipped: {by_stage}", *why])
    return [Alert(kind, "", line, {"skipped": n_skipped, "warnings": list(why)})]


failure, skipped = partial(Alert, "failure", ""), partial(Alert, "skipped", "")
"""The night ended with an error, or did not take place; the alert's line says why."""


_CALLS_EVERYBODY = re.compile(r"@(?=(?:here|channel|everyone|all)\b)", re.IGNORECASE)
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def alert_id(job: Job, alert: Alert) -> str:
    """Return the id of an alert of a job's night, the same for an equal finding of a repeated night.

    A failed or skipped run has a new id each time. A finding about data quality has the same id every night until the
    data changes.
    """
    of = {"failure": job.run_id, "skipped": job.run_id, "quality": ""}.get(alert.kind, job.night or job.run_id)
    facts = json.dumps(alert.facts, sort_keys=True)
    return digest("alert", of, job.settings.benchmark, alert.kind, alert.subject, alert.line, facts)


class Message(NamedTuple):
    """The alerts of a job's night: a title, their texts for people and for chat servers, and all of it for machines."""

    title: str
    body: str
    as_chat: str
    as_json: dict[str, Any]


def alert_message(job: Job, alerts: Iterable[Alert]) -> Message:
    """Return the message with some alerts, in the order of their kinds.

    The title has the night, and the number of alerts of each kind. The text for Slack and similar servers has no
    mentions and links, even if names contain them.
    """
    ordered = sorted(alerts, key=lambda alert: KINDS.index(alert.kind))
    counts = Counter(alert.kind for alert in ordered)
    kinds = ", ".join(f"{_words(kind)} ({count})" for kind, count in counts.items())
    title = one_line(visible(f"{job.settings.benchmark}, night {job.night}: {kinds}"))
    as_json = {
        "night": job.night, "run_id": job.run_id, "benchmark": job.settings.benchmark, "warehouse": str(job.warehouse),
        "report": job.report_url, "alerts": [vars(alert) for alert in ordered],
    }  # fmt: skip
    as_chat = f"{escaped(title)}\n\n{_text(job, ordered, escaped)}"
    return Message(title, _text(job, ordered, visible), as_chat, as_json)


def _text(job: Job, alerts: Sequence[Alert], shown: Callable[[str], str]) -> str:
    """Return the alerts as text, one per paragraph, as many as fit."""
    paragraphs = [shown(f"{_words(alert.kind)}: {alert.line}") for alert in alerts]
    ends = accumulate(len(paragraph) + 2 for paragraph in paragraphs)
    # Chat servers accept at least 16,000 characters.
    n_fit = sum(end <= 15_000 for end in ends)
    rest = [f"and {len(paragraphs) - n_fit} more"] if n_fit < len(paragraphs) else []
    report = f", report {job.report_url}" if job.report_url else ""
    where = f"run {job.run_id}, warehouse {job.warehouse}{report}; all are in the table `alerts`"
    return "\n\n".join([*paragraphs[:n_fit], *rest, shown(where)])


def _words(kind: Kind) -> str:
    return kind.replace("_", " ")


def escaped(text: str) -> str:
    """Return the text so that Slack shows it unchanged."""
    return _CALLS_EVERYBODY.sub("@\u200b", visible(text)).translate(_ESCAPES)
