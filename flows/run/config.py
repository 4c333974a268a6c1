"""The job of a run: the configuration file, narrowed by arguments and checked, and the folder of
its data.
"""

import os
import shlex
import uuid
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from flows.run.arguments import Arguments
from flows.run.nights import refuse_invalid_night, stop_time
from flows.run.settings_problems import sound_settings
from tasks.benchmarks import benchmark_names, load_benchmark
from tasks.benchmarks.base import ANY_FIELD
from tasks.check import expectations_of, policies_of
from tasks.config.job import Job
from tasks.config.settings import Report, Settings
from tasks.dataset.source import with_revision
from tasks.rules.errors import UsageError, from_home
from tasks.rules.identity import EVERY_VINTAGE, IMPORTED, is_impossible_date
from tasks.rules.text.characters import did_you_mean, hint_on
from tasks.rules.text.json_text import refuse_deep
from tasks.run.judge_configs import refuse_unlike_gradings, template_of
from warehouse import Warehouse, existing_folder, other_content


def load_job(arguments: Arguments) -> Job:
    """Return the job of one run.

    Raises:
        UsageError: the configuration is missing, broken or impossible, or an argument names
            something that it lacks.
    """
    if arguments.night is not None:
        refuse_invalid_night(arguments.night)
    file = config_file(arguments.config)
    document = read_document(file)
    source = str(file or "the embedded default")
    document = benchmark_document(document, source, arguments.benchmark)
    _refuse_other_split(document, arguments.splits)
    settings, problems = sound_settings(_narrowed_document(document, arguments))
    if settings is None or problems:
        raise UsageError(f"{source}: {'; '.join(problems)}")
    job = _job(settings, arguments, file)
    _refuse_impossible_date(job)
    try:
        refuse_impossible(job)
    except UsageError as error:
        raise UsageError(f"{source}: {error}") from error
    return job


def _refuse_impossible_date(job: Job) -> None:
    """Refuse a new vintage that looks like a date and is none; stored ones stay readable."""
    if not is_impossible_date(job.vintage):
        return
    warehouse = Warehouse(job.warehouse)
    if warehouse.database.exists():
        with warehouse.reader() as reader:
            if reader.select("responses", "distinct vintage", vintage=job.vintage):
                return
    raise UsageError(
        f"--vintage {job.vintage}: is not a date; write 2026-11-22, or a label that is not like a"
        " date"
    )


def _job(settings: Settings, arguments: Arguments, file: Path | None) -> Job:
    """Return the job of settings, narrowed by arguments."""
    warehouse, source = warehouse_folder(arguments.warehouse, settings.warehouse, file)
    started_at = datetime.now(UTC)
    values: dict[str, Any] = {}
    for name, value in vars(arguments).items():
        if name in Job.model_fields and value not in (None, ()):
            values[name] = value
    # Without a zone, a stop time is one of this machine's clock.
    clock = started_at.astimezone().replace(tzinfo=None)
    values["stop_at"] = stop_time(arguments.stop_at, clock) if arguments.stop_at else None
    values["run_id"] = f"{started_at:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}"
    values["warehouse"] = warehouse
    values["warehouse_source"] = source
    values["location_options"] = _location_options(arguments, file, warehouse, source)
    values["compared_models"] = settings.models if settings.stopping else ()
    values["configured_labels"] = {
        "model": settings.model_labels,
        "judge": settings.judge_labels,
    }
    values["settings"] = _narrowed_settings(settings, arguments, file)
    return with_revision(Job(**values))


def _narrowed_settings(settings: Settings, arguments: Arguments, file: Path | None) -> Settings:
    """Return the settings with the named models and judges only.

    A named label that is not configured may belong to imported rows.
    """
    changes: dict[str, Any] = {"report": _report_settings(settings, file)}
    if arguments.named_models:
        models = [model for model in settings.models if model.label in arguments.named_models]
        changes["models"] = tuple(models)
    if arguments.named_judges:
        judges = [judge for judge in settings.judges if judge.label in arguments.named_judges]
        # A panel needs the verdicts of its members, which come after the named judges.
        labels = set()
        for judge in judges:
            labels |= {member.label for member in judge.panel_members}
        labels -= set(arguments.named_judges)
        members = [judge for judge in settings.judges if judge.label in labels]
        changes["judges"] = (*judges, *members)
    return settings.model_copy(update=changes)


def _location_options(
    arguments: Arguments,
    file: Path | None,
    warehouse: Path,
    source: str,
) -> tuple[str, ...]:
    """Return the options of a command that name the same configuration, data and benchmark."""
    options = []
    if file is not None:
        options.append(f"--config {shlex.quote(str(file.absolute()))}")
    if file is None or source in _GIVEN_SOURCES:
        options.append(f"--warehouse {shlex.quote(str(warehouse))}")
    if arguments.benchmark is not None:
        options.append(f"--benchmark {shlex.quote(arguments.benchmark)}")
    return tuple(options)


def _report_settings(settings: Settings, file: Path | None) -> Report:
    """Return the settings of the report; its folder is relative to the configuration file."""
    report = settings.report
    if file is None or report.folder is None:
        return report
    folder = (file.parent / from_home(report.folder, "report.folder")).absolute()
    return report.model_copy(update={"folder": folder})


def _narrowed_document(document: dict[str, Any], arguments: Arguments) -> dict[str, Any]:
    """Return the document with the values of arguments; they are validated together."""
    narrowed = dict(document)
    if arguments.splits:
        _change_setting(narrowed, "dataset", "splits", list(arguments.splits))
    for name in ("max_usd", "max_tokens"):
        cap = getattr(arguments, name)
        if cap is not None:
            _change_setting(narrowed, "limits", name, cap)
    if arguments.trials is not None:
        narrowed["trials"] = arguments.trials
    if arguments.is_unrecorded:
        narrowed["prefect"] = "off"
    return narrowed


def _change_setting(document: dict[str, Any], section: str, name: str, value: object) -> None:
    """Give a section a setting; a section that is no mapping stays, and is refused later."""
    settings = document.get(section) or {}
    if isinstance(settings, dict):
        document[section] = {**settings, name: value}


def _refuse_other_split(document: dict[str, Any], splits: tuple[str, ...]) -> None:
    """Refuse a `--split` that the data-set file does not have.

    The option chooses splits, and cannot name new ones.
    """
    dataset = document.get("dataset")
    if not splits or not isinstance(dataset, dict):
        return
    source = dataset.get("source")
    if not isinstance(source, str) or source in {"hub", "sample"}:
        return
    path = from_home(source, "dataset.source")
    configured_splits = dataset.get("splits") or [path.stem]
    if path.is_file() and isinstance(configured_splits, list):
        unknown = set(splits) - set(configured_splits)
        if unknown:
            hint = hint_on(min(unknown), map(str, configured_splits))
            raise UsageError(f"--split {min(unknown)}: not found{hint}")


# The configuration file, and its settings for single benchmarks

_BENCHMARKS = "benchmarks"
"""The key of settings for single benchmarks."""
_DEFAULT_FILE = Path("prbench.yaml")


def config_file(path: Path | str | None) -> Path | None:
    """Return the named configuration file, else `prbench.yaml` in this folder, if it exists."""
    if path is not None:
        return from_home(path, "--config")
    return _DEFAULT_FILE if _DEFAULT_FILE.exists() else None


def read_document(path: Path | None) -> dict[str, Any]:
    """Return the content of a configuration file; without one, the embedded default.

    Raises:
        UsageError: the file is missing, or does not contain settings in YAML.
    """
    document_path = path or Path(__file__).with_name("built_in.yaml")
    try:
        with document_path.open(encoding="utf-8") as file:
            document = yaml.load(file, Loader=_UniqueKeys)
        # YAML references can make a short text endless.
        refuse_deep(document, 100_000)
    except FileNotFoundError as error:
        raise UsageError(
            f"{path}: no such file; copy prbench.example.yaml, or leave --config out"
        ) from error
    except RecursionError as error:
        raise UsageError(
            f"{path}: is nested too deeply or too large for settings; see prbench.example.yaml"
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}); check the path") from error
    if not isinstance(document, dict):
        raise UsageError(f"{path}: holds no settings; see prbench.example.yaml")
    return document


class _UniqueKeys(yaml.SafeLoader):
    """YAML in which a duplicate key is an error."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key for key, _ in node.value]
        for index, key in enumerate(keys):
            if any(key.value == earlier.value for earlier in keys[:index]):
                raise yaml.MarkedYAMLError(
                    problem=f"key {key.value!r} appears twice", problem_mark=key.start_mark
                )
        return super().construct_mapping(node, deep)


def benchmark_document(
    document: dict[str, Any],
    source: str,
    benchmark: str | None,
) -> dict[str, Any]:
    """Return the document with a benchmark's own settings instead of the shared ones.

    The settings of other benchmarks are left out.

    Args:
        document: the content of the configuration file.
        source: the name of the file, in messages.
        benchmark: its name; None: the one that the document names.

    Raises:
        UsageError: there is no such benchmark, or the document has no data set for it.
    """
    if benchmark is not None:
        load_benchmark(benchmark)  # report a mistyped name before a missing data set
    shared_settings = dict(document)
    settings_by_benchmark = shared_settings.pop(_BENCHMARKS, None) or {}
    _refuse_unknown_benchmarks(settings_by_benchmark, source)
    default = Settings.model_fields["benchmark"].default
    configured = str(shared_settings.get("benchmark", default))
    benchmark_name = benchmark or configured
    settings = settings_by_benchmark.get(benchmark_name, {})
    dataset = shared_settings.get("dataset")
    # Every benchmark has a sample, but a data set belongs to one benchmark.
    is_shared = not isinstance(dataset, dict) or dataset.get("source") == "sample"
    if benchmark_name != configured and not is_shared and "dataset" not in settings:
        raise UsageError(
            f"--benchmark {benchmark}: the data set in {source} belongs to {configured}; add one"
            f" for {benchmark} there under {_BENCHMARKS}.{benchmark}.dataset, or use another"
            " configuration"
        )
    return {**shared_settings, **settings, "benchmark": benchmark_name}


def _refuse_unknown_benchmarks(settings_by_benchmark: Any, source: str) -> None:
    is_mapping = isinstance(settings_by_benchmark, dict)
    if not is_mapping or any(not isinstance(part, dict) for part in settings_by_benchmark.values()):
        raise UsageError(
            f"{source}: {_BENCHMARKS}: must map each benchmark to its settings; see"
            " prbench.example.yaml"
        )
    known_names = benchmark_names()
    unknown = set(settings_by_benchmark) - set(known_names)
    if unknown:
        name = min(map(str, unknown))
        hint = hint_on(name, known_names)
        raise UsageError(f"{source}: {_BENCHMARKS}.{name}: there is no such benchmark{hint}")


# The folder of the data

VARIABLE = "PRBENCH_WAREHOUSE"
_GIVEN_SOURCES = {"--warehouse", VARIABLE}
_DEFAULT_DATA = Path("warehouse/data")
_EMBEDDED_DATA = Path("warehouse/embedded")
"""The default folder without a configuration: the sample's rows are never beside one's own."""


def warehouse_folder(
    option: Path | str | None,
    configured: str | None,
    file: Path | None,
) -> tuple[Path, str]:
    """Return the absolute path of the warehouse's folder, and the source of the choice.

    The folder may not exist yet.

    Args:
        option: the value of `--warehouse`.
        configured: the configuration's `warehouse`; a relative path is relative to the
            configuration file.
        file: the configuration file; None: the embedded default, which has a folder of its
            own unless `warehouse/data` exists.

    Raises:
        UsageError: the path is that of a file or of a folder with other content, or begins with the
            home folder of an unknown user.
    """
    path, source = _chosen_folder(option, configured, file)
    base = Path()
    if file is not None and source not in _GIVEN_SOURCES:
        base = file.parent
    folder = (base / from_home(path, source)).absolute()
    existing = existing_folder(folder)
    if not existing.is_dir():
        raise UsageError(
            f"warehouse {folder} ({source}): {existing} is a file; choose a folder with --warehouse"
        )
    foreign_content = other_content(folder)
    if foreign_content is not None:
        raise UsageError(
            f"warehouse {folder} ({source}): contains {foreign_content} and is no warehouse;"
            " choose an empty or new folder with --warehouse"
        )
    return folder, source


def _chosen_folder(
    option: Path | str | None,
    configured: str | None,
    file: Path | None,
) -> tuple[Path | str, str]:
    """Return the path of the warehouse's folder as it was given, and the source of the choice."""
    variable = os.environ.get(VARIABLE)
    if option:
        return option, "--warehouse"
    if configured:
        return configured, f"`warehouse` in {file}"
    if variable:
        return variable, VARIABLE
    if file is not None:
        return _DEFAULT_DATA, f"default, beside {file}"
    if _DEFAULT_DATA.exists():
        return _DEFAULT_DATA, "default"
    return _EMBEDDED_DATA, "default without a configuration"


# What a run cannot use


def refuse_impossible(job: Job) -> None:
    """Refuse settings that do not fit the benchmark.

    Raises:
        UsageError: the benchmark, a check or a field is unknown, a template is missing, or the
            judges of a panel or a cascade grade in different ways.
    """
    benchmark = load_benchmark(job.benchmark)
    policies_of(job, expectations_of(benchmark))
    for judge in job.settings.judges:
        for member in judge.members:
            template_of(member, benchmark)
    for judge in job.settings.judges:
        refuse_unlike_gradings(judge, benchmark)
    share = job.settings.hard_subset.share
    fields = [field for field in benchmark.vocabularies if field != ANY_FIELD]
    if not fields or not isinstance(share, dict):
        return
    keys = " and ".join(f"hard_subset.share.{field}" for field in sorted(set(share) - set(fields)))
    if keys:
        raise UsageError(f"{keys}: {benchmark.name} has the fields {', '.join(fields)}")


def refuse_every_vintage(job: Job) -> None:
    """Refuse `all` as a vintage, which only leaderboards and reports accept.

    Raises:
        UsageError: the job's vintage is `all`.
    """
    if job.vintage == EVERY_VINTAGE:
        raise UsageError(
            f"--vintage {EVERY_VINTAGE}: works only for leaderboards and reports; name one vintage"
        )


def refuse_unknown_names(job: Job) -> None:
    """Refuse a named model, judge or vintage for which no calls can be made.

    Raises:
        UsageError: the vintage is `all`, a model is neither configured nor imported, or a judge is
            unknown.
    """
    refuse_every_vintage(job)
    _refuse_unknown_models(job)
    unknown = set(job.named_judges or ()).difference(job.settings.judge_labels)
    if unknown:
        hint = did_you_mean(min(unknown), job.configured_labels.get("judge", ()))
        raise UsageError(
            f"--judge {min(unknown)}: is not configured, or judges only within a cascade{hint}"
        )


def _refuse_unknown_models(job: Job) -> None:
    unknown = set(job.named_models or ()).difference(job.settings.model_labels)
    known_labels = {*job.configured_labels.get("model", ())}
    warehouse = Warehouse(job.warehouse)
    if unknown and warehouse.database.exists():
        with warehouse.reader() as reader:
            rows = reader.select("responses", "distinct model", source=IMPORTED)
        known_labels |= {row["model"] for row in rows}
        unknown -= known_labels
    if unknown:
        hint = did_you_mean(min(unknown), known_labels)
        raise UsageError(
            f"--model {min(unknown)}: is neither configured nor the model of an imported"
            f" response{hint}"
        )
