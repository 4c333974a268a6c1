"""The settings of nights, alerts, the report and housekeeping."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from pydantic import Field, PlainSerializer

from tasks.config.models import Size, Strict, secrets_in
from tasks.rules.text.secrecy import REFERENCE

Share = Annotated[float, Field(gt=0, le=1)]
Clock = Annotated[str, Field(pattern=r"^([01]\d|2[0-3]):[0-5]\d$")]
"""A time of day, such as 06:30."""


class Nightly(Strict):
    """The settings of nights: their start (`cron`, in the time zone), the end of their calls, and overlapping nights.

    If another night is still running, a night does nothing with `overlap: skip`, and waits for it with `queue`.
    """

    cron: str = "0 1 * * *"
    timezone: str = "UTC"
    overlap: Literal["skip", "queue"] = "skip"
    stop_at: Clock | None = None

    def problems(self) -> Iterator[str]:
        """Yield an invalid cron line or time zone."""
        try:
            is_cron = bool(next(CronSim(self.cron, datetime.now(UTC)))) and len(self.cron.split()) == 5
        except (CronSimError, StopIteration):
            is_cron = False
        if not is_cron:
            yield f"`cron`: {self.cron!r} is not a cron line (minute hour day month weekday)"
        try:
            ZoneInfo(self.timezone)
        except (KeyError, ValueError, OSError):
            yield f"`timezone`: {self.timezone!r} is not a time zone; use one such as Europe/Berlin"


class Drift(Strict):
    """The control set: the number of stored verdicts of each judge that are judged again every night.

    Control limits for the agreement with the first verdicts come from earlier nights; `min_agreement` is a further
    minimum, which also applies to the first nights.
    """

    verdicts: Annotated[int, Field(ge=0, strict=True)] = 0
    min_agreement: Share | None = None


MailAddress = Annotated[str, Field(pattern=r"^(?:[^<>@,\r\n]*<[^<>@,\s]+@[^<>@,\s]+>|[^<>@,\s]+@[^<>@,\s]+)$")]
"""One address, with or without a name: Evals <evals@example.org>."""


class Email(Strict):
    """A mail over SMTP. `user` and `password` refer to the environment as `${NAME}`."""

    to: Annotated[tuple[MailAddress, ...], Field(min_length=1)]
    sender: MailAddress
    host: str
    port: Annotated[int, Field(ge=1, le=65535, strict=True)] = 587
    security: Literal["starttls", "tls", "none"] = "starttls"
    user: str | None = None
    password: str | None = None

    def problems(self) -> Iterator[str]:
        """Yield the problems of a password: stored here, without a user, or sent without encryption."""
        if self.password is not None and not REFERENCE.fullmatch(self.password):
            yield "`password` is a secret; put it in the environment and write ${NAME} here"
        if (self.user is None) != (self.password is None):
            yield "`user` and `password` belong together"
        if self.user is not None and self.security == "none":
            yield "a password is not sent over a line that is not encrypted; set `security`"


_SECRET_HOSTS = ("hooks.slack.com/", "discord.com/api/webhooks/", "discordapp.com/api/webhooks/", ".office.com/")
"""Services whose addresses are secrets."""


def _without_secrets(address: str) -> str:
    """Return the stored form of an address: a reference is kept unchanged, of any other address only the host."""
    host = re.compile(r"(https?://)(?:[^/?#]*@)?([\w.:\[\]${}-]*)").match(address)
    if REFERENCE.fullmatch(address):
        return address
    # An `@` after the host is the end of a password with a `/` in it.
    return f"{host[1]}{host[2]}/..." if host and "@" not in address[host.end() :] else "..."


Address = Annotated[str, PlainSerializer(_without_secrets, when_used="json")]
"""An address to send to. It may hold a secret, which its JSON, stored by runs and Prefect, leaves out."""

_KINDS = ("webhook", "slack", "email", "apprise")


class Receiver(Strict):
    """The receiver of alerts: exactly one of a webhook, a Slack-compatible one, mail, or a URL of Apprise.

    A Slack address is a secret and refers to the environment as `${NAME}`; a webhook's may. A URL of Apprise is
    completely in the environment.
    """

    webhook: Address | None = None
    slack: Address | None = None
    email: Email | None = None
    apprise: Address | None = None

    def problems(self) -> Iterator[str]:
        """Yield a problem if there is not exactly one receiver, or if an address is a literal secret."""
        given = [name for name in _KINDS if getattr(self, name) is not None]
        if len(given) != 1:
            yield f"is one of {', '.join(_KINDS)}, not {' and '.join(given) or 'none'}"
        yield from secrets_in(self.webhook or "", "webhook")
        address = self.slack or self.webhook or ""
        is_secret = self.slack is not None or any(host_path in address for host_path in _SECRET_HOSTS)
        is_literal = is_secret and not REFERENCE.search(address)
        if is_literal or (self.apprise is not None and not REFERENCE.fullmatch(self.apprise)):
            yield f"`{given[0]}`: the address is a secret; put it in the environment and write ${{NAME}} here"

    @property
    def kind(self) -> str:
        """The kind of the receiver: one of `_KINDS`."""
        return next(name for name in _KINDS if getattr(self, name) is not None)


class Alerts(Strict):
    """The settings of alerts: the causes of an alert after a night, and its receivers.

    A drop counts when it is at least `least_drop` and significant at `alpha`, corrected for all comparisons of the
    night. `ping` is the address of a dead-man's switch, which is called when a night has come to its end.
    """

    least_drop: Annotated[float, Field(ge=0)] = 0.01
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.05
    to: tuple[Receiver, ...] = ()
    ping: Address | None = None
    attempts: Size = 4
    timeout_s: Annotated[float, Field(gt=0)] = 10.0

    def problems(self) -> Iterator[str]:
        """Yield secrets in the address to ping."""
        yield from secrets_in(self.ping or "", "ping")


class Report(Strict):
    """The report at the end of a run: whether it is written, and its folder (null: `report/` in the warehouse).

    A relative `folder` is relative to the configuration file. Each benchmark has its own folder in it. `url` is the
    address at which you serve the folder; with it, the links in Prefect's UI and in alerts lead to the benchmark's page
    there.
    """

    enabled: bool = True
    folder: Path | None = None
    url: Annotated[str, Field(pattern=r"^https?://\S+$")] | None = None


class Retention(Strict):
    """The time for which data other than results is kept, in days; null: forever.

    `replies_days` is for raw replies in the ledger that have become rows (those of decision models are kept for
    another threshold), `prefect_days` for runs in the database of a Prefect server that `prbench serve` starts.
    """

    replies_days: Size | None = None
    prefect_days: Size | None = 30
