"""Under which licence the tasks of an export may be used."""

from dataclasses import dataclass

from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.config.settings import Dataset
from tasks.dataset import sample_of, with_revision
from warehouse import sample_path

_OF_SAMPLES = "apache-2.0"
_UNKNOWN = "unknown"


@dataclass(frozen=True)
class Licence:
    """A licence by the hub's name for it, and what is to be said about it."""

    name: str
    said: str


def licence_of(job: Job, benchmark: Benchmark) -> Licence:
    """The licence of the tasks at the job's revision."""
    if _is_own_sample(job, benchmark):
        return Licence(_OF_SAMPLES, f"The tasks are this pipeline's own sample for {benchmark.title} ({_OF_SAMPLES}).")
    if benchmark.licence is None:
        return Licence(_UNKNOWN, f"The licence of {benchmark.title} is not known to this pipeline; ask its publisher.")
    where = f"https://huggingface.co/datasets/{benchmark.default_dataset_id}"
    return Licence(
        benchmark.licence,
        f"Tasks, conversations and rubrics are those of {benchmark.title}, which is published at {where} under "
        f"{benchmark.licence}; name it when you pass them on. If yours come from elsewhere, the terms there count.",
    )


def _is_own_sample(job: Job, benchmark: Benchmark) -> bool:
    """Whether the job's revision is that of the sample that ships."""
    if sample_of(benchmark.name) != sample_path(benchmark.name):
        return False
    settings = job.settings.model_copy(update={"dataset": Dataset(source="sample")})
    return with_revision(job.model_copy(update={"settings": settings})).data.revision == job.data.revision
