"""All checks of `prbench doctor`. No key is ever shown, and nothing heavy is imported."""

from flows.cli.operate.doctor_conditions import check_conditions
from flows.cli.operate.doctor_configuration import (
    check_caps,
    check_configuration,
    check_data_set,
    check_models,
    check_nights,
)
from flows.cli.operate.doctor_senders import check_senders
from flows.cli.operate.doctor_storage import check_versions, check_warehouse
from flows.cli.operate.findings import Finding
from flows.run.validation import ConfigurationError
from flows.server.prefect_check import check_server
from tasks.config.job import Job


def examine(job: Job, *, may_call: bool = False) -> list[Finding]:
    """Check the configuration, the data set, the models, Prefect's server, the warehouse and the versions.

    With `may_call`, each model is called once, with one token.
    """
    return [
        *check_configuration(job),
        *_of_job(job, may_call=may_call),
        Finding("Prefect server", *check_server()),
        *check_versions(),
    ]


def _of_job(job: Job, *, may_call: bool) -> list[Finding]:
    return [
        *check_data_set(job), *check_models(job, may_call=may_call), *check_caps(job, may_call=may_call),
        *check_conditions(job), *check_senders(job), *check_nights(job), *check_warehouse(job),
    ]  # fmt: skip


def examine_broken(error: ConfigurationError) -> list[Finding]:
    """All problems of a configuration that is broken, and those that can be found of the rest of it."""
    # What the rest seems to have in order may be a default in the place of what is broken.
    rest = [] if error.job is None else [each for each in _of_job(error.job, may_call=False) if each.is_ok is False]
    return [
        *(Finding(f"configuration {error.where}", False, problem) for problem in error.problems),
        *(each for each in rest if each.detail not in error.problems),
        Finding("Prefect server", *check_server()),
        *check_versions(),
    ]
