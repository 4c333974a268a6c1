"""Problems of settings, each in one line with the paths of the keys."""

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from tasks.config.settings import EARLIER_NIGHTS, EVERY_PAIR, Settings
from tasks.rules.text.characters import did_you_mean
from tasks.rules.variants import AUGMENTED

_UNKNOWN_KEY = "extra_forbidden"


def sound_settings(document: dict[str, Any]) -> tuple[Settings | None, list[str]]:
    """Return the settings of a document (None: they are not valid), and its problems.

    Each problem names the path of its key.
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
    problems = []
    for kind in ("models", "judges", "annotator", "reviewer"):
        labels = [endpoint.label for endpoint in getattr(settings, kind)]
        for label in sorted(set(labels)):
            if labels.count(label) > 1:
                problems.append(f"{kind}: label {label!r} is used twice; give each its own `label`")
    augmented = [judge.label for judge in settings.judges if judge.rubric == AUGMENTED]
    if augmented and settings.rubric_writer is None:
        problems.append(
            f"rubric_writer: judge {augmented[0]} has `rubric: {AUGMENTED}`, so it has to name the"
            " model that writes it"
        )
    return problems + _problems_of_stopping(settings)


def _problems_of_stopping(settings: Settings) -> list[str]:
    """Return the problems that `stopping` has with the other settings."""
    stopping = settings.stopping
    if stopping is None:
        return []
    problems = []
    if not settings.judges:
        problems.append("stopping: needs a judge, whose scores are compared")
    labels = settings.model_labels
    pairs = stopping.pairs
    if pairs == EVERY_PAIR:
        if len(labels) < 2:
            problems.append(f"stopping.pairs: `{EVERY_PAIR}` needs at least two models")
    elif pairs == EARLIER_NIGHTS:
        if not any(model.resample == "nightly" for model in settings.models):
            problems.append(
                f"stopping.pairs: `{EARLIER_NIGHTS}` needs a model with `resample: nightly`"
            )
    else:
        problems += _unknown_labels(pairs, labels)
    return problems


def _unknown_labels(pairs: Sequence[Sequence[str]], labels: Sequence[str]) -> Iterator[str]:
    for index, pair in enumerate(pairs):
        for label in pair:
            if label not in labels:
                hint = did_you_mean(label, labels)
                yield f"stopping.pairs[{index}]: there is no model {label!r}{hint}"


def _in_words(key: str, problem: ErrorDetails) -> str:
    reason = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "missing":
        reason = "is missing"
    elif problem["type"] == _UNKNOWN_KEY:
        name = str(problem["loc"][-1])
        reason = f"there is no such key{did_you_mean(name, sorted(_known_keys() - {name}))}"
    # A problem that elements of a list have together begins with the path of one of them.
    if not key or reason.startswith(f"{key}["):
        return reason
    return f"{key}: {reason}"


def _known_keys() -> set[str]:
    """Return the keys of all settings."""
    schema = Settings.model_json_schema()
    keys = set(schema["properties"])
    for model in schema["$defs"].values():
        keys.update(model.get("properties", ()))
    return keys


def _path(location: Sequence[int | str]) -> str:
    """Return a key's path such as `models[0].timeout_s` from its parts."""
    # Pydantic's names for the branches of a union are left out, and the field `policies`, which is
    # no key of the file: checks are named directly under `quality`.
    branches = ("constrained-", "dict[", "tuple[", "literal[")
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part != "policies" and not part.startswith(branches):
            path += f".{part}" if path else part
    return path
