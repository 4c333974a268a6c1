"""Refusing a run whose models cannot be called for want of a key; one that has nothing to call needs none."""

from collections.abc import Collection

from tasks.config import Endpoint, Job
from tasks.llm import missing_key
from tasks.rules.errors import UsageError
from tasks.run.judgings import judgings
from tasks.run.missing_work import missing_responses, missing_splits, missing_verdicts, wanted_tasks
from tasks.run.part_writer import judge_target, target_of
from warehouse import Reader, Warehouse

CALLED_ROLES = ("model", "judge")


def refuse_without_key(job: Job, roles: Collection[str] = CALLED_ROLES) -> None:
    """Refuse a job that is to call a model, in one of some roles, whose key is not set.

    Raises:
        UsageError: there is one.
    """
    settings = job.settings
    lacking: list[tuple[str, Endpoint, str]] = [
        *(("model", model, name) for model in settings.models if (name := missing_key(target_of(model)))),
        *(("judge", judge, name) for judge in settings.judges if (name := missing_key(judge_target(judge)))),
    ]
    lacking = [each for each in lacking if each[0] in roles]
    if lacking and _has_calls(job, {endpoint.label for _, endpoint, _ in lacking}):
        role, endpoint, name = lacking[0]
        more = f" (and {len(lacking) - 1} more)" if len(lacking) > 1 else ""
        raise UsageError(f"{role} {endpoint.label}: {name} is not set; export the key of the provider{more}")


def _has_calls(job: Job, labels: set[str]) -> bool:
    """Whether one of these models or judges has a call to make; a judge has some where a response is missing."""
    warehouse = Warehouse(job.warehouse)
    if not warehouse.database.exists():
        return True
    with warehouse.reader() as reader:
        return bool(missing_splits(job, reader)) or _lacks_rows(job, labels, reader)


def _lacks_rows(job: Job, labels: set[str], reader: Reader) -> bool:
    wanted = wanted_tasks(job, reader)
    of_judge = any(judge.label in labels for judge in job.settings.judges)
    return any(
        missing_responses(job, wanted, reader, model, target_of(model).config_hash, retry_failed=False)
        for model in job.settings.models
        if of_judge or model.label in labels
    ) or any(
        missing_verdicts(job, wanted, reader, judging, retry_failed=False)
        for judging in judgings(job, wanted.benchmark)
        if judging.judge.label in labels
    )
