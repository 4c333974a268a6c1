"""Refusing a run whose models cannot be called for want of a key; one that has nothing to call needs none."""

from collections.abc import Collection, Iterator
from typing import NamedTuple

from tasks.config.job import Job
from tasks.llm.environment import missing_key
from tasks.llm.request import Target
from tasks.rules.errors import UsageError
from tasks.rules.variants import AUGMENTED
from tasks.run.judgings import judge_target, judgings, target_of
from tasks.run.missing_work import (
    missing_responses,
    missing_splits,
    missing_verdicts,
    unworded_criteria,
    wanted_rubrics,
    wanted_tasks,
)
from tasks.run.stages import ANALYST_ROLES, CALLED_ROLES, JUDGE, MODEL, RUBRIC_WRITER
from warehouse import Warehouse, WarehouseError


class Callee(NamedTuple):
    """Something that a job may call; `asked_for` is the label of the cascade that asks a judge, if one does."""

    role: str
    label: str
    target: Target
    is_batched: bool = False
    asked_for: str | None = None

    def __str__(self) -> str:
        return self.role if self.role == RUBRIC_WRITER else f"{self.role} {self.label}"


def callees(job: Job, roles: Collection[str] = ANALYST_ROLES) -> Iterator[Callee]:
    """The models and judges that a job may call, its writer of rubrics if a rubric needs one, and analysts of roles."""
    for model in job.settings.models:
        if model.is_imported:
            continue
        yield Callee(MODEL, model.label, target_of(model))
    for judge in job.settings.judges:
        cascade = judge.label if judge.cascade else None
        for asked in judge.cascade.members if judge.cascade else (judge,):
            yield Callee(JUDGE, asked.label, judge_target(asked), asked.mode == "batch", cascade)
    writer = job.settings.rubric_writer
    if writer is not None and AUGMENTED in wanted_rubrics(job):
        yield Callee(RUBRIC_WRITER, writer.label, target_of(writer))
    for role in ANALYST_ROLES:
        for analyst in getattr(job.settings, role) if role in roles else ():
            yield Callee(role, analyst.label, target_of(analyst), analyst.mode == "batch")


def callees_here(job: Job, roles: Collection[str]) -> Iterator[Callee]:
    """Those that are called from this machine; what a cluster calls finds its keys there, but batches start here."""
    calls = job.settings.calls
    is_here = calls.where == "here" or calls.address == "local"
    return (callee for callee in callees(job, roles) if is_here or callee.is_batched)


def refuse_without_key(job: Job, roles: Collection[str] = CALLED_ROLES, *, retry_failed: bool = False) -> None:
    """Refuse a job that is to call something from here, in one of some roles, whose key is not set.

    A database that cannot be read yet says nothing about what is to be called; the run makes it readable first, and
    asks again.

    Raises:
        UsageError: there is one.
    """
    lacking = [
        (each, key) for each in callees_here(job, roles) if each.role in roles and (key := missing_key(each.target))
    ]
    if not lacking:
        return
    try:
        called = _called(job, [each for each, _ in lacking], roles, retry_failed=retry_failed)
    except WarehouseError:
        return
    named = [f"{each}: {key} is not set" for each, key in lacking if each in called]
    if named:
        more = f" (and {len(named) - 1} more)" if len(named) > 1 else ""
        raise UsageError(f"{named[0]}; export the key of the provider{more}")


def has_calls(job: Job, roles: Collection[str] = CALLED_ROLES, *, retry_failed: bool = False) -> bool:
    """Whether something is missing, as far as is known, that a job is to call one of some roles for."""
    try:
        asked = [each for each in callees(job, roles) if each.role in roles]
        return bool(_called(job, asked, roles, retry_failed=retry_failed))
    except WarehouseError:
        return False


def _called(job: Job, asked: Collection[Callee], roles: Collection[str], *, retry_failed: bool) -> list[Callee]:
    """Those that have calls to answer; before the data set is ingested, all."""
    warehouse = Warehouse(job.warehouse)
    if not warehouse.database.exists():
        return list(asked)
    warehouse.renew_if_damaged()
    with warehouse.reader() as reader:
        if missing_splits(job, reader):
            return list(asked)
        wanted, settings = wanted_tasks(job, reader), job.settings
        again = {"retry_failed": retry_failed}
        responses = {each.label for each in settings.models if missing_responses(job, wanted, reader, each, **again)}
        rubrics = {each for each in wanted_rubrics(job) if unworded_criteria(wanted, reader, each, **again)}
        judged = judgings(job, wanted.benchmark) if any(each.role == JUDGE for each in asked) else []
        verdicts = {each.judge.label for each in judged if missing_verdicts(job, wanted, reader, each, **again)}
    # A judge also has calls for what is sampled and reworded before it.
    if MODEL in roles and responses:
        verdicts |= {judge.label for judge in settings.judges}
    if RUBRIC_WRITER in roles:
        verdicts |= {judge.label for judge in settings.judges if judge.rubric in rubrics}
    missing = {MODEL: responses, JUDGE: verdicts}
    return [
        each
        for each in asked
        # An analysis that has nothing to ask calls nobody, and asks for no key.
        if each.role in ANALYST_ROLES
        or (each.role == RUBRIC_WRITER and AUGMENTED in rubrics)
        or (each.asked_for or each.label) in missing.get(each.role, ())
    ]
