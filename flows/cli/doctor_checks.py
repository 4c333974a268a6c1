"""All checks of `prbench doctor`. No key is ever shown."""

import asyncio
import importlib.metadata
import os
import shutil
import socket
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import partial
from urllib.parse import urlsplit

import duckdb

from flows.server import check_server
from tasks.config.job import Job
from tasks.config.settings import Alerts, Receiver
from tasks.console import notice
from tasks.dataset.source import check_hub
from tasks.llm.calls.gateway import probe
from tasks.llm.embedded import weights_hash
from tasks.llm.ledger.opening import damage_in
from tasks.llm.providers import key_state, missing_variables
from tasks.llm.redaction import filled_in
from tasks.llm.request import Target
from tasks.llm.senders.pool import inspect as inspect_nodes
from tasks.llm.variables import (
    proxies,
    refuse_unreadable_certificates,
    refuse_unusable_network,
    refuse_unusable_proxy,
)
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.text.numbers import counted
from tasks.run.run_context import LEDGER, callees, retirements
from warehouse import Warehouse, WarehouseError, existing_folder, lines_on, refuse_other_version


@dataclass(frozen=True)
class SetupFinding:
    """The result of one check.

    `is_ok` is None if unknown. `is_damage` is true if stored data is damaged, `is_warning` if
    something works today and will not for long.
    """

    subject: str
    is_ok: bool | None
    detail: str
    is_damage: bool = False
    is_warning: bool = False

    @property
    def state(self) -> str:
        """The result in a word."""
        if self.is_warning:
            return "warning"
        if self.is_ok is None:
            return "unknown"
        return "ok" if self.is_ok else "PROBLEM"


def examine(job: Job, *, may_call: bool = False) -> list[SetupFinding]:
    """Check the configuration, data, models, Prefect's server, the warehouse and the versions.

    With `may_call`, each model is called once, with one token.
    """
    settings = job.settings
    n_models = counted(len(settings.models), "model")
    n_judges = counted(len(settings.judges), "judge")
    configuration = f"{settings.benchmark}, {n_models}, {n_judges}, trials {settings.trials}"
    versions = [f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES]
    warehouse_findings = list(_warehouse(job))  # before calls, which repair a damaged ledger
    return [
        SetupFinding("configuration", True, configuration),
        _finding("data set", partial(_data_set, job)),
        *_network(),
        *_requests(job, may_call=may_call),
        *_alerts(settings.alerts),
        *warehouse_findings,
        SetupFinding("versions", True, ", ".join(versions)),
    ]


def _finding(subject: str, check: Callable[[], str]) -> SetupFinding:
    """Return the finding of a check, which returns a detail, or raises an error for a problem."""
    try:
        return SetupFinding(subject, True, check())
    except PipelineError as error:
        # The subject "data set" says that already.
        return SetupFinding(subject, False, str(error).removeprefix("dataset.source: "))


def _data_set(job: Job) -> str:
    data = job.data
    source = job.settings.dataset.source
    name = f"{data.name} ({source})" if source in {"hub", "sample"} else data.name
    description = f"{name}, revision {data.revision[:12]}, splits {', '.join(data.splits)}"
    if source == "hub":
        description += f"; {check_hub(job)}"
    return description


def _network() -> Iterator[SetupFinding]:
    """Yield a problem with the environment's certificates, and a finding for each proxy."""
    try:
        refuse_unreadable_certificates()
    except UsageError as error:
        yield SetupFinding("certificates", False, str(error))
    for name, address in proxies().items():
        yield _finding(f"proxy {name}", partial(_proxy, name, address))


def _proxy(name: str, address: str) -> str:
    refuse_unusable_proxy(name, address)
    return f"{_connect(address, name)}; requests to this machine do not use it"


def _requests(job: Job, *, may_call: bool) -> Iterator[SetupFinding]:
    """Yield the findings on models, on what calls them, and on Prefect's server.

    Where the environment prevents every request, they are unknown: even an import of their
    libraries fails.
    """
    try:
        refuse_unusable_network()
    except UsageError:
        for subject in ("models", "Prefect server"):
            yield SetupFinding(subject, None, "not checked before the variable above is correct")
        return
    yield from _models(job, may_call=may_call)
    yield from _retirements(job, datetime.now(UTC).date())
    yield from _senders(job)
    yield SetupFinding("Prefect server", *check_server())


def _models(job: Job, *, may_call: bool) -> Iterator[SetupFinding]:
    """Yield the findings on models: keys, servers, and with `may_call` one call to each."""
    # Calls from a cluster use the keys on the cluster, which cannot be tested from here.
    can_call = may_call and job.settings.calls.are_local
    findings: dict[str, SetupFinding] = {}
    targets = {}
    for callee in callees(job):
        target = callee.target
        route = str((target.name, target.api_base, target.headers))
        if route in findings:
            continue
        subject = f"{callee.kind.replace('_', ' ')} {target.name}"
        finding = _finding(subject, partial(_model, target))
        findings[route] = finding
        if can_call and finding.is_ok and not target.is_embedded:
            targets[route] = target
    results = _probe(job, list(targets.values()))
    for route, (is_ok, detail) in zip(targets, results, strict=True):
        finding = findings[route]
        findings[route] = replace(finding, is_ok=is_ok, detail=f"{finding.detail}; {detail}")
    yield from findings.values()


def _retirements(job: Job, today: date) -> Iterator[SetupFinding]:
    """Yield a finding for each configured model that was switched off, or will be soon."""
    for end in retirements(job, today):
        has_ended = end.retires_on <= today
        yield SetupFinding(str(end.callee), not has_ended, end.line, is_warning=not has_ended)


def _probe(job: Job, targets: Sequence[Target]) -> list[tuple[bool | None, str]]:
    """Call each of these models once; return for each whether it works, and a sentence about it."""
    if not targets:
        return []
    notice(
        f"calling {counted(len(targets), 'model')}, 1 call of 1 token each (--no-call leaves them"
        " out)"
    )
    ledger = job.warehouse / LEDGER
    # Two machines must not open the same ledger.
    may_open = ledger.is_dir() and not Warehouse(job.warehouse).other_host()
    return asyncio.run(probe(targets, ledger if may_open else None, job.run_id))


def _model(target: Target) -> str:
    names = missing_variables(target)
    if names:
        raise UsageError(f"{', '.join(names)} is not set; export it")
    reason = target.why_refused
    if reason is not None:
        raise UsageError(reason)
    if target.is_embedded:
        return f"embedded, weights {weights_hash()}"
    return f"{_called_address(target)}; {key_state(target)}"


def _called_address(target: Target) -> str:
    """Return the address that is called and its source; connect to it, if it is not the default.

    Raises:
        UsageError: the server cannot be reached.
    """
    if target.api_base is None:
        return "at its provider's default address"
    source = target.address_variable or "the configuration"
    return (
        f"at {target.api_base} (from {source}),"
        f" {_connect(target.api_base, target.address_variable)}"
    )


def _connect(address: str, variable: str | None = None) -> str:
    """Connect to the server of an address, and return a sentence that names only its host and port:
    the rest may be a secret.

    `variable` is the environment variable that the address comes from, if any.

    Raises:
        UsageError: a variable is not set, the address is invalid, or nothing responds.
    """
    parts = urlsplit(filled_in(address))
    host = parts.hostname
    if not host:
        raise UsageError("the address has no host; write it with https://")
    server = f"[{host}]" if ":" in host else host
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        server = f"{server}:{port}"
        with socket.create_connection((host, port), timeout=3.0):
            return f"{server} responds"
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(
            f"{server} cannot be reached ({reason}); start the server or correct"
            f" {variable or 'the address'}"
        ) from error


def _alerts(alerts: Alerts) -> Iterator[SetupFinding]:
    """Yield the findings on alerts: whether their receivers can be reached."""
    for number, receiver in enumerate(alerts.to, start=1):
        yield _finding(f"alerts to {receiver.kind} {number}", partial(_receiver, receiver))
    if alerts.ping is not None:
        yield _finding("ping after nights", partial(_connect, alerts.ping))


def _receiver(receiver: Receiver) -> str:
    mail = receiver.email
    if mail:
        filled_in(f"{mail.user}{mail.password}")  # raises if a variable is not set
        return _connect(f"smtp://{mail.host}:{mail.port}")
    address = receiver.webhook or receiver.slack
    if address:
        return _connect(address)
    filled_in(receiver.apprise or "")  # raises if a variable is not set
    return f"{receiver.apprise}, an Apprise URL, not tried"


def _senders(job: Job) -> Iterator[SetupFinding]:
    """Yield a finding for each Ray node: whether it can make the calls of a job."""
    calls = job.settings.calls
    if calls.where != "ray":
        return
    n_senders = None if calls.senders == "auto" else calls.senders
    targets = [callee.target for callee in callees(job)]
    try:
        nodes = asyncio.run(inspect_nodes(calls.address, n_senders, targets))
    except PipelineError as error:
        yield SetupFinding("Ray", False, str(error))
        return
    if not nodes:
        yield SetupFinding("Ray", False, f"{calls.address}: no node has a core to offer")
    for node, problem in nodes:
        yield SetupFinding(
            f"Ray node {node.name}", not problem, problem or counted(node.n_cores, "core")
        )


_PACKAGES = ("prefect", "duckdb", "polars", "pyarrow", "datasets", "litellm", "great-expectations")


def _warehouse(job: Job) -> Iterator[SetupFinding]:
    """Yield the findings on the warehouse: access, disk, another writer, damage, and contents."""
    warehouse = Warehouse(job.warehouse)
    detail = f"{warehouse.root} ({job.warehouse_source})"
    subject = f"warehouse {warehouse.root}"
    existing = existing_folder(warehouse.root)
    can_write = os.access(existing, os.W_OK)
    if not can_write:
        detail += f": {existing} cannot be written to; choose another --warehouse"
    yield SetupFinding("data folder", can_write, detail)
    free = shutil.disk_usage(existing).free
    yield SetupFinding("disk", free >= 2**30, f"{free / 2**30:.0f} GiB free")
    host = warehouse.other_host()
    if host:
        yield SetupFinding(
            "another machine", None, f"{host} writes this warehouse, or did so until it failed"
        )
    damage: list[str] = []
    try:
        refuse_other_version(warehouse.root)
        # This reads every part and the whole database.
        damage = [*warehouse.damage(), *lines_on(warehouse.losses())]
        ledger_damage = None if host else damage_in(job.warehouse / LEDGER)
        if ledger_damage is not None:
            damage.append(ledger_damage)
        finding = SetupFinding(subject, True, _contents(warehouse))
    except (WarehouseError, duckdb.Error) as error:
        message = " ".join(str(error).split())
        # Without damage it is another problem, such as a warehouse of another version.
        finding = SetupFinding(subject, False, message, is_damage=bool(damage))
    for line in damage:
        yield SetupFinding("stored data", False, line, is_damage=True)
    yield finding


def _contents(warehouse: Warehouse) -> str:
    if not warehouse.database.exists():
        return "nothing is published; `prbench run` fills it"
    with warehouse.reader() as reader:
        n_tasks = reader.value("select count(*) from tasks")
        n_verdicts = reader.value("select count(*) from verdicts")
    return f"{n_tasks} tasks, {n_verdicts} verdicts"
