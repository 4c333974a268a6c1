"""The job of a run: the configuration file, narrowed by the command line and checked, and the
folder of its data.
"""

import os
import shlex
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from flows.run.arguments import Arguments
from flows.run.nights import refuse_no_night, stop_time
from tasks.benchmarks import benchmark_names, load_benchmark
from tasks.benchmarks.base import ANY_FIELD
from tasks.check import expectations_of, policies_of
from tasks.config.job import Job
from tasks.config.settings import EARLIER_NIGHTS, EVERY_PAIR, Settings
from tasks.dataset.source import with_revision
from tasks.rules.errors import UsageError, from_home
from tasks.rules.identity import EVERY_VINTAGE, IMPORTED, is_impossible_date
from tasks.rules.text.characters import did_you_mean, hint_on
from tasks.rules.text.json_text import refuse_deep
from tasks.rules.variants import AUGMENTED
from tasks.run.judge_configs import refuse_unlike_gradings, template_of
from warehouse import Warehouse, other_content


def load_job(arguments: Arguments) -> Job:
    """Return the job of one run.

    Raises:
        UsageError: the configuration is missing, broken or impossible, or an argument names
            something that it lacks.
    """
    if arguments.night is not None:
        refuse_no_night(arguments.night)
    file = config_file(arguments.config)
    document, where = read_document(file)
    document = of_benchmark(document, where, arguments.benchmark)
    _refuse_other_split(document, arguments.splits)
    settings, problems = sound_settings(_narrowed(document, arguments))
    if settings is None or problems:
        raise UsageError(f"{where}: {'; '.join(problems)}")
    job = _job(settings, arguments, file)
    _refuse_impossible_date(job)
    try:
        refuse_impossible(job)
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from error
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
    compared = settings.models if settings.stopping else ()
    report = settings.report
    if file is not None and report.folder is not None:
        # A configured folder is relative to the configuration file.
        folder = (file.parent / from_home(report.folder, "report.folder")).absolute()
        report = report.model_copy(update={"folder": folder})
    warehouse, source = warehouse_folder(arguments.warehouse, settings.warehouse, file)
    # A label that is not configured may belong to imported rows.
    chosen: dict[str, Any] = {
        kind: tuple(each for each in getattr(settings, kind) if not labels or each.label in labels)
        for kind, labels in (("models", arguments.named_models), ("judges", arguments.named_judges))
    }
    now = datetime.now(UTC)
    clock = now.astimezone().replace(tzinfo=None)
    given = {
        name: value
        for name, value in vars(arguments).items()
        if value not in (None, ()) and name in Job.model_fields
    }
    location = {
        "config": None if file is None else file.absolute(),
        "warehouse": warehouse if file is None or source in {"--warehouse", VARIABLE} else None,
        "benchmark": arguments.benchmark,
    }
    options = [
        f"--{name} {shlex.quote(str(value))}"
        for name, value in location.items()
        if value is not None
    ]
    job = Job(
        **given
        | {
            "location": tuple(options),
            "settings": settings.model_copy(update={**chosen, "report": report}),
            "compared_models": compared,
            "configured_labels": {
                "model": tuple(model.label for model in settings.models),
                "judge": tuple(judge.label for judge in settings.judges),
            },
            "warehouse": warehouse,
            "warehouse_source": source,
            "run_id": f"{now:%Y%m%dT%H%M%S}-{uuid.uuid4().hex[:8]}",
            "stop_at": stop_time(arguments.stop_at, clock) if arguments.stop_at else None,
        }
    )
    return with_revision(job)


def _narrowed(document: dict[str, Any], arguments: Arguments) -> dict[str, Any]:
    """Return the document with the values of arguments instead of its own; they are validated
    together.
    """
    caps = {"max_usd": arguments.max_usd, "max_tokens": arguments.max_tokens}
    given: dict[str, Any] = {
        "dataset": {"splits": list(arguments.splits)} if arguments.splits else {},
        "limits": {name: cap for name, cap in caps.items() if cap is not None},
    }
    parts = {
        key: {**(document.get(key) or {}), **values} for key, values in given.items() if values
    }
    whole = {"trials": arguments.trials, "prefect": "off" if arguments.is_unrecorded else None}
    return {
        **document,
        **parts,
        **{key: value for key, value in whole.items() if value is not None},
    }


def _refuse_other_split(document: dict[str, Any], splits: tuple[str, ...]) -> None:
    """Refuse a `--split` that the data-set file does not have: the option chooses splits, and
    cannot name new ones.
    """
    match document:
        case {"dataset": {"source": str(source), **dataset}} if splits and source not in {
            "hub",
            "sample",
        }:
            path = from_home(source, "dataset.source")
            known = dataset.get("splits") or [path.stem]
            if path.is_file() and isinstance(known, list) and (unknown := set(splits) - set(known)):
                raise UsageError(
                    f"--split {min(unknown)}: not found{hint_on(min(unknown), map(str, known))}"
                )


# The configuration file, and its settings for single benchmarks

_OWN = "benchmarks"
"""The key of settings for single benchmarks."""
_DEFAULT = Path("prbench.yaml")


def config_file(named: Path | str | None) -> Path | None:
    """Return the named configuration file, else `prbench.yaml` in the current folder if it exists,
    else None.
    """
    if named is not None:
        return from_home(named, "--config")
    return _DEFAULT if _DEFAULT.exists() else None


def read_document(path: Path | None) -> tuple[dict[str, Any], str]:
    """Return the content of a configuration file (without one: the embedded default), and its name
    in messages.

    Raises:
        UsageError: the file is missing, or does not contain settings in YAML.
    """
    try:
        with (path or Path(__file__).with_name("built_in.yaml")).open(encoding="utf-8") as file:
            document = yaml.load(file, Loader=_UniqueKeys)
        # YAML references can make a short text endless.
        refuse_deep(document, 100_000)
    except FileNotFoundError as error:
        raise UsageError(
            f"{path}: no such file; copy prbench.example.yaml, or leave --config out"
        ) from error
    except RecursionError as error:
        message = (
            f"{path}: is nested too deeply or too large for settings; see prbench.example.yaml"
        )
        raise UsageError(message) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: not valid YAML: {' '.join(str(error).split())}") from error
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}); check the path") from error
    if not isinstance(document, dict):
        raise UsageError(f"{path}: holds no settings; see prbench.example.yaml")
    return document, str(path or "the embedded default")


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


def of_benchmark(document: dict[str, Any], where: str, wanted: str | None) -> dict[str, Any]:
    """Return the document with a benchmark's own settings instead of the shared ones.

    `wanted` is the benchmark; None: the one that the document names. The settings of other
    benchmarks are left out.

    Raises:
        UsageError: there is no such benchmark, or the document has no data set for it.
    """
    if wanted is not None:
        load_benchmark(wanted)  # report a mistyped name before a missing data set
    common = dict(document)
    own = document.get(_OWN) or {}
    common.pop(_OWN, None)
    if not isinstance(own, dict) or not all(
        isinstance(settings, dict) for settings in own.values()
    ):
        raise UsageError(
            f"{where}: {_OWN}: must map each benchmark to its settings; see prbench.example.yaml"
        )
    known = benchmark_names() if own else []
    unknown = set(own) - set(known)
    if unknown:
        name = min(map(str, unknown))
        raise UsageError(
            f"{where}: {_OWN}.{name}: there is no such benchmark{hint_on(name, known)}"
        )
    configured = str(common.get("benchmark", Settings.model_fields["benchmark"].default))
    dataset = common.get("dataset")
    chosen = wanted or configured
    # Every benchmark has a sample, but a data set belongs to one benchmark.
    is_shared = not isinstance(dataset, dict) or dataset.get("source") == "sample"
    if chosen != configured and not is_shared and "dataset" not in own.get(chosen, {}):
        raise UsageError(
            f"--benchmark {wanted}: the data set in {where} belongs to {configured}; add one for"
            f" {wanted} there under {_OWN}.{wanted}.dataset, or use another configuration"
        )
    return {
        **common,
        **own.get(chosen, {}),
        "benchmark": chosen,
    }


# The folder of the data

VARIABLE = "PRBENCH_WAREHOUSE"
_DATA = Path("warehouse/data")
_EMBEDDED_DATA = Path("warehouse/embedded")
"""The default folder without a configuration: the sample's rows are never beside one's own."""


def warehouse_folder(
    option: Path | str | None, configured: str | None, config_file: Path | None
) -> tuple[Path, str]:
    """Return the absolute path of the warehouse's folder, which may not exist yet, and the source
    of the choice.

    Args:
        option: the value of `--warehouse`.
        configured: the configuration's `warehouse`; a relative path is relative to the
            configuration file.
        config_file: the configuration file; None: the embedded default, which has a folder of its
            own unless `warehouse/data` exists.

    Raises:
        UsageError: the path is that of a file or of a folder with other content, or begins with the
            home folder of an unknown user.
    """
    beside = config_file.parent if config_file else Path()
    default = (_DATA, beside, f"default, beside {config_file}" if config_file else "default")
    if config_file is None and not _DATA.exists():
        default = (_EMBEDDED_DATA, beside, "default without a configuration")
    choices: list[tuple[Path | str | None, Path, str]] = [
        (option, Path(), "--warehouse"),
        (configured, beside, f"`warehouse` in {config_file}"),
        (os.environ.get(VARIABLE), Path(), VARIABLE),
        default,
    ]
    given, beside, source = next((path, folder, why) for path, folder, why in choices if path)
    folder = (beside / from_home(given, source)).absolute()
    if not (existing := next(path for path in (folder, *folder.parents) if path.exists())).is_dir():
        raise UsageError(
            f"warehouse {folder} ({source}): {existing} is a file; choose a folder with --warehouse"
        )
    other = other_content(folder)
    if other is not None:
        raise UsageError(
            f"warehouse {folder} ({source}): contains {other} and is no warehouse; choose an empty"
            " or new folder with --warehouse"
        )
    return folder, source


# Problems of settings, each in one line with the paths of the keys

_UNKNOWN_KEY = "extra_forbidden"


def sound_settings(document: dict[str, Any]) -> tuple[Settings | None, list[str]]:
    """Return the settings of a document, and its problems, each with the path of its key; None: no
    valid settings.
    """
    try:
        settings = Settings.model_validate(document)
        return settings, _contradictions(settings)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=False)
    # Unknown keys first: a mistyped key explains a missing one. Of the branches of a union, one
    # problem is enough.
    errors.sort(key=lambda problem: problem["type"] != _UNKNOWN_KEY)
    by_key: dict[str, ErrorDetails] = {}
    for problem in errors:
        by_key.setdefault(_path(problem["loc"]), problem)
    return None, [_in_words(key, problem) for key, problem in by_key.items()]


def _contradictions(settings: Settings) -> list[str]:
    """Return the problems of settings that are valid one by one but not together."""
    problems: list[str] = []
    for kind in ("models", "judges", "annotator", "reviewer"):
        labels = [endpoint.label for endpoint in getattr(settings, kind)]
        for label in sorted({label for label in labels if labels.count(label) > 1}):
            problems.append(f"{kind}: label {label!r} is used twice; give each its own `label`")
    augmented = [judge.label for judge in settings.judges if judge.rubric == AUGMENTED]
    if augmented and settings.rubric_writer is None:
        writes = f"judge {augmented[0]} has `rubric: {AUGMENTED}`"
        problems.append(f"rubric_writer: {writes}, so it has to name the model that writes it")
    return [*problems, *_unstoppable(settings)]


def _unstoppable(settings: Settings) -> list[str]:
    """Return the problems that `stopping` has with the other settings."""
    stopping = settings.stopping
    labels = [model.label for model in settings.models]
    if stopping is None:
        return []
    problems = [] if settings.judges else ["stopping: needs a judge, whose scores are compared"]
    if stopping.pairs == EVERY_PAIR and len(labels) < 2:
        problems.append(f"stopping.pairs: `{EVERY_PAIR}` needs at least two models")
    elif stopping.pairs == EARLIER_NIGHTS and not any(
        model.resample == "nightly" for model in settings.models
    ):
        problems.append(
            f"stopping.pairs: `{EARLIER_NIGHTS}` needs a model with `resample: nightly`"
        )
    return problems + [
        f"stopping.pairs[{index}]: there is no model {label!r}{did_you_mean(label, labels)}"
        for index, pair in enumerate(() if isinstance(stopping.pairs, str) else stopping.pairs)
        for label in pair
        if label not in labels
    ]


def _in_words(key: str, problem: ErrorDetails) -> str:
    reason = {_UNKNOWN_KEY: "there is no such key", "missing": "is missing"}.get(
        problem["type"], problem["msg"]
    )
    reason = reason.removeprefix("Value error, ")
    if problem["type"] == _UNKNOWN_KEY:
        name = str(problem["loc"][-1])
        schema = Settings.model_json_schema()
        known = {
            key
            for model in (schema, *schema["$defs"].values())
            for key in model.get("properties", ())
        }
        reason += did_you_mean(name, sorted(known - {name}))
    # A problem between elements of a list already names their keys.
    return reason if not key or reason.startswith(f"{key}[") else f"{key}: {reason}"


def _path(location: Sequence[int | str]) -> str:
    """Return a key's path such as `models[0].timeout_s` from its parts."""
    # Pydantic's names for the branches of a union are left out.
    branches = ("constrained-", "dict[", "tuple[", "literal[")
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part != "policies" and not part.startswith(branches):
            path += f".{part}" if path else part
    return path


def refuse_impossible(job: Job) -> None:
    """Refuse settings that do not fit the benchmark.

    Raises:
        UsageError: the benchmark, a check or a field is unknown, or a template is missing.
    """
    benchmark = load_benchmark(job.settings.benchmark)
    policies_of(job, expectations_of(benchmark))
    for judge in job.settings.called_judges:
        template_of(judge, benchmark)
    for judge in job.settings.judges:
        refuse_unlike_gradings(judge, benchmark)
    share = job.settings.hard_subset.share
    fields = [field for field in benchmark.vocabularies if field != ANY_FIELD]
    unknown = sorted(set(share) - set(fields)) if isinstance(share, dict) and fields else []
    if unknown:
        keys = " and ".join(f"hard_subset.share.{field}" for field in unknown)
        raise UsageError(f"{keys}: {benchmark.name} has the fields {', '.join(fields)}")


# Names given for a run that it cannot use


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
    """Refuse a given model, judge or vintage for which no calls can be made.

    Raises:
        UsageError: the vintage is `all`, a model is neither configured nor imported, or a judge is
            unknown.
    """
    refuse_every_vintage(job)
    unknown = set(job.named_models or ()) - {model.label for model in job.settings.models}
    models = {*job.configured_labels.get("model", ())}
    warehouse = Warehouse(job.warehouse)
    if unknown and warehouse.database.exists():
        with warehouse.reader() as reader:
            models |= {
                row["model"]
                for row in reader.select("responses", "distinct model", source=IMPORTED)
            }
        unknown -= models
    if unknown:
        reason = "is neither configured nor the model of an imported response"
        raise UsageError(f"--model {min(unknown)}: {reason}{did_you_mean(min(unknown), models)}")
    others = set(job.named_judges or ()) - {judge.label for judge in job.settings.judges}
    if others:
        hint = did_you_mean(min(others), job.configured_labels.get("judge", ()))
        raise UsageError(
            f"--judge {min(others)}: is not configured, or judges only within a cascade{hint}"
        )
