"""Templates by name: an earlier one is asked for in the words, and stands under the hash, that it always had."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tasks.benchmarks import load_benchmark
from tasks.config.job import Job
from tasks.plan.plan import former_template_notices, plan
from tasks.run.judgings import Judging, judgings
from tests.faults.server import FaultServer
from tests.kit import job_on, judged, prepared, sampled
from warehouse import Warehouse

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
def test_the_default_is_another_and_marks_its_quotes(benchmark: str, grading: str, name: str, former: str) -> None:
    default = judging_by(benchmark, grading=grading)

    assert default.template_hash != former
    assert "<<marker>>" in default.template
    assert default.evidence_template is None or "<<marker>>" in default.evidence_template


def test_a_template_of_ones_own_goes_with_the_search_that_it_always_went_with(tmp_path: Path) -> None:
    own = tmp_path / "own.txt"
    own.write_text("<<conversation>>\n<<rubric_item>>", encoding="utf-8")
    former = judging_by("researchrubrics", grading="binary", template="researchrubrics_binary_v1")

    assert former.evidence_template == judging_by("researchrubrics", template=str(own)).evidence_template


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Job]]:
    """Jobs of one sampled warehouse, whose judge has a template."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with FaultServer() as server:
        served = {"api_base": server.api_base}

        def job(template: str) -> Job:
            judge = {"name": "hosted_vllm/judge", "label": "judge", "template": template, **served}
            return job_on(
                "sample", tmp_path, models=[{"name": "hosted_vllm/a", "label": "a", **served}], judges=[judge]
            ).model_copy(update={"limit": 1})  # fmt: skip

        sampled(prepared(job("default")))
        yield job


@pytest.mark.slow
def test_the_plan_says_what_another_template_rejudges_and_how_to_keep_the_last(at: Callable[..., Job]) -> None:
    n_criteria = judged(at("binary_v1")).rows
    planned = plan(at("default"))[-1]

    assert planned.calls == n_criteria
    assert planned.judged_before == (
        f"{n_criteria} verdicts were made with template binary_v1 (`template: binary_v1` goes on with it); they "
        "are kept together with the new ones"
    )
    assert former_template_notices(at("default")) == [f"judge: {planned.judged_before}"]
    kept = plan(at("binary_v1"))[-1]
    assert (kept.calls, kept.judged_before) == (0, "")

    judged(at("default"))
    assert plan(at("default"))[-1].judged_before == ""
    with Warehouse(at("default").warehouse).reader() as reader:
        assert 2 * n_criteria == reader.value("select count(*) from verdicts")


@pytest.mark.slow
def test_a_first_judging_is_judged_again_by_nobody(at: Callable[..., Job]) -> None:
    planned = plan(at("default"))[-1]
    assert planned.calls > 0
    assert planned.judged_before == ""
