"""`prbench doctor`: is everything in place? No key is ever printed, and nothing heavy is imported."""

import importlib.metadata
import os
import shutil
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import duckdb

from tasks.benchmarks import load_benchmark
from tasks.check import rules_of, with_policies
from tasks.endpoints import Endpoint
from tasks.llm import embedded
from tasks.llm.secrets import filled_in
from tasks.prompts import load_template
from tasks.rules.errors import PipelineError, UsageError
from tasks.settings import Job
from warehouse import Warehouse, WarehouseError
from warehouse.contracts import TABLES

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
_CONNECT_S = 3.0
_LOW_DISK_BYTES = 2**30


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; `is_ok` is None where doctor cannot tell."""

    subject: str
    is_ok: bool | None
    detail: str


def examine(job: Job) -> list[Finding]:
    """Look at the configuration, the models, the warehouse and the installed versions."""
    return [*_configuration(job), *_models(job), *_warehouse(job), *_versions()]


def _configuration(job: Job) -> Iterator[Finding]:
    settings = job.settings
    benchmark = load_benchmark(settings.benchmark)
    numbers = f"{len(settings.models)} models, {len(settings.judges)} judges, trials {settings.trials}"
    yield Finding("configuration", True, f"{settings.benchmark}, {numbers}")
    try:
        with_policies(job, rules_of(benchmark))
        for judge in settings.judges:
            load_template(judge.template, benchmark.template)
    except PipelineError as error:
        yield Finding("configuration", False, str(error))


def _models(job: Job) -> Iterator[Finding]:
    seen: set[tuple[str, str | None]] = set()
    for endpoint in (*job.settings.models, *job.settings.judges):
        if (endpoint.name, endpoint.api_base) not in seen:
            seen.add((endpoint.name, endpoint.api_base))
            yield _model(endpoint)


def _model(endpoint: Endpoint) -> Finding:
    subject = f"model {endpoint.name}"
    if embedded.is_embedded(endpoint.name):
        try:
            return Finding(subject, True, f"embedded, weights {embedded.weights_hash()}")
        except PipelineError as error:
            return Finding(subject, False, str(error))
    if endpoint.api_base:
        return _reachable(subject, endpoint)
    variable = _KEYS.get(endpoint.name.partition("/")[0])
    if variable is None:
        return Finding(subject, None, "its provider is not known here; LiteLLM looks for the provider's own variable")
    if os.environ.get(variable):
        return Finding(subject, True, f"{variable} is set")
    return Finding(subject, False, f"{variable} is not set; export it")


def _reachable(subject: str, endpoint: Endpoint) -> Finding:
    try:
        parts = urlsplit(filled_in(endpoint.api_base or ""))
        for value in endpoint.headers.values():
            filled_in(value)
    except UsageError as error:
        return Finding(subject, False, str(error))
    host, port = parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    try:
        with socket.create_connection((host, port), timeout=_CONNECT_S):
            return Finding(subject, True, f"{host}:{port} answers")
    except OSError as error:
        return Finding(subject, False, f"{host}:{port} cannot be reached ({error.strerror or error}); start it")


def _warehouse(job: Job) -> Iterator[Finding]:
    warehouse = Warehouse(job.warehouse)
    subject = f"warehouse {warehouse.root}"
    existing = next(folder for folder in (warehouse.root, *warehouse.root.parents) if folder.exists())
    if not os.access(existing, os.W_OK):
        yield Finding(subject, False, f"{existing} cannot be written to; choose another --warehouse")
    free = shutil.disk_usage(existing).free
    yield Finding("disk", free >= _LOW_DISK_BYTES, f"{free / 2**30:.0f} GiB free")
    if not warehouse.database.exists():
        yield Finding(subject, True, "empty; `prbench run` fills it")
        return
    try:
        with warehouse.reader() as reader:
            published = reader.value("select count(*) from published_parts")
            counts = ", ".join(f"{reader.value(f'select count(*) from {t}')} {t}" for t in ("tasks", "verdicts"))
    except (WarehouseError, duckdb.Error) as error:
        yield Finding(subject, False, f"{' '.join(str(error).split())}; remove the file, the next run builds it anew")
        return
    waiting = sum(len(warehouse.store.parts(table)) for table in TABLES) - published
    yield Finding(subject, True, counts + (f", {waiting} parts to be published by the next run" if waiting else ""))


def _versions() -> Iterator[Finding]:
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in _PACKAGES)
    yield Finding("versions", True, versions)
    for name, bound in _CONSTRAINED.items():
        version = importlib.metadata.version(name)
        major, minor = (int(part) for part in version.split(".")[:2])
        if (major, minor) >= bound:
            yield Finding("versions", False, f"{name} {version} breaks Prefect; install {name}<{bound[0]}.{bound[1]}")
