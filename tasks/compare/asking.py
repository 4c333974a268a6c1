"""What a job asks of a warehouse: the names to compare, with what its options narrow."""

from collections.abc import Sequence

from tasks.benchmarks import load_benchmark
from tasks.compare.model_run import KINDS, Question
from tasks.config.job import Job
from tasks.rules.errors import UsageError


def question_of(
    job: Job, names: Sequence[str], kind: str | None, *, score: str | None, is_hard: bool, vintage: str | None
) -> Question:
    """What a job asks.

    Raises:
        UsageError: the benchmark has no such score, or the configured data set is not there.
    """
    benchmark = load_benchmark(job.settings.benchmark)
    scores = {definition.score_name: definition for definition in benchmark.scores}
    chosen = score or benchmark.primary_score.score_name
    if chosen not in scores:
        raise UsageError(f"--score {chosen}: no such score; {benchmark.name} has {', '.join(scores)}")
    return Question(
        benchmark=benchmark.name,
        names=tuple(names),
        kind=next((known for known in KINDS if known == kind), None),
        revision=job.data.revision,
        splits=job.settings.dataset.splits,
        is_hard=is_hard,
        score=chosen,
        clips_mean=scores[chosen].clips_mean,
        models=job.named_models or (),
        judges=job.named_judges or (),
        vintage=vintage,
    )
