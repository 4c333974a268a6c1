"""Prefect's UI tells the runs of several warehouses and benchmarks apart."""

import re
from pathlib import Path

import pytest

from flows.recorded.names import about, artifact_key, tags_of, warehouse_name
from tests.builders import job_on


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("/srv/evals/warehouse/data", "evals"),
        ("/srv/evals/nights", "nights"),
        ("/warehouse/data", "root"),
    ],
)
def test_a_warehouse_is_named_after_its_folder_or_after_the_one_with_the_default_folder(folder: str, name: str) -> None:
    assert warehouse_name(Path(folder)) == name


def test_names_and_tags_carry_warehouse_and_benchmark(tmp_path: Path) -> None:
    job = job_on("sample", tmp_path / "evals").model_copy(update={"night": "2026-11-22", "named_models": ("a", "b")})
    assert about(job) == "evals prbench 2026-11-22 a, b"
    assert tags_of(job)[:3] == ["evals", "prbench", "2026-11-22"]


def test_artifacts_of_two_warehouses_of_one_name_have_keys_of_their_own(tmp_path: Path) -> None:
    jobs = [job_on("sample", tmp_path / place / "My Evals") for place in ("one", "two")]
    keys = {artifact_key(job, "report-link") for job in jobs}
    assert len(keys) == len(jobs)
    assert all(re.fullmatch(r"my-evals-prbench-report-link-[0-9a-f]{6}", key) for key in keys)
