"""What is wrong with settings, in one line with the paths of the keys."""

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import partial
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import ANY_FIELD, Benchmark
from tasks.config import Job, Settings, expectations_of, policies_of
from tasks.rules.errors import UsageError
from tasks.run import template_of

_UNKNOWN_KEY = "extra_forbidden"
_PYDANTIC_WORDS = ("constrained-", "dict[", "tuple[", "literal[")
"""How pydantic names the branches of a union, which no user wrote."""


class ConfigurationError(UsageError):
    """What is wrong with a configuration, all of it: `problems` are those of the file that `where` names."""

    def __init__(self, where: str, problems: Sequence[str]) -> None:
        super().__init__(f"{where}: {'; '.join(problems)}")
        self.where, self.problems = where, tuple(problems)


def settings_from(document: dict[str, Any], where: str) -> Settings:
    """The settings of a document; `where` is what messages call it.

    Raises:
        ConfigurationError: they are broken; every problem has the path of its key.
    """
    try:
        return Settings.model_validate(document)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        # An unknown key first: a mistyped one is why another is missing. Of the branches of a union, one is enough.
        found.sort(key=lambda problem: problem["type"] != _UNKNOWN_KEY)
        by_key = {_path(problem["loc"]): problem for problem in reversed(found)}
        problems = [_in_words(key, by_key[key]) for key in dict.fromkeys(_path(problem["loc"]) for problem in found)]
        raise ConfigurationError(where, problems) from error


def _in_words(key: str, problem: ErrorDetails) -> str:
    reason = {_UNKNOWN_KEY: "there is no such key", "missing": "is missing"}.get(problem["type"], problem["msg"])
    reason = reason.replace("valid tuple", "list").replace("valid dictionary", "mapping").removeprefix("Value error, ")
    reason = reason.replace("Input should be", "must be")
    if problem["type"] == _UNKNOWN_KEY and len(problem["loc"]) == 1:
        near = get_close_matches(key, Settings.model_fields, n=1)
        reason += f" (did you mean `{near[0]}`?)" if near else ""
    return f"{key + ': ' if key else ''}{reason}"


def _path(location: Sequence[int | str]) -> str:
    """`models[0].timeout_s` from its parts."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif part != "policies" and not part.startswith(_PYDANTIC_WORDS):
            path += f".{part}" if path else part
    return path


def refuse_impossible(job: Job, where: str) -> None:
    """Refuse what is wrong for this benchmark.

    Raises:
        ConfigurationError: a benchmark, check or field is unknown, or a template is not there.
    """
    try:
        benchmark = load_benchmark(job.settings.benchmark)
    except UsageError as error:
        raise ConfigurationError(where, [str(error)]) from error
    looks: list[Callable[[], object]] = [
        lambda: policies_of(job, expectations_of(benchmark)),
        *(partial(template_of, judge, benchmark) for judge in job.settings.judges),
        lambda: _refuse_unknown_fields(job, benchmark),
    ]
    problems = list(dict.fromkeys(filter(None, map(_refusal, looks))))
    if problems:
        raise ConfigurationError(where, problems)


def _refusal(look: Callable[[], object]) -> str:
    try:
        look()
    except UsageError as error:
        return str(error)
    return ""


def _refuse_unknown_fields(job: Job, benchmark: Benchmark) -> None:
    share = job.settings.hard_subset.share
    fields = [field for field in benchmark.vocabularies if field != ANY_FIELD]
    unknown = sorted(set(share) - set(fields)) if isinstance(share, dict) and fields else []
    if unknown:
        raise UsageError(f"hard_subset.share.{unknown[0]}: {benchmark.name} has the fields {', '.join(fields)}")
