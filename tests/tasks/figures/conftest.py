"""The made-up warehouse of the report's tests, for reading."""

from tests.tasks.report.conftest import scope, world_job

__all__ = ["scope", "world_job"]
