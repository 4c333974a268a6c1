"""How runs are named and found in Prefect's UI: names, tags and keys carry the warehouse and the benchmark."""

import hashlib
import re
from pathlib import Path

from tasks.config.job import Job
from tasks.rules.identity import BASE_VINTAGE

_NAMED = 3
_MOST_TAGS = 12
_DEFAULT_FOLDER = ("warehouse", "data")


def run_name() -> str:
    """The name of the flow run that begins: the flow, where, the night or vintage, the models."""
    from prefect.runtime import flow_run

    return f"{flow_run.flow_name} {about(flow_run.parameters['job'])}".strip()


def about(job: Job) -> str:
    """A job in a few words."""
    labels = list(job.named_models or [model.label for model in job.settings.models])
    more = f" +{len(labels) - _NAMED}" if len(labels) > _NAMED else ""
    when = job.night or (job.vintage if job.vintage != BASE_VINTAGE else "")
    parts = (warehouse_name(job.warehouse), job.settings.benchmark, when, ", ".join(labels[:_NAMED]) + more)
    return " ".join(part for part in parts if part)


def tags_of(job: Job) -> list[str]:
    """What the runs of a job are found by: warehouse, benchmark, night or vintage, splits, models."""
    where, when = warehouse_name(job.warehouse), job.night or job.vintage
    labels = (model.label for model in job.settings.models)
    found = [where, job.settings.benchmark, when, *job.settings.dataset.splits, *labels]
    return list(dict.fromkeys(found))[:_MOST_TAGS]


def warehouse_name(folder: Path) -> str:
    """The name of a warehouse: of its folder, or of the one that the default folder `warehouse/data` is in."""
    parts = folder.parts
    if parts[-2:] == _DEFAULT_FOLDER:
        parts = parts[:-2]
    return parts[-1].strip("/") or "root"


def artifact_key(job: Job, what: str) -> str:
    """The key of an artifact, under which Prefect keeps all that was ever shown of it: one for each warehouse."""
    readable = re.sub(r"[^a-z0-9]+", "-", f"{warehouse_name(job.warehouse)}-{job.settings.benchmark}-{what}".lower())
    which = hashlib.sha256(str(job.warehouse).encode()).hexdigest()[:6]
    return f"{readable.strip('-')}-{which}"
