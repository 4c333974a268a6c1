"""Problems of settings, each in one line with the paths of the keys, and unknown names of models and judges."""

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import ANY_FIELD, Benchmark
from tasks.check import expectations_of, policies_of
from tasks.config.job import Job
from tasks.config.settings import EARLIER_NIGHTS, EVERY_PAIR, Settings
from tasks.figures.scope import EVERY
from tasks.rules.errors import UsageError
from tasks.rules.identity import IMPORTED
from tasks.rules.text.characters import did_you_mean
from tasks.rules.variants import AUGMENTED
from tasks.run.judge_configs import refuse_unlike_gradings, template_of
from warehouse import Warehouse

_UNKNOWN_KEY = "extra_forbidden"
_PYDANTIC_WORDS = ("constrained-", "dict[", "tuple[", "literal[")
"""Pydantic's names for the branches of a union, which are left out of paths."""


def sound_settings(document: dict[str, Any]) -> tuple[Settings | None, list[str]]:
    """Return the settings of a document, and its problems, each with the path of its key; None: no valid settings."""
    try:
        settings = Settings.model_validate(document)
        return settings, _contradictions(settings)
    except ValidationError as error:
        errors = error.errors(include_url=False, include_input=False)
    # Unknown keys first: a mistyped key explains a missing one. Of the branches of a union, one problem is enough.
    errors.sort(key=lambda problem: problem["type"] != _UNKNOWN_KEY)
    by_key: dict[str, ErrorDetails] = {}
    for problem in errors:
        by_key.setdefault(_path(problem["loc"]), problem)
    return None, [_in_words(key, problem) for key, problem in by_key.items()]


def _contradictions(settings: Settings) -> list[str]:
    """Return the problems of settings that are valid one by one but not together."""
    problems: list[str] = []
    for kind in ("models", "judges", "annotator", "reviewer"):
        endpoints = getattr(settings, kind)
        labels = [endpoint.label for endpoint in endpoints]
        for label in sorted({label for label in labels if labels.count(label) > 1}):
            problems.append(f"{kind}: label {label!r} is used twice; give each its own `label`")
    augmented = [judge.label for judge in settings.judges if judge.rubric == AUGMENTED]
    if augmented and settings.rubric_writer is None:
        writes = f"judge {augmented[0]} has `rubric: {AUGMENTED}`"
        problems.append(f"rubric_writer: {writes}, so it has to name the model that writes it")
    return [*problems, *_unstoppable(settings)]


def _unstoppable(settings: Settings) -> list[str]:
    """Return the problems that `stopping` has with the other settings."""
    stopping, labels = settings.stopping, [model.label for model in settings.models]
    if stopping is None:
        return []
    problems = [] if settings.judges else ["stopping: needs a judge, whose scores are compared"]
    if stopping.pairs == EVERY_PAIR and len(labels) < 2:
        problems.append(f"stopping.pairs: `{EVERY_PAIR}` needs at least two models")
    elif stopping.pairs == EARLIER_NIGHTS and not any(model.resample == "nightly" for model in settings.models):
        problems.append(f"stopping.pairs: `{EARLIER_NIGHTS}` needs a model with `resample: nightly`")
    return problems + [
        f"stopping.pairs[{index}]: there is no model {label!r}{did_you_mean(label, labels)}"
        for index, pair in enumerate(() if isinstance(stopping.pairs, str) else stopping.pairs)
        for label in pair
        if label not in labels
    ]


def _in_words(key: str, problem: ErrorDetails) -> str:
    reason = {_UNKNOWN_KEY: "there is no such key", "missing": "is missing"}.get(problem["type"], problem["msg"])
    reason = reason.removeprefix("Value error, ")
    if problem["type"] == _UNKNOWN_KEY:
        schema = Settings.model_json_schema()
        known = {key for model in (schema, *schema["$defs"].values()) for key in model.get("properties", ())}
        reason += did_you_mean(str(problem["loc"][-1]), sorted(known))
    # A problem between elements of a list already names their keys.
    return reason if not key or reason.startswith(f"{key}[") else f"{key}: {reason}"


def _path(location: Sequence[int | str]) -> str:
    """Return a key's path such as `models[0].timeout_s` from its parts."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part != "policies" and not part.startswith(_PYDANTIC_WORDS):
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
    _refuse_unknown_fields(job, benchmark)


def _refuse_unknown_fields(job: Job, benchmark: Benchmark) -> None:
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
    if job.vintage == EVERY:
        raise UsageError(f"--vintage {EVERY}: works only for leaderboards and reports; name one vintage")


def refuse_unknown_names(job: Job) -> None:
    """Refuse a given model, judge or vintage for which no calls can be made.

    Raises:
        UsageError: the vintage is `all`, a model is neither configured nor imported, or a judge is unknown.
    """
    refuse_every_vintage(job)
    unknown = set(job.named_models or ()) - {model.label for model in job.settings.models}
    warehouse = Warehouse(job.warehouse)
    if unknown and warehouse.database.exists():
        warehouse.renew_if_damaged()
        with warehouse.reader() as reader:
            unknown -= {row["model"] for row in reader.select("responses", "distinct model", source=IMPORTED)}
    if unknown:
        raise UsageError(f"--model {min(unknown)}: is neither configured nor the model of an imported response")
    if others := set(job.named_judges or ()) - {judge.label for judge in job.settings.judges}:
        raise UsageError(f"--judge {min(others)}: is not configured, or judges only within a cascade")
