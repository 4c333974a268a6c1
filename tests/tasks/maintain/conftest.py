"""An evaluated warehouse, and the provider of its models."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from flows.execution import execute
from tasks.aggregate import aggregate
from tasks.config.job import Job
from tests.faults.server import FaultServer
from tests.kit import endpoint, few_published, job_on, judged, prepared, sampled


@pytest.fixture(scope="session")
def provider() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


@pytest.fixture(scope="session")
def shared(provider: FaultServer, tmp_path_factory) -> Job:
    """A sampled, judged and aggregated job on the sample, with a ledger."""
    folder = tmp_path_factory.mktemp("evaluated")
    parameters = {"api_base": provider.api_base, "max_tokens": 1000}
    job = job_on(
        "sample",
        folder,
        models=[endpoint("a", **parameters)],
        judges=[endpoint("judge", **parameters)],
    )
    with few_published("leaderboard"):
        execute(job, lambda: [sampled(prepared(job)), judged(job), aggregate(job)])
    return job


def job_at(
    server: FaultServer,
    folder: Path,
    source: Path | str = "sample",
    **judge: Any,
) -> Job:
    price = {
        "input_usd_per_mtok": 1.0,
        "cached_usd_per_mtok": 1.0,
        "output_usd_per_mtok": 1.0,
    }
    parameters = {"max_tokens": 1000, "price": price}
    judge_parameters = parameters | {"name": "openai/judge"} | judge
    return job_on(
        source,
        folder,
        models=[endpoint("a", server.api_base, **parameters)],
        judges=[endpoint("judge", server.api_base, **judge_parameters)],
        limits={"attempts": 2},
    )
