"""What is wrong with settings, in one line with the path of the key."""

from collections.abc import Sequence
from typing import Any

from pydantic import ValidationError

from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import ANY_FIELD
from tasks.config import Job, Settings, expectations_of, policies_of
from tasks.rules.errors import UsageError
from tasks.run import template_of

_PYDANTIC_WORDS = ("constrained-", "dict[", "tuple[", "literal[")
"""How pydantic names the branches of a union, which no user wrote."""


def settings_from(document: dict[str, Any], where: str) -> Settings:
    """The settings of a document; `where` is what messages call it.

    Raises:
        UsageError: they are broken; the first problem, with the path of its key.
    """
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


def refuse_impossible(job: Job, where: str) -> None:
    """Refuse what only the benchmark can tell to be wrong.

    Raises:
        UsageError: a check or field is unknown, or a template is not there.
    """
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
