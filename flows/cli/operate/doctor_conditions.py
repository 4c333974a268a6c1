"""The check of `prbench doctor` on the conditions of models."""

from collections.abc import Iterator

from flows.cli.operate.findings import Finding
from tasks.config.job import Job
from warehouse import Warehouse


def check_conditions(job: Job) -> Iterator[Finding]:
    """Whether each label of a condition is configured, or the model of a stored response."""
    conditions = job.settings.conditions
    if not conditions:
        return
    configured = {model.label for model in job.settings.models}
    others = {label for labels in conditions.values() for label in labels.values()} - configured
    database = Warehouse(job.warehouse).database
    if others and not database.exists():
        detail = f"neither configured nor stored yet: {', '.join(sorted(others))}; import their responses"
        yield Finding("conditions", None, detail)
        return
    if others:
        # It brings NumPy and SciPy along, which most configurations do not need here.
        from tasks.aggregate.conditions import unknown_labels

        with Warehouse(job.warehouse).reader() as reader:
            wrong = unknown_labels(reader, job)
        yield from (Finding("conditions", False, problem) for problem in wrong)
        if wrong:
            return
    yield Finding("conditions", True, "; ".join(f"{name}: {', '.join(labels)}" for name, labels in conditions.items()))
