"""All checks of `prbench doctor`. No key is ever shown, and nothing heavy is imported."""

from flows.cli.operate.doctor_configuration import check_configuration, check_data_set, check_models, check_nights
from flows.cli.operate.doctor_storage import check_versions, check_warehouse
from flows.cli.operate.findings import Finding
from flows.run.validation import ConfigurationError
from flows.server.prefect_check import check_server
from tasks.config import Job


def examine(job: Job) -> list[Finding]:
    """Check the configuration, the data set, the models, Prefect's server, the warehouse and the versions."""
    return [
        *check_configuration(job),
        *check_data_set(job),
        *check_models(job),
        *check_nights(job),
        Finding("Prefect server", *check_server()),
        *check_warehouse(job),
        *check_versions(),
    ]


def examine_broken(error: ConfigurationError) -> list[Finding]:
    """All problems of a configuration that describes no job, and what can be checked without one."""
    return [
        *(Finding(f"configuration {error.where}", False, problem) for problem in error.problems),
        Finding("Prefect server", *check_server()),
        *check_versions(),
    ]
