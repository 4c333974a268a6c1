"""The made-up warehouses of the report's tests with their reports, for reading."""

from tests.tasks.report.conftest import research_job, research_site, world_job, world_site

__all__ = ["research_job", "research_site", "world_job", "world_site"]
