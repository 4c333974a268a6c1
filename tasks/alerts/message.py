"""What a receiver gets: all alerts of a night in one message, as text, JSON, or Slack's blocks."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any, Self

from tasks.alerts.alert import KINDS, Alert, Kind
from tasks.config.settings import Job
from tasks.rules.text import one_line
from tasks.rules.visible import visible

_MOST_LINES = 100
_MOST_SECTIONS = 40
_HEADER_CHARS, _SECTION_CHARS, _TEXT_CHARS = 150, 2_900, 15_000
"""Slack takes 50 blocks, 150 characters in a header and 3,000 in a section; servers like it may take 16,000 of text."""
_CALLS_EVERYBODY = re.compile(r"@(?=(?:here|channel|everyone|all)\b)", re.IGNORECASE)
_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


@dataclass(frozen=True, slots=True)
class Night:
    """What a message is about: the run, and where its results are. `night` is None for a run that is no night.

    `report` is the address of the report, where one is configured.
    """

    night: str | None
    run_id: str
    benchmark: str
    warehouse: str
    report: str | None = None

    @classmethod
    def of(cls, job: Job) -> Self:
        """The night that a job is."""
        settings = job.settings
        return cls(job.night, job.run_id, settings.benchmark, str(job.warehouse), job.report_url)


@dataclass(frozen=True)
class Message:
    """The alerts of a night, in the order of their kinds."""

    night: Night
    alerts: tuple[Alert, ...]

    @classmethod
    def about(cls, night: Night, alerts: Sequence[Alert]) -> Self:
        """The message of these alerts."""
        return cls(night, tuple(sorted(alerts, key=lambda alert: KINDS.index(alert.kind))))

    @property
    def title(self) -> str:
        """Which night, and how many alerts of which kinds, in one line."""
        about = f"night {self.night.night}" if self.night.night else f"run {self.night.run_id}"
        counts = Counter(alert.kind for alert in self.alerts)
        kinds = ", ".join(f"{_told(kind)} ({count})" for kind, count in counts.items())
        return one_line(visible(f"{self.night.benchmark}, {about}: {kinds}"))

    @property
    def body(self) -> str:
        """The alerts as plain text, one a paragraph."""
        lines = [f"{_told(alert.kind)}: {alert.line}" for alert in self.alerts[:_MOST_LINES]]
        return visible("\n\n".join([*lines, *self._rest(_MOST_LINES), self._where]))

    @property
    def as_json(self) -> dict[str, Any]:
        """The message for machines."""
        return asdict(self.night) | {"title": self.title, "alerts": [alert.as_json for alert in self.alerts]}

    @property
    def as_slack(self) -> dict[str, Any]:
        """The message as Slack's incoming webhooks take it, and servers like it, which show the text alone."""
        some = self.alerts[:_MOST_SECTIONS]
        lines = [f"*{_told(alert.kind)}*: {escaped(alert.line, _SECTION_CHARS)}" for alert in some]
        lines += [*self._rest(_MOST_SECTIONS), escaped(self._where, _SECTION_CHARS)]
        header = {"type": "plain_text", "text": one_line(self.title, _HEADER_CHARS), "emoji": False}
        # Without `verbatim` Slack makes links of what looks like an address or a channel.
        sections = [{"type": "section", "text": {"type": "mrkdwn", "text": line, "verbatim": True}} for line in lines]
        return {
            "text": _joined([escaped(self.title, _HEADER_CHARS), *lines]),
            "blocks": [{"type": "header", "text": header}, *sections],
        }

    @property
    def _where(self) -> str:
        report = f", report {self.night.report}" if self.night.report else ""
        return f"run {self.night.run_id}, warehouse {self.night.warehouse}{report}; all are in the table `alerts`"

    def _rest(self, shown: int) -> list[str]:
        return [f"and {len(self.alerts) - shown} more"] if len(self.alerts) > shown else []


def _told(kind: Kind) -> str:
    return kind.replace("_", " ")


def escaped(text: str, most_chars: int) -> str:
    """Text as Slack's markup shows it, whatever it holds: no mention, no link; cut so that it fits when escaped."""
    pieces = [_ESCAPES.get(char, char) for char in _CALLS_EVERYBODY.sub("@\u200b", visible(text))]
    if sum(map(len, pieces)) <= most_chars:
        return "".join(pieces)
    room = most_chars - 1
    kept = []
    for piece in pieces:
        room -= len(piece)
        if room < 0:
            break
        kept.append(piece)
    return "".join(kept) + "…"


def _joined(lines: Sequence[str]) -> str:
    """The first lines that fit, one below the other."""
    ends = accumulate(len(line) + 1 for line in lines)
    return "\n".join(line for line, end in zip(lines, ends, strict=True) if end <= _TEXT_CHARS)
