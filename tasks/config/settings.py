"""The shape of the configuration file.

Unknown keys, wrong types and impossible values are refused. Secrets are not part of it: they come
from the environment, under LiteLLM's own names.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal
from zoneinfo import ZoneInfo

from cronsim import CronSim, CronSimError
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    NonNegativeFloat,
    PlainSerializer,
    PositiveFloat,
    model_validator,
)

from tasks.config.models import (
    Analysts,
    Capabilities,
    Endpoint,
    Judge,
    Model,
    Share,
    Size,
    Strict,
    Text,
    address_problems,
    with_cascades,
    with_panels,
)
from tasks.rules.text.secrecy import REFERENCE

Level = Annotated[float, Field(gt=0, lt=1)]
"""A level of significance."""
Count = Annotated[int, Field(ge=0, strict=True)]
BASELINE = "baseline"
"""The name of the condition that the others are compared with; by default, it is the first one."""


def _refuse_boolean(name: Any) -> Any:
    """Return a name that YAML has read as a text.

    Raises:
        ValueError: YAML has read it as a boolean, as it does with `on` and `no`.
    """
    if name is True or name is False:
        raise ValueError(
            f"the name {name} is not a text; put it in quotes (YAML reads on, off, yes, no so)"
        )
    return name


_Name = Annotated[Text, BeforeValidator(_refuse_boolean)]


def _with_baseline_first(labels: dict[str, str]) -> dict[str, str]:
    """Return the conditions with the baseline first.

    Raises:
        ValueError: there is nothing to compare, or two conditions have the same label.
    """
    if len(labels) < 2:
        raise ValueError("needs at least two conditions: `baseline`, and one to compare with it")
    if len(set(labels.values())) < len(labels):
        raise ValueError("two conditions have the same label")
    baseline = BASELINE if BASELINE in labels else next(iter(labels))
    return {baseline: labels[baseline], **labels}


Conditions = dict[_Name, Annotated[dict[_Name, _Name], AfterValidator(_with_baseline_first)]]
"""The name that a model's conditions share -> condition -> the label of the model under it, the
baseline first.
"""


EVERY_PAIR: Literal["all"] = "all"
EARLIER_NIGHTS: Literal["earlier_nights"] = "earlier_nights"


class Stopping(Strict):
    """The settings of an evaluation in random order, block by block, until each comparison is
    settled.

    Scores are the benchmark's primary score under the first judge in its first repetition.

    Attributes:
        alpha: the probability of any false decision among all comparisons.
        least_difference: a smaller difference (in the unit of the score) counts as equal.
        pairs: the comparisons: `all` pairs of configured models, or the given pairs.
            `earlier_nights` compares each model with `resample: nightly` with its own values of
            earlier nights, to detect a drop by more than `least_difference`.
        block: the number of tasks between two looks.
        seed: chooses the order of the tasks.
    """

    alpha: Level = 0.05
    least_difference: PositiveFloat = 0.02
    pairs: Literal["all", "earlier_nights"] | tuple[tuple[str, str], ...] = EVERY_PAIR
    block: Size = 20
    seed: Count = 1

    def problems(self) -> Iterator[str]:
        """Yield a problem if pairs are not of two different labels, each pair once."""
        if isinstance(self.pairs, str):
            return
        different_pairs = {frozenset(pair) for pair in self.pairs if pair[0] != pair[1]}
        if not self.pairs or len(different_pairs) < len(self.pairs):
            yield "`pairs` must be pairs of two different labels, each pair once"


class Dataset(Strict):
    """The source of the tasks: the hub, the sample that ships, or a path to Parquet or JSON Lines.

    Attributes:
        files: a file of the hub's repository for each split, if the repository's own splits do not
            fit.
        prompts: a file of lines `id<TAB>prompt` for rows without a prompt; in a folder, a `.tsv`
            file is used automatically.
    """

    source: Text = "hub"
    id: str | None = None
    revision: str | None = None
    files: dict[str, str] = Field(default_factory=dict)
    prompts: str | None = None
    splits: tuple[str, ...] = ()

    def problems(self) -> Iterator[str]:
        """Yield settings that are missing, or that do not belong to the source."""
        if self.source == "hub" and not (self.revision and (self.splits or self.files)):
            yield "source hub needs `revision` (a commit) and `splits` (or `files`)"
        for name in ("files", "revision"):
            if self.source != "hub" and getattr(self, name):
                yield (
                    f"`{name}` belongs to source hub; with files, each is a split, and the revision"
                    " is their content"
                )
        unknown_splits = set(self.splits) - set(self.files)
        if self.files and unknown_splits:
            yield f"`splits` names {min(unknown_splits)!r}, for which `files` has no file"
        if self.source in {"hub", "sample"} and self.prompts:
            yield "`prompts` belongs to files; the rows of the hub and of the sample have prompts"


class Rates(Strict):
    """The limits of simultaneous calls, requests per minute and tokens per minute; null: no limit,
    or under `judge` the same as for models.
    """

    concurrency: Size | None = None
    rpm: PositiveFloat | None = None
    tpm: PositiveFloat | None = None


class Limits(Rates):
    """Bounds on the calls of one run.

    `concurrency`, `rpm` and `tpm` apply to models and to judges, which are counted separately.

    Attributes:
        judge: other values of these three for judges.
        attempts: the most attempts for one reply.
        deadline_s: the longest time for one reply, over all attempts.
        outage_s: an endpoint without a successful reply for this time is stopped for the run.
        max_usd: a cap on the cost of the run.
        max_tokens: a cap on the tokens of the run.
        batch_wait_s: the longest time that the run waits for provider batches.
    """

    concurrency: Size = 64
    judge: Rates = Rates()
    attempts: Size = 5
    deadline_s: PositiveFloat | None = None
    outage_s: PositiveFloat = 60.0
    max_usd: PositiveFloat | None = None
    max_tokens: Size | None = None
    batch_wait_s: NonNegativeFloat = 3600.0

    def rates(self, purpose: str) -> Rates:
        """Return the limits of a purpose, `sample` or `judge`."""
        rates = self.judge if purpose == "judge" else self
        return Rates(
            concurrency=rates.concurrency or self.concurrency,
            rpm=rates.rpm or self.rpm,
            tpm=rates.tpm or self.tpm,
        )


class Calls(Strict):
    """The processes that make calls: the run's own process, or `senders` of Ray.

    Attributes:
        where: `here` is the run's own process.
        address: that of Ray: `local` starts it on this machine's cores, `auto` finds a cluster
            (`RAY_ADDRESS`, or one that was started on this machine), `ray://...` names one.
        senders: the total number of these processes; `auto`: one per core.
    """

    where: Literal["here", "ray"] = "here"
    address: Annotated[str, Field(pattern=r"^(auto|local|ray://.+)$")] = "auto"
    senders: Size | Literal["auto"] = "auto"

    @property
    def are_local(self) -> bool:
        """True if this machine makes the calls, with its own keys."""
        return self.where == "here" or self.address == "local"

    def problems(self) -> Iterator[str]:
        """Yield settings of Ray if calls are made without it."""
        for name in ("address", "senders"):
            if self.where == "here" and getattr(self, name) != "auto":
                yield f"`{name}` belongs to `where: ray`"


class Quality(Strict):
    """The policies of checks, by name, and the ids of accepted tasks, whose quarantine is known."""

    policies: dict[str, Literal["quarantine", "warn", "fail"]] = Field(default_factory=dict)
    accepted: tuple[str, ...] = ()

    @model_validator(mode="before")
    @classmethod
    def _with_policies(cls, data: Any) -> Any:
        """Convert the configuration's flat form, in which check names are next to `accepted`."""
        if not isinstance(data, dict) or "policies" in data:
            return data
        policies = {name: policy for name, policy in data.items() if name != "accepted"}
        return {"policies": policies, "accepted": data.get("accepted") or ()}


class Coverage(Strict):
    """The minimum coverage of a good run."""

    min: Annotated[float, Field(ge=0, le=1)] = 0.99


class HardSubset(Strict):
    """The settings of the hard subset: a share of each field's tasks or a number by field, and the
    panel of models.

    `min_coverage` is the share of a field's tasks that must be complete for the whole panel; null:
    `coverage.min`.
    """

    share: Share | dict[str, Size] = 0.5
    panel: Literal["all"] | tuple[str, ...] = "all"
    min_coverage: Share | None = None


class Nightly(Strict):
    """The settings of nights: their start (`cron`, in the time zone), and the end of their calls.

    If another night is still running, a night does nothing with `overlap: skip`, and waits for it
    with `queue`. `stop_at` is a time of day, such as 06:30.
    """

    cron: str = "0 1 * * *"
    timezone: str = "UTC"
    overlap: Literal["skip", "queue"] = "skip"
    stop_at: Annotated[str, Field(pattern=r"^([01]\d|2[0-3]):[0-5]\d$")] | None = None

    def problems(self) -> Iterator[str]:
        """Yield an invalid cron line or time zone."""
        try:
            next(CronSim(self.cron, datetime.now(UTC)))  # raises if it never fires
            is_cron = len(self.cron.split()) == 5
        except (CronSimError, StopIteration):
            is_cron = False
        if not is_cron:
            yield f"`cron`: {self.cron!r} is not a cron line (minute hour day month weekday)"
        try:
            ZoneInfo(self.timezone)
        except (KeyError, ValueError, OSError):
            yield f"`timezone`: {self.timezone!r} is not a time zone; use one such as Europe/Berlin"


class Drift(Strict):
    """The control set: the number of stored verdicts of each judge that are judged again every
    night.

    Control limits for the agreement with the first verdicts come from earlier nights;
    `min_agreement` is a further minimum, which also applies to the first nights.
    """

    verdicts: Count = 0
    min_agreement: Share | None = None


MailAddress = Annotated[
    str, Field(pattern=r"^(?:[^<>@,\r\n]*<[^<>@,\s]+@[^<>@,\s]+>|[^<>@,\s]+@[^<>@,\s]+)$")
]
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
        """Yield the problems of a password: stored here, without a user, or sent without
        encryption.
        """
        if self.password is not None and not REFERENCE.fullmatch(self.password):
            yield "`password` is a secret; put it in the environment and write ${NAME} here"
        if (self.user is None) != (self.password is None):
            yield "`user` and `password` belong together"
        if self.user is not None and self.security == "none":
            yield "a password is not sent over a line that is not encrypted; set `security`"


_SECRET_HOSTS = (
    "hooks.slack.com/",
    "discord.com/api/webhooks/",
    "discordapp.com/api/webhooks/",
    ".office.com/",
)
"""Services whose addresses are secrets."""


def _without_secrets(address: str) -> str:
    """Return the stored form of an address: a reference is kept unchanged, of any other address
    only the host.
    """
    if REFERENCE.fullmatch(address):
        return address
    host = re.match(r"(https?://)(?:[^/?#]*@)?([\w.:\[\]${}-]*)", address)
    # An `@` after the host is the end of a password with a `/` in it.
    if host is None or "@" in address[host.end() :]:
        return "..."
    return f"{host[1]}{host[2]}/..."


Address = Annotated[str, PlainSerializer(_without_secrets, when_used="json")]
"""An address to send to. It may hold a secret, which its JSON, stored by runs and Prefect, leaves
out.
"""


class Receiver(Strict):
    """The receiver of alerts: exactly one of a webhook, a Slack-compatible one, mail, or a URL of
    Apprise.

    A Slack address is a secret and refers to the environment as `${NAME}`; the address of a webhook
    may do so too. A URL of Apprise is completely in the environment.
    """

    webhook: Address | None = None
    slack: Address | None = None
    email: Email | None = None
    apprise: Address | None = None

    def problems(self) -> Iterator[str]:
        """Yield a problem if there is not exactly one receiver, or an address is a secret."""
        kinds = self._kinds
        if len(kinds) != 1:
            yield (
                f"is one of {', '.join(type(self).model_fields)}, not"
                f" {' and '.join(kinds) or 'none'}"
            )
        yield from address_problems(self.webhook or "", "webhook")
        address = self.slack or self.webhook or ""
        is_secret = self.slack is not None or any(host in address for host in _SECRET_HOSTS)
        is_written_here = is_secret and not REFERENCE.search(address)
        if is_written_here or (self.apprise is not None and not REFERENCE.fullmatch(self.apprise)):
            yield (
                f"`{kinds[0]}`: the address is a secret; put it in the environment and write"
                " ${NAME} here"
            )

    @property
    def kind(self) -> str:
        """The kind of the receiver: the name of its setting."""
        return self._kinds[0]

    @property
    def _kinds(self) -> list[str]:
        return [name for name in type(self).model_fields if getattr(self, name) is not None]


class Alerts(Strict):
    """The settings of alerts: the causes of an alert after a night, and its receivers.

    A drop counts when it is at least `least_drop` and significant at `alpha`, corrected for all
    comparisons of the night.

    Attributes:
        when: with `always` a message is sent after every night, else only if there is a new alert.
        ping: the address of a dead-man's switch, which is called when a night has succeeded.
    """

    least_drop: NonNegativeFloat = 0.01
    alpha: Level = 0.05
    when: Literal["changes", "always"] = "changes"
    to: tuple[Receiver, ...] = ()
    ping: Address | None = None
    attempts: Size = 4
    timeout_s: PositiveFloat = 10.0

    def problems(self) -> Iterator[str]:
        """Yield secrets in the address to ping."""
        yield from address_problems(self.ping or "", "ping")


class Report(Strict):
    """The report at the end of a run: whether it is written, and its folder (null: `report/` in the
    warehouse).

    A relative `folder` is relative to the configuration file. Each benchmark has its own folder in
    it. `url` is the address at which you serve the folder; with it, the links in Prefect's UI and
    in alerts lead to the benchmark's page there.
    """

    enabled: bool = True
    folder: Path | None = None
    url: Annotated[str, Field(pattern=r"^https?://\S+$")] | None = None


class Retention(Strict):
    """The time for which data other than results is kept, in days; null: forever.

    `replies_days` is for raw replies in the ledger that have become rows (those of decision models
    are kept for another threshold), `prefect_days` for runs in the database of the project's own
    Prefect server.
    """

    replies_days: Size | None = None
    prefect_days: Size | None = 30


class Settings(Strict):
    """The configuration.

    Attributes:
        warehouse: the folder of the data, relative to the configuration file; null:
            `PRBENCH_WAREHOUSE`, or the default.
        judges: the judges whose verdicts are wanted. A judge that a cascade names works only within
            the cascade, and is removed from them.
        rubric_writer: the model that rewrites criteria for judges with `rubric: augmented`.
        annotator: the model that labels tasks, or a list of them.
        reviewer: the model that checks criteria, or a list of them.
        stopping: without it, all tasks are evaluated.
        majorities: named sets of at least three judges and people, or of an even number of judges,
            whose majority vote is a grader.
        conditions: the labels that are one model under several conditions; `aggregate` replaces the
            stored conditions only if the key is present.
        prefect: `off` switches recording off; it does not affect results, so it is not stored with
            them.
    """

    benchmark: str = "prbench"
    warehouse: Text | None = None
    dataset: Dataset
    models: tuple[Model, ...] = ()
    judges: Annotated[
        tuple[Judge, ...], AfterValidator(with_cascades), AfterValidator(with_panels)
    ] = ()
    rubric_writer: Endpoint | None = None
    annotator: Analysts = ()
    reviewer: Analysts = ()
    capabilities: Capabilities = Capabilities()
    trials: Size = 1
    limits: Limits = Limits()
    calls: Calls = Calls()
    quality: Quality = Quality()
    coverage: Coverage = Coverage()
    hard_subset: HardSubset = HardSubset()
    stopping: Stopping | None = None
    majorities: dict[str, Annotated[tuple[str, ...], Field(min_length=3)]] = Field(
        default_factory=dict
    )
    conditions: Conditions = Field(default_factory=dict)
    nightly: Nightly = Nightly()
    drift: Drift = Drift()
    alerts: Alerts = Alerts()
    report: Report = Report()
    retention: Retention = Retention()
    # YAML reads the word `off` as false.
    prefect: Annotated[
        Literal["auto", "off"],
        BeforeValidator(lambda value: "off" if value is False else value),
        Field(exclude=True),
    ] = "auto"

    def problems(self) -> Iterator[str]:
        """Yield majorities that are panels."""
        for name, members in self.majorities.items():
            if len(members) % 2 and set(members).issubset(self.judge_labels):
                yield (
                    f"majorities.{name}: an odd number of judges is a panel; configure it as"
                    f" `{{label: {name}, majority: [{', '.join(members)}]}}` under `judges`"
                )

    @property
    def model_labels(self) -> tuple[str, ...]:
        """The labels of the models."""
        return tuple(model.label for model in self.models)

    @property
    def judge_labels(self) -> tuple[str, ...]:
        """The labels of the judges and panels whose verdicts are wanted."""
        return tuple(judge.label for judge in self.judges)

    @property
    def capability_model(self) -> Analysts:
        """The model that describes capabilities, if there is one."""
        return () if self.capabilities.model is None else (self.capabilities.model,)

    @property
    def capability_embedding(self) -> Analysts:
        """The model that makes vectors of phrases, if there is one."""
        return () if self.capabilities.embedding is None else (self.capabilities.embedding,)
