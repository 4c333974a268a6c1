"""`prbench doctor`: is everything in place? No key is ever printed, and nothing heavy is imported."""

import importlib.metadata
import importlib.util
import os
import shutil
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import duckdb
from cronsim import CronSim

from flows.server.prefect_check import check_server
from tasks.benchmarks import load_benchmark
from tasks.config.models import Endpoint
from tasks.config.operations import Receiver
from tasks.config.policies import expectations_of, policies_of
from tasks.config.settings import Job
from tasks.llm import embedded
from tasks.llm.redaction import filled_in, filled_in_secrets
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.secrecy import is_reference
from tasks.run.missing_work import template_of
from warehouse import Warehouse, WarehouseError, WarehouseOutdated, lines_on
from warehouse.parts.migrations import refuse_newer

_PACKAGES = ("prefect", "duckdb", "polars", "pyarrow", "datasets", "litellm", "great-expectations")
_CONSTRAINED = {"fastapi": (0, 151), "sqlalchemy": (2, 1)}
"""Versions from which on Prefect 3.8 does not start, or never fires a schedule."""
_KEYS = {
    "openai": "OPENAI_API_KEY",
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "xai": "XAI_API_KEY",
    "mistral": "MISTRAL_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "groq": "GROQ_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "together_ai": "TOGETHERAI_API_KEY",
    "fireworks_ai": "FIREWORKS_AI_API_KEY",
    "moonshot": "MOONSHOT_API_KEY",
}
_ON_AWS = {"bedrock", "sagemaker", "sagemaker_chat"}
"""Providers that LiteLLM calls with boto3, which is not installed with it."""
_CONNECT_S = 3.0
_LOW_DISK_BYTES = 2**30


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; `is_ok` is None where doctor cannot tell. `is_damage`: stored data is damaged."""

    subject: str
    is_ok: bool | None
    detail: str
    is_damage: bool = False


def examine(job: Job) -> list[Finding]:
    """Look at the configuration, the models, Prefect's server, the warehouse and the installed versions."""
    return [*_configuration(job), *_models(job), *_nights(job), *_prefect(), *_warehouse(job), *_versions()]


def _configuration(job: Job) -> Iterator[Finding]:
    settings = job.settings
    benchmark = load_benchmark(settings.benchmark)
    numbers = f"{len(settings.models)} models, {len(settings.judges)} judges, trials {settings.trials}"
    yield Finding("configuration", True, f"{settings.benchmark}, {numbers}")
    try:
        policies_of(job, expectations_of(benchmark))
        for judge in settings.judges:
            template_of(judge, benchmark)
    except PipelineError as error:
        yield Finding("configuration", False, str(error))


def _models(job: Job) -> Iterator[Finding]:
    seen: set[tuple[str, str | None]] = set()
    writer = job.settings.rubric_writer
    endpoints = (*job.settings.models, *job.settings.judges, *([] if writer is None else [writer]))
    yield from _literal_headers(endpoints)
    for endpoint in endpoints:
        if (endpoint.name, endpoint.api_base) not in seen:
            seen.add((endpoint.name, endpoint.api_base))
            yield _model(endpoint)


def _literal_headers(endpoints: Iterable[Endpoint]) -> Iterator[Finding]:
    """Headers whose value stands in the configuration, by name: it is stored, and no secret to anybody."""
    for label, headers in {endpoint.label: endpoint.headers for endpoint in endpoints}.items():
        literal = sorted(name for name, value in headers.items() if not is_reference(value))
        if literal:
            names = ", ".join(literal)
            yield Finding(f"headers of {label}", None, f"literal: {names}; if one is a secret, write ${{NAME}} for it")


def _model(endpoint: Endpoint) -> Finding:
    subject = f"model {endpoint.name}"
    if embedded.is_embedded(endpoint.name):
        try:
            return Finding(subject, True, f"embedded, weights {embedded.weights_hash()}")
        except PipelineError as error:
            return Finding(subject, False, str(error))
    if endpoint.api_base:
        return _reachable(subject, endpoint)
    return _callable(subject, endpoint.name.partition("/")[0])


def _callable(subject: str, provider: str) -> Finding:
    """Whether what a hosted provider needs is there: a package, or a key."""
    if provider in _ON_AWS and importlib.util.find_spec("boto3") is None:
        return Finding(subject, False, "boto3 is not installed; run `uv pip install boto3`")
    variable = _KEYS.get(provider)
    if variable is None:
        return Finding(subject, None, "its provider is not known here; LiteLLM looks for the provider's own variable")
    if os.environ.get(variable):
        return Finding(subject, True, f"{variable} is set")
    return Finding(subject, False, f"{variable} is not set; export it")


def _reachable(subject: str, endpoint: Endpoint) -> Finding:
    try:
        for value in endpoint.headers.values():
            filled_in(value)
        filled_in_secrets(endpoint.parameters)
        return _answers(subject, *_host_and_port(endpoint.api_base or ""))
    except UsageError as error:
        return Finding(subject, False, str(error))


def _host_and_port(address: str) -> tuple[str, int]:
    """Where a configured address leads; references to the environment are filled in."""
    parts = urlsplit(filled_in(address))
    try:
        return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise UsageError(f"an address has no usable port ({error}); mend the configuration") from error


def _answers(subject: str, host: str, port: int) -> Finding:
    try:
        with socket.create_connection((host, port), timeout=_CONNECT_S):
            return Finding(subject, True, f"{host}:{port} answers")
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        return Finding(subject, False, f"{host}:{port} cannot be reached ({why}); start it, or mend the address")


def _nights(job: Job) -> Iterator[Finding]:
    """When the next night begins, and whether those that are to hear of it can be told."""
    nightly, alerts = job.settings.nightly, job.settings.alerts
    begins = next(CronSim(nightly.cron, datetime.now(ZoneInfo(nightly.timezone))))
    stops = f", stops at {nightly.stop_at}" if nightly.stop_at else ""
    yield Finding("nights", True, f"next {begins:%Y-%m-%d %H:%M %Z} ({nightly.timezone}){stops} with `prbench serve`")
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
            return Finding(subject, None, f"Prefect block {receiver.prefect}, which is loaded when there is an alert")
        return _is_set(subject, receiver.apprise) or Finding(subject, None, f"{receiver.apprise}, a URL of Apprise")
    return _is_set(subject, mail.user, mail.password) or _answers(subject, mail.host, mail.port)


def _is_set(subject: str, *values: str | None) -> Finding | None:
    """What is wrong with references to the environment."""
    try:
        for value in values:
            filled_in(value or "")
    except UsageError as error:
        return Finding(subject, False, str(error))
    return None


def _address(subject: str, address: str) -> Finding:
    try:
        host, port = _host_and_port(address)
    except UsageError as error:
        return Finding(subject, False, str(error))
    if not host:
        return Finding(subject, False, "the address names no host; write it with https://")
    # Of an address only the host is named: what follows it may be a secret.
    return _answers(subject, host, port)


def _prefect() -> Iterator[Finding]:
    yield Finding("Prefect server", *check_server())


def _warehouse(job: Job) -> Iterator[Finding]:
    warehouse = Warehouse(job.warehouse)
    subject = f"warehouse {warehouse.root}"
    yield Finding("data folder", True, f"{warehouse.root} ({job.warehouse_source})")
    existing = next(folder for folder in (warehouse.root, *warehouse.root.parents) if folder.exists())
    if not os.access(existing, os.W_OK):
        yield Finding(subject, False, f"{existing} cannot be written to; choose another --warehouse")
    free = shutil.disk_usage(existing).free
    yield Finding("disk", free >= _LOW_DISK_BYTES, f"{free / 2**30:.0f} GiB free")
    try:
        refuse_newer(warehouse.root)
    except WarehouseError as error:
        yield Finding(subject, False, str(error))
        return
    damage = list(_damage(warehouse))
    yield from damage
    if not warehouse.database.exists():
        if damage:
            return
        yield Finding(subject, True, "empty; `prbench run` fills it")
        return
    try:
        with warehouse.reader() as reader:
            counts = ", ".join(f"{reader.value(f'select count(*) from {t}')} {t}" for t in ("tasks", "verdicts"))
        waiting = warehouse.n_unpublished()
    except WarehouseOutdated as error:
        yield Finding(subject, False, str(error))
        return
    except (WarehouseError, duckdb.Error) as error:
        if not damage:
            yield Finding(subject, False, " ".join(str(error).split()))
        return
    yield Finding(subject, True, counts + (f", {waiting} parts to be published by the next run" if waiting else ""))


def _damage(warehouse: Warehouse) -> Iterator[Finding]:
    """What is damaged, missing or lost of what is stored; every stored part and every block of the database is read."""
    found = warehouse.damage()
    for line in found:
        yield Finding("stored data", False, line, is_damage=True)
    if found:
        mended = "`prbench aggregate` sets damaged files aside and restores their rows as far as it can, without a call"
        yield Finding("stored data", None, mended)
    for loss in warehouse.losses():
        yield Finding("stored data", False, loss.line, is_damage=True)
    if warehouse.losses():
        yield Finding("stored data", None, lines_on(warehouse.losses())[-1])


def _versions() -> Iterator[Finding]:
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES)
    yield Finding("versions", True, versions)
    for name, bound in _CONSTRAINED.items():
        version = importlib.metadata.version(name)
        major, minor = (int(part) for part in version.split(".")[:2])
        if (major, minor) >= bound:
            yield Finding("versions", False, f"{name} {version} breaks Prefect; install {name}<{bound[0]}.{bound[1]}")
