"""The configuration: `prbench.yaml`, or the embedded default, narrowed by what the command line asks for."""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from flows.asked import Asked
from tasks.llm.embedded import MODEL as EMBEDDED_MODEL
from tasks.rules.errors import UsageError
from tasks.rules.identity import BASE_VINTAGE
from tasks.settings import Endpoint, Job, Settings

AnyEndpoint = TypeVar("AnyEndpoint", bound=Endpoint)

DEFAULT_FILE = Path("prbench.yaml")
DEFAULT_WAREHOUSE = Path(__file__).parent.parent / "warehouse" / "data"

EMBEDDED_DEFAULT: dict[str, Any] = {
    "benchmark": "prbench",
    "dataset": {"source": "sample"},
    "models": [
        {
            "name": EMBEDDED_MODEL,
            "label": "smollm2-135m",
            # Token 2 ends an answer; the bias towards it and the penalty keep a very small model from rambling on.
            "params": {
                "temperature": 0.2, "seed": 7, "max_tokens": 700, "logit_bias": {"2": 5},
                "extra_body": {"repeat_penalty": 1.1},
            },
        }
    ],
    "judges": [
        {
            "name": EMBEDDED_MODEL,
            "label": "smollm2-135m-judge",
            "explanation_chars": 40,
            "params": {"temperature": 0.0, "seed": 7, "max_tokens": 300},
        }
    ],
    "trials": 1,
    # The embedded server answers one call at a time; more at once would only wait there.
    "limits": {"concurrency": 1},
}  # fmt: skip


def load_job(asked: Asked) -> Job:
    """The job of one run.

    Raises:
        UsageError: the configuration is missing, broken or impossible, or names what it does not have.
    """
    document, where = _document(asked.config)
    if asked.benchmark is not None:
        document = {**document, "benchmark": asked.benchmark}
    if asked.splits:
        document = {**document, "dataset": {**(document.get("dataset") or {}), "splits": list(asked.splits)}}
    if asked.trials is not None:
        document = {**document, "trials": asked.trials}
    settings = _settings(document, where)
    models = _chosen("model", settings.models, asked.models, may_be_unknown=True)
    judges = _chosen("judge", settings.judges, asked.judges, may_be_unknown=False)
    now = datetime.now(UTC)
    return Job(
        settings=settings.model_copy(update={"models": models, "judges": judges}),
        warehouse=(asked.warehouse or DEFAULT_WAREHOUSE).absolute(),
        run_id=f"{now:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}",
        limit=asked.limit,
        vintage=asked.vintage or BASE_VINTAGE,
        named_models=asked.models or None,
        is_quiet=asked.is_quiet,
    )


def _document(config: Path | None) -> tuple[dict[str, Any], str]:
    path = config or DEFAULT_FILE
    if config is None and not path.exists():
        return EMBEDDED_DEFAULT, "the embedded default"
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise UsageError(f"{path}: no such file; copy prbench.example.yaml, or leave --config out") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"{path}: not YAML that can be read: {' '.join(str(error).split())}") from error
    if not isinstance(document, dict):
        raise UsageError(f"{path}: holds no settings; see prbench.example.yaml")
    return document, str(path)


def _settings(document: dict[str, Any], where: str) -> Settings:
    try:
        return Settings.model_validate(document)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        first = problems[0]
        key = _path(first["loc"])
        reason = {"extra_forbidden": "there is no such key", "missing": "is missing"}.get(first["type"], first["msg"])
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise UsageError(f"{where}: {key + ': ' if key else ''}{reason.removeprefix('Value error, ')}{more}") from error


def _path(location: Sequence[int | str]) -> str:
    """`models[0].timeout_s` from its parts."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part != "policies":
            path += f".{part}" if path else part
    return path


def _chosen(
    kind: str, endpoints: tuple[AnyEndpoint, ...], labels: tuple[str, ...], *, may_be_unknown: bool
) -> tuple[AnyEndpoint, ...]:
    """The endpoints of the labels asked for. A model that is not configured may still have imported responses."""
    if not labels:
        return endpoints
    known = {endpoint.label: endpoint for endpoint in endpoints}
    unknown = [label for label in labels if label not in known]
    if unknown and not may_be_unknown:
        raise UsageError(f"--{kind} {unknown[0]}: not in the configuration; it has {', '.join(known) or 'none'}")
    return tuple(known[label] for label in labels if label in known)
