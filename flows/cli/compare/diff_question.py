"""What `prbench diff` asks of a warehouse."""

from collections.abc import Sequence

from tasks.benchmarks import load_benchmark
from tasks.compare import KINDS, Question
from tasks.config import Job
from tasks.dataset import open_source
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
        raise UsageError(f"--score {chosen}: {benchmark.name} has {', '.join(scores)}")
    dataset = job.settings.dataset
    # Whether the splits exist is looked up in the warehouse: a file's revision is the same whatever splits are chosen.
    located = dataset if dataset.source == "hub" else dataset.model_copy(update={"splits": ()})
    return Question(
        benchmark=benchmark.name,
        names=tuple(names),
        kind=next((known for known in KINDS if known == kind), None),
        revision=open_source(located, benchmark).revision,
        splits=dataset.splits,
        is_hard=is_hard,
        score=chosen,
        clips_mean=scores[chosen].clips_mean,
        models=job.named_models or (),
        judges=job.named_judges or (),
        vintage=vintage,
    )
