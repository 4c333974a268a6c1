"""The configuration: `prbench.yaml`, or the embedded default, narrowed by what the command line asks for."""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import ValidationError

from flows.run.arguments import Arguments
from flows.run.nightly_schedule import stop_time
from flows.run.warehouse_folder import warehouse_folder
from tasks.benchmarks import benchmark_names, load_benchmark
from tasks.benchmarks.base import ANY_FIELD
from tasks.config import Endpoint, Job, Report, Settings, expectations_of, policies_of
from tasks.dataset import with_revision
from tasks.llm import MODEL as EMBEDDED_MODEL
from tasks.rules.errors import UsageError
from tasks.rules.identity import BASE_VINTAGE
from tasks.rules.json_text import refuse_deep
from tasks.rules.paths import from_home
from tasks.run import template_of

AnyEndpoint = TypeVar("AnyEndpoint", bound=Endpoint)

_PYDANTIC_WORDS = ("constrained-", "dict[", "tuple[", "literal[")
"""How pydantic names the branches of a union, which no user wrote."""
_OWN = "benchmarks"
"""The key of settings that benchmarks have of their own."""
_MOST_SETTINGS = 100_000
DEFAULT_FILE = Path("prbench.yaml")

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


def load_job(arguments: Arguments) -> Job:
    """The job of one run.

    Raises:
        UsageError: the configuration is missing, broken or impossible, or names what it does not have.
    """
    file = config_file(arguments.config)
    document, where = _of_benchmark(*_document(file), arguments.benchmark)
    if arguments.splits:
        document = {**document, "dataset": {**(document.get("dataset") or {}), "splits": list(arguments.splits)}}
    if arguments.trials is not None:
        document = {**document, "trials": arguments.trials}
    caps = {
        name: getattr(arguments, name) for name in ("max_usd", "max_tokens") if getattr(arguments, name) is not None
    }
    if caps:
        document = {**document, "limits": {**(document.get("limits") or {}), **caps}}
    settings = _settings(document, where)
    models = _chosen(settings.models, arguments.models)
    judges = _chosen(settings.judges, arguments.judges)
    warehouse, source = warehouse_folder(arguments.warehouse, settings.warehouse, file)
    now = datetime.now(UTC)
    job = Job(
        settings=settings.model_copy(
            update={"models": models, "judges": judges, "report": _report_beside(file, settings.report)}
        ),
        warehouse=warehouse,
        warehouse_source=source,
        run_id=f"{now:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}",
        limit=arguments.limit,
        vintage=arguments.vintage or BASE_VINTAGE,
        named_models=arguments.models or None,
        named_judges=arguments.judges or None,
        named_tasks=arguments.tasks or None,
        named_trials=arguments.trial_numbers or None,
        night=arguments.night,
        stop_at=stop_time(arguments.stop_at, now.astimezone()) if arguments.stop_at else None,
        is_quiet=arguments.is_quiet,
    )
    if job.night == BASE_VINTAGE:
        raise UsageError(f"--night {BASE_VINTAGE}: is not a night but the base sampling; name a day")
    _refuse_impossible(job, where)
    return with_revision(job)


def _report_beside(file: Path | None, report: Report) -> Report:
    """The report's settings with an absolute folder: one that is configured is relative to the configuration file."""
    if file is None or report.folder is None:
        return report
    return report.model_copy(update={"folder": (file.parent / from_home(report.folder, "report.folder")).absolute()})


def config_file(named: Path | None) -> Path | None:
    """The configuration file: the one that is named, else `prbench.yaml` in the current folder if there is one."""
    if named is not None:
        return from_home(named, "--config")
    return DEFAULT_FILE if DEFAULT_FILE.exists() else None


def _refuse_impossible(job: Job, where: str) -> None:
    """Refuse what only the benchmark can tell to be wrong: unknown checks and fields, templates that are not there."""
    try:
        benchmark = load_benchmark(job.settings.benchmark)
        policies_of(job, expectations_of(benchmark))
        for judge in job.settings.judges:
            template_of(judge, benchmark)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error
    share = job.settings.hard_subset.share
    fields = [field for field in benchmark.vocabularies if field != ANY_FIELD]
    unknown = sorted(set(share) - set(fields)) if isinstance(share, dict) and fields else []
    if unknown:
        raise UsageError(
            f"{where}: hard_subset.share.{unknown[0]}: {benchmark.name} has the fields {', '.join(fields)}"
        )


def _of_benchmark(document: dict[str, Any], where: str, wanted: str | None) -> tuple[dict[str, Any], str]:
    """The document with what a benchmark has of its own in the place of what all have, and without the others' own."""
    common = {key: value for key, value in document.items() if key != _OWN}
    own = _own_settings(document, common, where)
    configured = str(common.get("benchmark", Settings.model_fields["benchmark"].default))
    dataset = common.get("dataset")
    # Every benchmark has a sample, but a data set is one benchmark's.
    is_shared = not isinstance(dataset, dict) or dataset.get("source") == "sample"
    if wanted not in {None, configured} and not is_shared and "dataset" not in own.get(str(wanted), {}):
        raise UsageError(
            f"--benchmark {wanted}: the data set of {where} is that of {configured}; name one of {wanted} there under "
            f"{_OWN}.{wanted}.dataset, or in a configuration of its own"
        )
    chosen = wanted or configured
    if wanted is not None:
        load_benchmark(wanted)  # a name that is mistyped is the mistake, and not what is missing of it
    named = {} if wanted is None and chosen not in own else {"benchmark": chosen}
    return {**common, **own.get(chosen, {}), **named}, where


def _own_settings(document: dict[str, Any], common: dict[str, Any], where: str) -> dict[str, dict[str, Any]]:
    """What benchmarks have of their own; looked at for all of them, so that a mistake is not found at night."""
    own = document.get(_OWN) or {}
    if not isinstance(own, dict) or not all(isinstance(settings, dict) for settings in own.values()):
        raise UsageError(f"{where}: {_OWN}: must map each benchmark to its settings; see prbench.example.yaml")
    known = benchmark_names() if own else []
    for name, settings in own.items():
        if name not in known:
            raise UsageError(f"{where}: {_OWN}.{name}: there is no such benchmark; known: {', '.join(known)}")
        if "benchmark" in settings:
            raise UsageError(f"{where}: {_OWN}.{name}.benchmark: there is no such key")
        _settings({**common, **settings}, f"{where}: {_OWN}.{name}")
    return own


def _document(path: Path | None) -> tuple[dict[str, Any], str]:
    if path is None:
        return EMBEDDED_DEFAULT, "the embedded default"
    try:
        document = yaml.load(path.read_text(encoding="utf-8"), Loader=_UniqueKeys)
        # References may make a short text large, or lead in a circle.
        refuse_deep(document, _MOST_SETTINGS)
    except FileNotFoundError as error:
        raise UsageError(f"{path}: no such file; copy prbench.example.yaml, or leave --config out") from error
    except RecursionError as error:
        raise UsageError(
            f"{path}: is nested too deeply, or too large, to be settings; see prbench.example.yaml"
        ) from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UsageError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(document, dict):
        raise UsageError(f"{path}: holds no settings; see prbench.example.yaml")
    return document, str(path)


class _UniqueKeys(yaml.SafeLoader):
    """YAML in which a key that appears twice is an error, and not the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        twice = [key for key in keys if keys.count(key) > 1]
        if twice:
            raise yaml.YAMLError(f"key {twice[0]!r} appears twice{node.start_mark}")
        return super().construct_mapping(node, deep)


def _settings(document: dict[str, Any], where: str) -> Settings:
    try:
        return Settings.model_validate(document)
    except ValidationError as error:
        problems = error.errors(include_url=False, include_input=False)
        first = problems[0]
        key = _path(first["loc"])
        reason = {"extra_forbidden": "there is no such key", "missing": "is missing"}.get(first["type"], first["msg"])
        reason = reason.replace("valid tuple", "list").replace("valid dictionary", "mapping")
        more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
        raise UsageError(f"{where}: {key + ': ' if key else ''}{reason.removeprefix('Value error, ')}{more}") from error


def _path(location: Sequence[int | str]) -> str:
    """`models[0].timeout_s` from its parts."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part != "policies" and not part.startswith(_PYDANTIC_WORDS):
            path += f".{part}" if path else part
    return path


def _chosen(endpoints: tuple[AnyEndpoint, ...], labels: tuple[str, ...]) -> tuple[AnyEndpoint, ...]:
    """The endpoints of the labels asked for; a label that is not configured may be one of imported rows."""
    return tuple(endpoint for endpoint in endpoints if not labels or endpoint.label in labels)
