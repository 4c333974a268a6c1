"""Templates by name: an earlier one is asked for in the words, and stands under the hash, that it always had."""

from pathlib import Path
from typing import Any

import pytest

from tasks.benchmarks import load_benchmark
from tasks.scope import Judging, judgings
from tests.builders import job_on

FORMER = [
    ("prbench", "binary", "binary_v1", "99177e395235a93e544d4963997a3b79"),
    ("healthbench", "binary", "healthbench_v1", "e897b9fd84c5dcf69aee20776b4dedac"),
    ("researchrubrics", "ternary", "researchrubrics_ternary_v1", "411a18cf21b3e29784a6f41693a9b406"),
    ("researchrubrics", "binary", "researchrubrics_binary_v1", "682c3f7ef6a048272383cc6de6e919e2"),
]


def judging_by(benchmark: str, **judge: Any) -> Judging:
    job = job_on("sample", Path("nowhere"), benchmark=benchmark, judges=[{"name": "openai/gpt-4o", **judge}])
    return judgings(job, load_benchmark(benchmark))[0]


@pytest.mark.parametrize(("benchmark", "grading", "name", "wanted"), FORMER)
def test_an_earlier_template_stands_under_the_hash_that_it_always_had(
    benchmark: str, grading: str, name: str, wanted: str
) -> None:
    assert wanted == judging_by(benchmark, grading=grading, template=name).template_hash


@pytest.mark.parametrize(("benchmark", "grading", "name", "former"), FORMER)
def test_the_default_is_another_template_and_marks_what_it_quotes(
    benchmark: str, grading: str, name: str, former: str
) -> None:
    default = judging_by(benchmark, grading=grading)

    assert default.template_hash != former
    assert "<<marker>>" in default.template
    assert default.evidence_template is None or "<<marker>>" in default.evidence_template


def test_a_template_of_ones_own_goes_with_the_search_that_it_always_went_with(tmp_path: Path) -> None:
    own = tmp_path / "own.txt"
    own.write_text("<<conversation>>\n<<rubric_item>>", encoding="utf-8")
    former = judging_by("researchrubrics", grading="binary", template="researchrubrics_binary_v1")

    assert former.evidence_template == judging_by("researchrubrics", template=str(own)).evidence_template
