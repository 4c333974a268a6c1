"""The checks of `prbench doctor` on the configuration, models, keys, schedule and alerts."""

import importlib.util
from collections.abc import Iterable, Iterator
from datetime import datetime
from zoneinfo import ZoneInfo

from cronsim import CronSim

from flows.cli.operate.findings import Finding, answers, host_and_port
from tasks.config import Endpoint, Job, Receiver
from tasks.llm import KEYS, filled_in, filled_in_secrets, is_embedded, set_key, weights_hash
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.text.numbers import counted
from tasks.rules.text.secrecy import is_reference

_ON_AWS = {"bedrock", "sagemaker", "sagemaker_chat"}
"""Providers that LiteLLM calls with boto3, which is not installed with it."""


def check_configuration(job: Job) -> Iterator[Finding]:
    """What the configuration is about; whatever is wrong in it is refused before."""
    settings = job.settings
    numbers = (
        f"{counted(len(settings.models), 'model')}, {counted(len(settings.judges), 'judge')}, trials {settings.trials}"
    )
    yield Finding("configuration", True, f"{settings.benchmark}, {numbers}")


def check_data_set(job: Job) -> Iterator[Finding]:
    """Whether the data set's files are there; a commit of the hub is not asked for."""
    dataset = job.settings.dataset
    try:
        data = job.data
    except PipelineError as error:
        yield Finding("data set", False, str(error).removeprefix("dataset.source: "))
        return
    splits = f"splits {', '.join(data.splits)}"
    kind = f" ({dataset.source})" if dataset.source in {"hub", "sample"} else ""
    yield Finding("data set", True, f"{data.name}{kind}, revision {data.revision[:12]}, {splits}")


def check_models(job: Job) -> Iterator[Finding]:
    """Whether each model has its key, or a server that can be reached."""
    seen: set[tuple[str, str | None]] = set()
    settings = job.settings
    used_as: list[tuple[str, Endpoint]] = [
        *(("model", model) for model in settings.models),
        *(("judge", judge) for judge in settings.called_judges),
        *([] if settings.rubric_writer is None else [("rubric writer", settings.rubric_writer)]),
        *(("annotator", annotator) for annotator in settings.annotator),
        *(("reviewer", reviewer) for reviewer in settings.reviewer),
        *(("capabilities model", model) for model in settings.capability_model),
        *(("embedding model", model) for model in settings.capability_embedding),
    ]
    for name, listed, outcome in (
        ("models", settings.models, "nothing is sampled; imported responses are judged"),
        ("judges", settings.judges, "nothing is judged; imported verdicts count"),
    ):
        if not listed:
            yield Finding(name, True, f"none is configured, so {outcome}")
    yield from _literal_headers(endpoint for _, endpoint in used_as)
    for role, endpoint in used_as:
        if (endpoint.name, endpoint.api_base) not in seen:
            seen.add((endpoint.name, endpoint.api_base))
            yield _model(f"{role} {endpoint.name}", endpoint)


def _literal_headers(endpoints: Iterable[Endpoint]) -> Iterator[Finding]:
    """Headers whose value is written in the configuration, by name: they are stored and not treated as secrets."""
    for label, headers in {endpoint.label: endpoint.headers for endpoint in endpoints}.items():
        literal = sorted(name for name, value in headers.items() if not is_reference(value))
        if literal:
            names = ", ".join(literal)
            yield Finding(f"headers of {label}", None, f"literal values: {names}; write ${{NAME}} for a secret")


def _model(subject: str, endpoint: Endpoint) -> Finding:
    if is_embedded(endpoint.name):
        try:
            return Finding(subject, True, f"embedded, weights {weights_hash()}")
        except PipelineError as error:
            return Finding(subject, False, str(error))
    if endpoint.api_base:
        return _reachable(subject, endpoint)
    return _callable(subject, endpoint.name.partition("/")[0])


def _callable(subject: str, provider: str) -> Finding:
    """Whether a hosted provider has what it needs: a package, or a key."""
    if provider in _ON_AWS and importlib.util.find_spec("boto3") is None:
        return Finding(subject, False, "boto3 is not installed; run `uv pip install boto3`")
    if provider not in KEYS:
        return Finding(subject, None, "unknown provider; LiteLLM reads the provider's own environment variable")
    name = set_key(provider)
    return (
        Finding(subject, True, f"{name} is set")
        if name
        else Finding(subject, False, f"{KEYS[provider][0]} is not set; export it")
    )


def _reachable(subject: str, endpoint: Endpoint) -> Finding:
    try:
        for value in endpoint.headers.values():
            filled_in(value)
        filled_in_secrets(endpoint.parameters)
        return answers(subject, *host_and_port(endpoint.api_base or ""))
    except UsageError as error:
        return Finding(subject, False, str(error))


def check_nights(job: Job) -> Iterator[Finding]:
    """When the next night starts, and whether alerts can be sent."""
    nightly, alerts = job.settings.nightly, job.settings.alerts
    begins = next(CronSim(nightly.cron, datetime.now(ZoneInfo(nightly.timezone))))
    stops = f", stops at {nightly.stop_at}" if nightly.stop_at else ""
    zone = "" if begins.tzname() == nightly.timezone else f" ({nightly.timezone})"
    yield Finding("nights", True, f"next {begins:%Y-%m-%d %H:%M %Z}{zone}{stops} with `prbench serve`")
    for number, receiver in enumerate(alerts.to, start=1):
        yield _receiver(f"alerts to {receiver.kind} {number}", receiver)
    if alerts.ping is not None:
        yield _address("ping after nights", alerts.ping)


def _receiver(subject: str, receiver: Receiver) -> Finding:
    mail = receiver.email
    if mail is None:
        address = receiver.webhook or receiver.slack
        if address is not None:
            return _address(subject, address)
        if receiver.prefect is not None:
            return Finding(subject, None, f"Prefect block {receiver.prefect}; it is loaded when there is an alert")
        return _unset(subject, receiver.apprise) or Finding(subject, None, f"{receiver.apprise}, an Apprise URL")
    return _unset(subject, mail.user, mail.password) or answers(subject, mail.host, mail.port)


def _unset(subject: str, *values: str | None) -> Finding | None:
    """What is wrong with references to environment variables."""
    try:
        for value in values:
            filled_in(value or "")
    except UsageError as error:
        return Finding(subject, False, str(error))
    return None


def _address(subject: str, address: str) -> Finding:
    try:
        host, port = host_and_port(address)
    except UsageError as error:
        return Finding(subject, False, str(error))
    if not host:
        return Finding(subject, False, "the address has no host; write it with https://")
    # Of an address only the host is named: what follows it may be a secret.
    return answers(subject, host, port)
