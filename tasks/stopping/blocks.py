"""The next block: which tasks which models are evaluated on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tasks.config import Job
from tasks.run import Comparison, Progress


@dataclass(frozen=True)
class Block:
    """The comparisons that are looked at after the same block, and what has to be evaluated before."""

    number: int
    comparisons: tuple[Comparison, ...]
    tasks: Mapping[str, frozenset[str]]
    """Model -> the tasks of the block."""

    def jobs(self, job: Job) -> list[Job]:
        """The job narrowed to the block: one for all models with the same tasks."""
        by_tasks: dict[frozenset[str], list[str]] = {}
        for model in job.settings.models:
            if tasks := self.tasks.get(model.label):
                by_tasks.setdefault(tasks, []).append(model.label)
        return [_narrowed(job, labels, tasks) for tasks, labels in by_tasks.items()]


def next_block(progress: Sequence[Progress], passed: Mapping[tuple[str, ...], int]) -> Block | None:
    """The next block of the comparisons that are open; None where all are settled.

    `passed` are the blocks that were evaluated without a look, because the other model is not evaluated so far.
    """
    due = {each.comparison.key: max(each.block, passed.get(each.comparison.key, 0)) + 1 for each in progress}
    waiting = [
        each.comparison
        for each in progress
        if not each.is_settled and due[each.comparison.key] <= len(each.comparison.rule.ends)
    ]
    if not waiting:
        return None
    number = min(due[each.key] for each in waiting)
    chosen = tuple(each for each in waiting if due[each.key] == number)
    tasks: dict[str, frozenset[str]] = {}
    for each in chosen:
        of_block = frozenset(_tasks_of(each, number))
        for label in each.labels:
            tasks[label] = tasks.get(label, frozenset()) | of_block
    return Block(number, chosen, tasks)


def _tasks_of(comparison: Comparison, number: int) -> tuple[str, ...]:
    ends = (0, *comparison.rule.ends)
    return comparison.order[ends[number - 1] : ends[number]]


def _narrowed(job: Job, labels: list[str], tasks: frozenset[str]) -> Job:
    models = tuple(model for model in job.settings.models if model.label in labels)
    settings = job.settings.model_copy(update={"models": models, "stopping": None})
    return job.model_copy(
        update={
            "settings": settings, "named_models": tuple(labels), "named_tasks": tuple(sorted(tasks)), "limit": None,
        }
    )  # fmt: skip
