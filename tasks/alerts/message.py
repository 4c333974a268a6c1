"""The message about a night: a title that says what happened to whom, and at most six lines."""

import html
import re
import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tasks.alerts.findings import KINDS, Alert, Row, judge_name, short_number
from tasks.config.job import Job
from tasks.rules.text.characters import one_line, visible
from tasks.rules.text.numbers import counted, coverage_text, list_text

MOST_LINES = 6
"""The largest number of lines of a message."""
_MOST_CHARS = 400
"""The largest number of characters of a title or of a line about an alert; a command is never
cut.
"""
_MOST_PHRASES = 2
"""The largest number of phrases in a title; the others are counted."""
_MOST_STEPS = 2
"""The largest number of commands to try next."""
_CALLS_EVERYBODY = re.compile(r"@(?=(?:here|channel|everyone|all)\b)", re.IGNORECASE)


@dataclass(frozen=True)
class Results:
    """The results of a night that came to its end.

    Attributes:
        scores: rows with `split`, `model`, `judge`, `mean_score`, `coverage` and `is_below_bar`, in
            the shown order.
        cost_usd: the cost of all runs of the night; None if it is not known.
        calls: the requests of all runs of the night.
        judge_change: a line that says which judge replaced which; empty if none was replaced.
    """

    scores: Sequence[Row] = ()
    cost_usd: float | None = None
    calls: int = 0
    judge_change: str = ""

    @property
    def lines(self) -> list[str]:
        """The change of a judge, and the scores with the cost."""
        return list(filter(None, (self.judge_change, self._scores_line)))

    @property
    def _scores_line(self) -> str:
        scores_by_split: dict[str, list[str]] = {}
        for row in self.scores:
            score = f"{row['model']} {short_number(row['mean_score'], 3)}"
            if row["is_below_bar"]:
                score += f" ({coverage_text(row['coverage'])} covered)"
            scores_by_split.setdefault(row["split"], []).append(score)
        splits = [f"{split}: {list_text(scores)}" for split, scores in scores_by_split.items()]
        title = f"Scores by {self.scores[0]['judge']}" if self.scores else "Scores"
        cost = "unknown" if self.cost_usd is None else f"{self.cost_usd:,.2f} USD"
        calls = counted(self.calls, "call")
        return f"{title}: {list_text(splits, separator='; ') or 'none'}. Cost: {cost} for {calls}."


@dataclass(frozen=True)
class Message:
    """A message about a job's night: for people, for chat servers, and all of it for machines.

    The text for chat servers has no mentions and links, even if names contain them.
    """

    title: str
    lines: tuple[str, ...]
    as_json: dict[str, Any]

    @property
    def body(self) -> str:
        """The lines as one text."""
        return "\n".join(self.lines)

    @property
    def as_chat(self) -> str:
        """The title and the lines as Slack and similar servers show them unchanged."""
        return "\n".join([f"{escaped(self.title)}\n", *map(escaped, self.lines)])


def night_message(
    job: Job,
    alerts: Iterable[Alert],
    results: Results | None = None,
    *,
    standing: Sequence[Alert] = (),
) -> Message:
    """Return the message with these alerts; without any, a message about a night with nothing new.

    Args:
        job: the job of the night.
        alerts: what is new; causes come before what they explain.
        results: None if the night did not come to its end.
        standing: alerts that were sent before and have not changed; a message without news names
            them.
    """
    ordered = sorted(alerts, key=lambda alert: KINDS.index(alert.kind))
    affected_names = {alert.whom for alert in ordered if alert.whom}
    causes = [alert for alert in ordered if alert.cause not in affected_names]
    consequences = [alert for alert in ordered if alert.cause in affected_names]
    ending = _ending_lines(job, causes or standing, results)
    events = _event_lines(causes, consequences, MOST_LINES - len(ending))
    lines = tuple(visible(line) for line in [*events, *ending])
    summary = "complete, no alerts"
    if ordered:
        summary = _phrases(causes)
    elif standing:
        summary = f"nothing new; as before: {_phrases(standing)}"
    title = visible(one_line(f"{summary} ({job.benchmark}, {job.night})", _MOST_CHARS))
    as_json = {
        "night": job.night,
        "run_id": job.run_id,
        "benchmark": job.benchmark,
        "warehouse": str(job.warehouse),
        "report": job.report_url,
        "alerts": [vars(alert) for alert in ordered],
        "title": title,
        "message": "\n".join(lines),
        "lines": list(lines),
        "results": None if results is None else vars(results),
    }
    return Message(title, lines, as_json)


def _ending_lines(job: Job, alerts: Sequence[Alert], results: Results | None) -> list[str]:
    """Return the lines after the events: results, commands to try next, the report."""
    lines = [] if results is None else results.lines
    steps = [next_step(job, alert) for alert in alerts] or [next_step(job, None)]
    distinct_steps = list(dict.fromkeys(steps))
    lines.append(f"Next: {'; '.join(distinct_steps[:_MOST_STEPS])}.")
    if job.report_url is not None or job.report_index.exists():
        lines.append(f"Report: {job.report_url or job.report_index}")
    return lines


def _event_lines(
    causes: Sequence[Alert], consequences: Sequence[Alert], most_lines: int
) -> list[str]:
    """Return at most `most_lines` lines about alerts and what they may explain."""
    groups = _grouped_by_drop(causes)
    events = [_event_line(group) for group in groups]
    if consequences:
        events.append(f"Perhaps caused by that: {_phrases(consequences)}.")
    if len(events) <= most_lines:
        return events
    n_whole = most_lines - 1
    rest = [group[0] for group in groups[n_whole:]]
    return [*events[:n_whole], f"Also: {_phrases([*rest, *consequences])}."]


_NOUNS = {
    "coverage": "models or judges",
    "judge_drift": "judges",
    "score_drop": "models",
}
"""Kind of alert -> what several of them are about."""


def _phrases(alerts: Iterable[Alert]) -> str:
    """Return what happened to whom; what happened to several of them is one phrase."""
    alerts_by_event: dict[str, list[Alert]] = {}
    for group in _grouped_by_drop(alerts):
        alert = group[0]
        alerts_by_event.setdefault(alert.happened or alert.headline, []).append(alert)
    phrases = []
    for happened, group in alerts_by_event.items():
        noun = _NOUNS.get(group[0].kind)
        if len(group) == 1 or noun is None:
            phrases.append(group[0].headline)
        else:
            names_text = list_text(alert.whom for alert in group)
            phrases.append(f"{len(group)} {noun} {happened}: {names_text}")
    return list_text(phrases, _MOST_PHRASES, "; ")


def _grouped_by_drop(alerts: Iterable[Alert]) -> list[list[Alert]]:
    """Return each alert as a group; drops of a model on a split under several judges are one."""
    groups: dict[Any, list[Alert]] = {}
    for number, alert in enumerate(alerts):
        key: Any = number
        if alert.kind == "score_drop":
            key = (alert.subject, alert.facts.get("split"))
        groups.setdefault(key, []).append(alert)
    return list(groups.values())


def _event_line(group: Sequence[Alert]) -> str:
    """Return the line about an alert, or about a drop under several judges."""
    line = one_line(group[0].line, _MOST_CHARS)
    further_drops = [
        f"{judge_name(alert.facts)} {alert.happened.partition(': ')[2]}" for alert in group[1:]
    ]
    if not further_drops:
        return line
    return f"{line}; judged by others: {one_line(list_text(further_drops))}"


_CONTINUE = "nightly --night {night}"
_COMMANDS = {
    "failure": (_CONTINUE, "continues it once the cause is gone"),
    "skipped": (_CONTINUE, "runs it once the cause is gone"),
    "budget": (_CONTINUE, "continues it, with --max-usd"),
    "stop_time": (_CONTINUE, "continues it, with --stop-at"),
    "coverage": (
        "status --night {night}",
        "shows the errors; `prbench nightly` with the same options tries again",
    ),
    "judge_drift": ("figure judge_drift", "shows since when"),
    "score_drop": (
        "diff {first_vintage} {second_vintage} --model {model}",
        "shows the changed verdicts",
    ),
    "look": ("leaderboard --vintage all --model {model}", "shows its nights"),
    "quality": ("check", "shows the rows"),
    "retirement": ("doctor", "shows what to do"),
    "": ("leaderboard", "shows more"),
}
"""Kind of alert -> the command that shows more about it or continues the night, and what it does.

A drop in a night with `stopping` is a `look`; without an alert the leaderboard shows more.
"""


def next_step(job: Job, alert: Alert | None) -> str:
    """Return the command that shows more about an alert, or that continues the night."""
    kind: str = ""
    values = {"night": job.night}
    if alert is not None:
        is_look = alert.kind == "score_drop" and "first_vintage" not in alert.facts
        kind = "look" if is_look else alert.kind
        values |= {**alert.facts, "model": shlex.quote(alert.subject)}
    command, effect = _COMMANDS[kind]
    words = ["prbench", command.format(**values), *job.location_options]
    return f"`{' '.join(words)}` {effect}"


def escaped(text: str) -> str:
    """Return the text so that Slack shows it unchanged."""
    return html.escape(_CALLS_EVERYBODY.sub("@\u200b", visible(text)), quote=False)
