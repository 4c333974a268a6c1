"""All checks of `prbench doctor`. No key is ever shown."""

import asyncio
import importlib.metadata
import os
import shutil
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import duckdb
from cronsim import CronSim

from flows.run.validation import ConfigurationError
from flows.server.project_server import check_server
from tasks.config.job import Job
from tasks.config.operations import Receiver
from tasks.console import notice
from tasks.llm.calls.gateway import probe
from tasks.llm.embedded import weights_hash
from tasks.llm.environment import filled_in, key_state, missing_variables
from tasks.llm.request import Target
from tasks.llm.senders.pool import inspect as inspect_nodes
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.text.numbers import counted
from tasks.rules.text.secrecy import is_reference
from tasks.run.run_context import LEDGER, callees, unbounded
from warehouse import Warehouse, WarehouseError, WarehouseOutdated, lines_on, refuse_other_version

_CONNECT_S = 3.0


@dataclass(frozen=True)
class SetupFinding:
    """The result of one check; `is_ok` is None if unknown, `is_damage` is true if stored data is damaged."""

    subject: str
    is_ok: bool | None
    detail: str
    is_damage: bool = False


def examine(job: Job, *, may_call: bool = False) -> list[SetupFinding]:
    """Check the configuration, the data set, the models, Prefect's server, the warehouse and the versions.

    With `may_call`, each model is called once, with one token.
    """
    settings = job.settings
    numbers = f"{counted(len(settings.models), 'model')}, {counted(len(settings.judges), 'judge')}"
    # A broken configuration was refused earlier.
    configuration = SetupFinding("configuration", True, f"{settings.benchmark}, {numbers}, trials {settings.trials}")
    return [configuration, *_of_job(job, may_call=may_call), *_of_machine()]


def examine_broken(error: ConfigurationError) -> list[SetupFinding]:
    """Return all problems of a broken configuration, and the findings that need none."""
    return [*(SetupFinding(f"configuration {error.where}", False, each) for each in error.problems), *_of_machine()]


def _of_job(job: Job, *, may_call: bool) -> Iterator[SetupFinding]:
    try:
        data = job.data
        kind = f" ({job.settings.dataset.source})" if job.settings.dataset.source in {"hub", "sample"} else ""
        splits = f"splits {', '.join(data.splits)}"
        yield SetupFinding("data set", True, f"{data.name}{kind}, revision {data.revision[:12]}, {splits}")
    except PipelineError as error:
        yield SetupFinding("data set", False, str(error).removeprefix("dataset.source: "))
    yield from check_models(job, may_call=may_call)
    # LiteLLM's price table is loaded only if it is needed.
    has_cap = job.settings.limits.max_usd is not None or job.settings.limits.max_tokens is not None
    if lines := list(unbounded(job)) if has_cap or may_call else []:
        yield SetupFinding("caps", False if has_cap else None, "; ".join(lines))
    yield from check_senders(job)
    yield from check_nights(job)
    yield from check_warehouse(job)


def _of_machine() -> list[SetupFinding]:
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES)
    return [SetupFinding("Prefect server", *check_server()), SetupFinding("versions", True, versions)]


def check_models(job: Job, *, may_call: bool) -> Iterator[SetupFinding]:
    """Yield the findings on models: their keys, their servers, and with `may_call` one call to each."""
    settings = job.settings
    called = list(callees(job))
    if not settings.models:
        yield SetupFinding("models", True, "none is configured, so nothing is sampled; imported responses are judged")
    if not settings.judges:
        yield SetupFinding("judges", True, "none is configured, so nothing is judged; imported verdicts count")
    for label, headers in {each.label: each.target.headers for each in called}.items():
        # Literal headers are stored, and not treated as secrets.
        if literal := sorted(name for name, value in headers.items() if not is_reference(value)):
            detail = f"literal values: {', '.join(literal)}; write ${{NAME}} for a secret"
            yield SetupFinding(f"headers of {label}", None, detail)
    routes: dict[str, tuple[Target, str]] = {}
    for each in called:
        route = str((each.target.name, each.target.api_base, each.target.headers))
        routes.setdefault(route, (each.target, f"{each.kind.replace('_', ' ')} {each.target.name}"))
    models = [(target, _finding(_model, subject, target)) for target, subject in routes.values()]
    # Calls from a cluster use the keys on the cluster, which cannot be tested from here.
    is_here = settings.calls.where == "here" or settings.calls.address == "local"
    yield from _called(job, models) if may_call and is_here else (finding for _, finding in models)


def _called(job: Job, models: Sequence[tuple[Target, SetupFinding]]) -> Iterator[SetupFinding]:
    """Call each model that passed and is not embedded; yield the findings on all models, calls included."""
    called = [target for target, finding in models if finding.is_ok is not False and not target.is_embedded]
    if called:
        notice(f"calling {counted(len(called), 'model')}, 1 call of 1 token each (--no-call leaves them out)")
    # Two machines must not open the same ledger.
    ledger, is_elsewhere = job.warehouse / LEDGER, Warehouse(job.warehouse).elsewhere()
    probed = iter(asyncio.run(probe(called, ledger if ledger.is_dir() and not is_elsewhere else None, job.run_id)))
    for target, finding in models:
        is_ok, detail = next(probed) if target in called else (finding.is_ok, "")
        known = "" if detail and key_state(target) in detail else finding.detail
        yield SetupFinding(finding.subject, is_ok, "; ".join(filter(None, (known, detail))))


def _finding(check: Callable[[str, Any], SetupFinding], subject: str, checked: Any) -> SetupFinding:
    """Return the finding of a check; an unset variable or an invalid address is a problem."""
    try:
        return check(subject, checked)
    except PipelineError as error:
        return SetupFinding(subject, False, str(error))


def _model(subject: str, target: Target) -> SetupFinding:
    if names := missing_variables(target):
        return SetupFinding(subject, False, f"{', '.join(names)} is not set; export it")
    if (reason := target.refused_as) is not None:
        return SetupFinding(subject, False, reason)
    if target.is_embedded:
        return SetupFinding(subject, True, f"embedded, weights {weights_hash()}")
    reached = _address(subject, target.api_base) if target.api_base else SetupFinding(subject, True, "")
    detail = "; ".join(filter(None, [reached.detail, key_state(target) if reached.is_ok else ""]))
    return replace(reached, detail=detail)


def _address(subject: str, address: str) -> SetupFinding:
    """Return whether a server listens at an address; only its host is shown, because the rest may be a secret.

    Raises:
        UsageError: a variable is not set, or the port is invalid.
    """
    parts = urlsplit(filled_in(address))
    if not parts.hostname:
        return SetupFinding(subject, False, "the address has no host; write it with https://")
    try:
        return _reached(subject, parts.hostname, parts.port or (443 if parts.scheme == "https" else 80))
    except ValueError as error:
        raise UsageError(f"the address has no valid port ({error}); correct it in the configuration") from error


def _reached(subject: str, host: str, port: int) -> SetupFinding:
    try:
        with socket.create_connection((host, port), timeout=_CONNECT_S):
            return SetupFinding(subject, True, f"{host}:{port} responds")
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        advice = "start the server or correct the address"
        return SetupFinding(subject, False, f"{host}:{port} cannot be reached ({why}); {advice}")


def check_nights(job: Job) -> Iterator[SetupFinding]:
    """Yield the findings on nights: the start of the next one, and whether alerts can be sent."""
    nightly, alerts = job.settings.nightly, job.settings.alerts
    begins = next(CronSim(nightly.cron, datetime.now(ZoneInfo(nightly.timezone))))
    stops = f", stops at {nightly.stop_at}" if nightly.stop_at else ""
    yield SetupFinding("nights", True, f"next {begins:%Y-%m-%d %H:%M} {nightly.timezone}{stops} with `prbench serve`")
    for number, receiver in enumerate(alerts.to, start=1):
        yield _finding(_receiver, f"alerts to {receiver.kind} {number}", receiver)
    if alerts.ping is not None:
        yield _finding(_address, "ping after nights", alerts.ping)


def _receiver(subject: str, receiver: Receiver) -> SetupFinding:
    mail = receiver.email
    for value in (receiver.apprise,) if mail is None else (mail.user, mail.password):
        filled_in(value or "")
    if mail is not None:
        return _reached(subject, mail.host, mail.port)
    if address := receiver.webhook or receiver.slack:
        return _address(subject, address)
    return SetupFinding(subject, None, f"{receiver.apprise}, an Apprise URL")


def check_senders(job: Job) -> Iterator[SetupFinding]:
    """Yield a finding for each Ray node: whether it can make the calls of a job."""
    calls = job.settings.calls
    if calls.where != "ray":
        return
    n_senders = None if calls.senders == "auto" else calls.senders
    try:
        nodes = asyncio.run(inspect_nodes(calls.address, n_senders, [callee.target for callee in callees(job)]))
    except PipelineError as error:
        yield SetupFinding("Ray", False, str(error))
        return
    if not nodes:
        yield SetupFinding("Ray", False, f"{calls.address}: no node has a core to offer")
    for node, problem in nodes:
        yield SetupFinding(f"Ray node {node.name}", not problem, problem or counted(node.n_cores, "core"))


_PACKAGES = ("prefect", "duckdb", "polars", "pyarrow", "datasets", "litellm", "great-expectations")
_LOW_DISK_BYTES = 2**30


def check_warehouse(job: Job) -> Iterator[SetupFinding]:
    """Yield the findings on the warehouse: whether it is writable and undamaged."""
    warehouse = Warehouse(job.warehouse)
    folder, subject = f"{warehouse.root} ({job.warehouse_source})", f"warehouse {warehouse.root}"
    existing = next(folder for folder in (warehouse.root, *warehouse.root.parents) if folder.exists())
    can_write = os.access(existing, os.W_OK)
    obstacle = f": {existing} cannot be written to; choose another --warehouse"
    yield SetupFinding("data folder", can_write, folder if can_write else folder + obstacle)
    if not can_write and existing != warehouse.root:
        return
    free = shutil.disk_usage(existing).free
    yield SetupFinding("disk", free >= _LOW_DISK_BYTES, f"{free / 2**30:.0f} GiB free")
    if host := warehouse.elsewhere():
        yield SetupFinding("another machine", None, f"{host} writes this warehouse, or did so until it failed")
    try:
        refuse_other_version(warehouse.root)
    except WarehouseError as error:
        yield SetupFinding(subject, False, str(error))
        return
    # This reads every part and the whole database.
    damage, losses = warehouse.damage(), lines_on(warehouse.losses())
    yield from (SetupFinding("stored data", False, line, is_damage=True) for line in (*damage, *losses))
    if damage:
        mended = "`prbench aggregate` sets damaged files aside and restores what it can, without a model call"
        yield SetupFinding("stored data", None, mended)
    if warehouse.database.exists():
        yield from _database(warehouse, subject, is_damaged=bool(damage or losses))
    elif not damage and not losses:
        yield SetupFinding(subject, True, "empty; `prbench run` fills it")


def _database(warehouse: Warehouse, subject: str, *, is_damaged: bool) -> Iterator[SetupFinding]:
    """Yield a finding with the content of the published database; none if reported damage makes it unreadable."""
    try:
        with warehouse.reader() as reader:
            counts = ", ".join(f"{reader.value(f'select count(*) from {t}')} {t}" for t in ("tasks", "verdicts"))
    except (WarehouseError, duckdb.Error) as error:
        if not is_damaged or isinstance(error, WarehouseOutdated):
            yield SetupFinding(subject, False, " ".join(str(error).split()))
        return
    yield SetupFinding(subject, True, counts)
