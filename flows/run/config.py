"""The job of a run: the configuration, narrowed by what the command line asks for."""

import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

from flows.run.arguments import Arguments
from flows.run.document import config_file, of_benchmark, read_document, without_own
from flows.run.nightly_schedule import stop_time
from flows.run.validation import ConfigurationError, impossible, sound_settings
from flows.run.warehouse_folder import warehouse_folder
from tasks.config.job import Job
from tasks.config.models import Endpoint
from tasks.config.operations import Report
from tasks.config.settings import Settings
from tasks.dataset.source import with_revision
from tasks.rules.errors import UsageError, from_home
from tasks.rules.identity import BASE_VINTAGE

AnyEndpoint = TypeVar("AnyEndpoint", bound=Endpoint)


def load_job(arguments: Arguments) -> Job:
    """The job of one run.

    Raises:
        UsageError: the configuration is missing, or names what it does not have.
        ConfigurationError: it is broken or impossible; all that can be known of it is said at once.
    """
    if arguments.night is not None and not _is_night(arguments.night):
        raise UsageError(f"--night {arguments.night}: is not a date; write 2026-11-22")
    file = config_file(arguments.config)
    document, where = read_document(file)
    problems: list[str] = []
    try:
        document = of_benchmark(document, where, arguments.benchmark)
    except ConfigurationError as error:
        document, problems = without_own(document), [*error.problems]
    _refuse_other_split(document, arguments.splits)
    settings, found = sound_settings(_narrowed(document, arguments))
    problems += found
    job = None
    try:
        job = _job(settings, arguments, file) if settings else None
    except UsageError as error:
        if not problems:
            raise
        problems.append(str(error))
    problems += impossible(job) if job else []
    if job is None or problems:
        raise ConfigurationError(where, list(dict.fromkeys(problems)), job)
    return job


def _job(settings: Settings, arguments: Arguments, file: Path | None) -> Job:
    """The job of settings, narrowed by arguments."""
    compared = settings.models if settings.stopping else ()
    settings = _of_command(settings, arguments, file)
    warehouse, source = warehouse_folder(arguments.warehouse, settings.warehouse, file)
    now = datetime.now(UTC)
    job = Job(
        settings=settings,
        warehouse=warehouse,
        warehouse_source=source,
        run_id=f"{now:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}",
        limit=arguments.limit,
        vintage=arguments.vintage or BASE_VINTAGE,
        named_models=arguments.models or None,
        named_judges=arguments.judges or None,
        named_tasks=arguments.tasks or None,
        named_trials=arguments.trial_numbers or None,
        vocabularies=arguments.vocabularies,
        compared_models=compared,
        night=arguments.night,
        stop_at=stop_time(arguments.stop_at, now.astimezone()) if arguments.stop_at else None,
        is_quiet=arguments.is_quiet,
    )
    return with_revision(job)


def _is_night(text: str) -> bool:
    """Whether a text is the label of a night: a day, with a time where the schedule names several on a day."""
    try:
        return f"{datetime.fromisoformat(text):%Y-%m-%dT%H:%M}"[: len(text)] == text and len(text) in {10, 16}
    except ValueError:
        return False


def _narrowed(document: dict[str, Any], arguments: Arguments) -> dict[str, Any]:
    """The document with the values of arguments in the place of its own; they are validated with the rest."""
    caps = {"max_usd": arguments.max_usd, "max_tokens": arguments.max_tokens}
    given: dict[str, dict[str, Any]] = {
        "dataset": {"splits": list(arguments.splits)} if arguments.splits else {},
        "limits": {name: cap for name, cap in caps.items() if cap is not None},
    }
    parts = {key: {**(document.get(key) or {}), **values} for key, values in given.items() if values}
    trials = {} if arguments.trials is None else {"trials": arguments.trials}
    return {**document, **parts, **trials}


def _refuse_other_split(document: dict[str, Any], splits: tuple[str, ...]) -> None:
    """Refuse to give a file's only split another name: `--split` chooses, and does not name."""
    dataset = document.get("dataset")
    if not splits or not isinstance(dataset, dict):
        return
    source = dataset.get("source")
    if not isinstance(source, str) or source in {"hub", "sample"}:
        return
    path = from_home(source, "dataset.source")
    known = dataset.get("splits") or [path.stem]
    if path.is_file() and isinstance(known, list) and set(splits) - set(known):
        raise UsageError(f"--split {min(set(splits) - set(known))}: not found; known: {', '.join(map(str, known))}")


def _of_command(settings: Settings, arguments: Arguments, file: Path | None) -> Settings:
    """The settings with the chosen models and judges, and with an absolute folder of the report."""
    chosen = {
        "models": _chosen(settings.models, arguments.models),
        "judges": _chosen(settings.judges, arguments.judges),
        "report": _report_beside(file, settings.report),
    }
    return settings.model_copy(update=chosen)


def _report_beside(file: Path | None, report: Report) -> Report:
    """The report's settings with an absolute folder: one that is configured is relative to the configuration file."""
    if file is None or report.folder is None:
        return report
    return report.model_copy(update={"folder": (file.parent / from_home(report.folder, "report.folder")).absolute()})


def _chosen(endpoints: tuple[AnyEndpoint, ...], labels: tuple[str, ...]) -> tuple[AnyEndpoint, ...]:
    """The endpoints of the labels asked for; a label that is not configured may be one of imported rows."""
    return tuple(endpoint for endpoint in endpoints if not labels or endpoint.label in labels)
