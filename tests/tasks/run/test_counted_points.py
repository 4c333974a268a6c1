"""What is missing and covered is the same whether counted from responses' points or from verdicts."""

import duckdb
import pytest

from tasks.benchmarks import load_benchmark
from tasks.config.job import Job
from tasks.run.coverage import coverage
from tasks.run.judge_configs import judge_configs
from tasks.run.missing_work import MissingVerdicts, missing_verdicts, wanted_tasks
from tests.kit import copied
from warehouse import Warehouse

pytestmark = pytest.mark.slow


@pytest.fixture
def without_points(world_job, tmp_path) -> Job:
    """The job on a copy of its published database without any response's points."""
    job = copied(world_job, tmp_path / "copy")
    with duckdb.connect(str(Warehouse(job.warehouse).database)) as connection:
        connection.execute("delete from intermediate.response_points")
    return job


def missing_by_judge(job: Job) -> dict[str, list[MissingVerdicts]]:
    """Return the responses that lack verdicts of each configured judge."""
    benchmark = load_benchmark(job.settings.benchmark)
    with Warehouse(job.warehouse).reader() as reader:
        job_tasks = wanted_tasks(job, reader)
        return {
            judge_config.judge.label: missing_verdicts(
                job, job_tasks, reader, judge_config
            )
            for judge_config in judge_configs(job, benchmark)
        }


def test_coverage_from_points_is_that_from_verdicts(world_job, without_points):
    cells = coverage(world_job, only_stored=True)

    assert any(cell.failures for cell in cells if cell.judge)
    assert any(cell.share == 1 for cell in cells if cell.judge)
    assert coverage(without_points, only_stored=True) == cells


def test_missing_verdicts_from_points_are_those_from_verdicts(
    world_job, without_points
):
    missing = missing_by_judge(world_job)

    assert any(missing.values())
    assert missing_by_judge(without_points) == missing
