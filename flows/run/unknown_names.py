"""Models and judges that are named for a run, and that nothing knows."""

from tasks.config import Job
from tasks.rules.errors import UsageError
from warehouse import Warehouse


def refuse_unknown_judges(job: Job) -> None:
    """Refuse a named judge that is not configured.

    Raises:
        UsageError: there is one.
    """
    unknown = sorted(set(job.named_judges or ()) - {judge.label for judge in job.settings.judges})
    if unknown:
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
