"""The output of the full pipeline on three made-up warehouses stays the same, row by row."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from tasks.config.job import Job
from tests.golden.outputs import PARTS, Outputs, differences, kept, moved, outputs_of

pytestmark = [
    pytest.mark.slow,
    pytest.mark.usefixtures("research_site", "world_site"),
]


@pytest.fixture(scope="module")
def outputs(
    world_job: Job,
    research_job: Job,
    tmp_path_factory,
) -> Callable[[str], Outputs]:
    """All outputs of a part of the current code, made at the first call."""
    folder = tmp_path_factory.mktemp("golden")
    jobs = {
        name: moved(job, folder / name)
        for name, job in (("world", world_job), ("research", research_job))
    }
    return cache(lambda part: outputs_of(part, folder, jobs))


def marked(name: str) -> Any:
    """A parameter of tests: the outputs of the larger warehouses take long; those of the smaller
    one show the same.
    """
    is_long = name.partition("/")[0] in {"world", "stopped"}
    return pytest.param(name, marks=pytest.mark.long if is_long else ())


@pytest.mark.parametrize("name", map(marked, kept()))
def test_an_output_is_as_it_is_kept(outputs, name):
    part_outputs = outputs(name.partition("/")[0])
    assert name in part_outputs, f"{name} is gone"

    changes = differences(name, kept()[name], part_outputs[name])

    assert not changes, "\n".join(changes)


@pytest.mark.parametrize("part", map(marked, PARTS))
def test_every_output_is_kept(outputs, part):
    names = {name for name in kept() if name.startswith(f"{part}/")}
    assert outputs(part).keys() == names
