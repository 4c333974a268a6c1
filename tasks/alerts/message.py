"""What a receiver gets: all alerts of a night in one message, as text or as values for machines."""

import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any, Self

from tasks.alerts.findings import KINDS, Alert, Kind
from tasks.config.job import Job
from tasks.rules.identity import digest
from tasks.rules.text.characters import one_line, visible

_MOST_CHARS = 15_000
"""Chat servers take 16,000 characters, some more."""
_CALLS_EVERYBODY = re.compile(r"@(?=(?:here|channel|everyone|all)\b)", re.IGNORECASE)
_ESCAPES = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


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

    def id_of(self, alert: Alert) -> str:
        """Return the id of an alert: the same when a night is started again and finds the same.

        That a run failed or was skipped is news each time. The quality of the data is the same every night until the
        data changes.
        """
        of = {"failure": self.run_id, "skipped": self.run_id, "quality": ""}.get(alert.kind, self.night or self.run_id)
        facts = json.dumps(alert.facts, sort_keys=True)
        return digest("alert", of, self.benchmark, alert.kind, alert.subject, alert.line, facts)


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
        kinds = ", ".join(f"{_words(kind)} ({count})" for kind, count in counts.items())
        return one_line(visible(f"{self.night.benchmark}, {about}: {kinds}"))

    @property
    def body(self) -> str:
        """The alerts as plain text, one a paragraph, as many as fit."""
        return self._text(visible)

    @property
    def as_chat(self) -> str:
        """Title and alerts as Slack and servers like it show them: no mention and no link, whatever names contain."""
        return f"{escaped(self.title)}\n\n{self._text(escaped)}"

    @property
    def as_json(self) -> dict[str, Any]:
        """The message for machines, besides its title and body."""
        return asdict(self.night) | {"alerts": [alert.as_json for alert in self.alerts]}

    def _text(self, shown: Callable[[str], str]) -> str:
        paragraphs = [shown(f"{_words(alert.kind)}: {alert.line}") for alert in self.alerts]
        ends = accumulate(len(paragraph) + 2 for paragraph in paragraphs)
        n_fit = sum(end <= _MOST_CHARS for end in ends)
        rest = [f"and {len(paragraphs) - n_fit} more"] if n_fit < len(paragraphs) else []
        return "\n\n".join([*paragraphs[:n_fit], *rest, shown(self._where)])

    @property
    def _where(self) -> str:
        report = f", report {self.night.report}" if self.night.report else ""
        return f"run {self.night.run_id}, warehouse {self.night.warehouse}{report}; all are in the table `alerts`"


def _words(kind: Kind) -> str:
    return kind.replace("_", " ")


def escaped(text: str) -> str:
    """Text that Slack's markup shows as it is."""
    return _CALLS_EVERYBODY.sub("@\u200b", visible(text)).translate(_ESCAPES)
