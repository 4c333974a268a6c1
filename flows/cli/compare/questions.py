"""Queries below sql/questions/compare/ on the stored results, and refusing unknown names."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tasks.config.job import Job
    from warehouse import Reader

_NAMES = {
    "graders": ("judge", "select grader from graders where benchmark = ?"),
    "people": ("people", "select grader from graders where benchmark = ?"),
}
"""Lists of graders that questions take, with the option they come from and a query for those of the benchmark."""
Records = list[dict[str, Any]]


def answer(
    job: "Job",
    question: str,
    parameters: Mapping[str, Any],
    read: "Callable[[Reader, Mapping[str, Any]], Records] | None" = None,
    **names: str | None,
) -> Records:
    """The answer to a question on the job's data-set revision, or what `read` makes of it.

    With a keyword `score` (None: the primary one) the question gets the score's name.

    Raises:
        UsageError: the benchmark has no such score, or nothing stored has a name that was given.
    """
    from tasks.benchmarks import load_benchmark
    from tasks.compare.figures import query_of
    from tasks.rules.errors import UsageError
    from warehouse import Warehouse

    benchmark, data = load_benchmark(job.settings.benchmark), job.data
    given = {**parameters, "benchmark": benchmark.name, "revision": data.revision}
    if "score" in names:
        known = [definition.score_name for definition in benchmark.scores]
        given["score"] = names["score"] or benchmark.primary_score.score_name
        if given["score"] not in known:
            raise UsageError(f"--score {given['score']}: no such score; {benchmark.name} has {', '.join(known)}")
    with Warehouse(job.warehouse).reader() as reader:
        _refuse_unknown(reader, given)
        return read(reader, given) if read else reader.rows(query_of(question), given)


def _refuse_unknown(reader: "Reader", given: Mapping[str, Any]) -> None:
    """Refuse an unknown name."""
    from tasks.rules.errors import UsageError

    for names, (option, query) in _NAMES.items():
        if not given.get(names):
            continue
        known = sorted(name for row in reader.rows(query, [given["benchmark"]]) for name in row.values())
        unknown = [name for name in given[names] if name not in known]
        if unknown and known:
            raise UsageError(f"--{option} {unknown[0]}: not found; known: {', '.join(map(str, known))}")
