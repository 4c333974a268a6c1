"""The made-up warehouse of the report's tests, for reading."""

from tests.tasks.report.conftest import world_job

__all__ = ["world_job"]
