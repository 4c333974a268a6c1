"""The output of the full pipeline on three made-up warehouses stays the same, row by row."""

import pytest

from tasks.config.job import Job
from tests.golden.outputs import Outputs, differences, kept, moved, outputs_of

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("research_site", "world_site")]


@pytest.fixture(scope="module")
def outputs(world_job: Job, research_job: Job, tmp_path_factory: pytest.TempPathFactory) -> Outputs:
    """All outputs of the current code."""
    folder = tmp_path_factory.mktemp("golden")
    jobs = {"world": world_job, "research": research_job}
    return outputs_of(folder, {name: moved(job, folder / name) for name, job in jobs.items()})


@pytest.mark.parametrize("name", kept())
def test_an_output_is_as_it_is_kept(outputs: Outputs, name: str) -> None:
    assert name in outputs, f"{name} is gone"
    actual = differences(name, kept()[name], outputs[name])
    assert not actual, "\n".join(actual)


def test_every_output_is_kept(outputs: Outputs) -> None:
    assert set(kept()) == set(outputs)
