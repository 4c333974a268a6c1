"""Models, judges and vintages that are named for a run, and that it cannot work on."""

from tasks.compare import EVERY
from tasks.config.job import Job
from tasks.rules.errors import UsageError
from warehouse import Warehouse


def refuse_unknown_names(job: Job) -> None:
    """Refuse a named model, judge or vintage that no calls can be made for.

    Raises:
        UsageError: there is one.
    """
    refuse_every_vintage(job)
    refuse_unknown_models(job)
    refuse_unknown_judges(job)


def refuse_every_vintage(job: Job) -> None:
    """Refuse all vintages at once: only leaderboards and reports show them.

    Raises:
        UsageError: they are named.
    """
    if job.vintage == EVERY:
        raise UsageError(f"--vintage {EVERY}: works only for leaderboards and reports; name one vintage")


def refuse_unknown_judges(job: Job) -> None:
    """Refuse a named judge that is not configured.

    Raises:
        UsageError: there is one.
    """
    unknown = sorted(set(job.named_judges or ()) - {judge.label for judge in job.settings.judges})
    if unknown:
        cascades = [
            judge.label
            for judge in job.settings.judges
            if judge.cascade and unknown[0] in {member.label for member in judge.cascade.members}
        ]
        if cascades:
            raise UsageError(f"--judge {unknown[0]}: judges only within a cascade; name {' or '.join(cascades)}")
        raise UsageError(f"--judge {unknown[0]}: is not configured")


def refuse_unknown_models(job: Job) -> None:
    """Refuse a named model that is neither configured nor has imported answers.

    Raises:
        UsageError: there is one.
    """
    configured = {model.label for model in job.settings.models}
    unknown = sorted(set(job.named_models or ()) - configured)
    if unknown and Warehouse(job.warehouse).database.exists():
        Warehouse(job.warehouse).renew_if_damaged()
        with Warehouse(job.warehouse).reader() as reader:
            rows = reader.rows("select distinct model from responses where source = 'imported'")
        unknown = sorted(set(unknown) - {row["model"] for row in rows})
    if unknown:
        raise UsageError(f"--model {unknown[0]}: is neither configured nor the model of an imported response")
