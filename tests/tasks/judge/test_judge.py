"""Templates by name, thinking that is left out, and failures that later runs do not retry."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tasks.benchmarks import load_benchmark
from tasks.config.job import Job
from tasks.llm.reading import MOST_TEXT_BYTES
from tasks.plan.plan import plan
from tasks.run.judge_configs import JudgeConfig, judge_configs
from tasks.run.writing import StageReport
from tests.faults.server import (
    Behaviour,
    FaultServer,
    HttpResponse,
    Request,
    is_judge_request,
    well_behaved,
)
from tests.kit import endpoint, job_on, judged, prepared, rows_in, sampled
from warehouse import Warehouse

FORMER = [
    ("prbench", "binary", "binary_v1", "99177e395235a93e544d4963997a3b79"),
    ("healthbench", "binary", "healthbench_v1", "e897b9fd84c5dcf69aee20776b4dedac"),
    (
        "researchrubrics",
        "ternary",
        "researchrubrics_ternary_v1",
        "411a18cf21b3e29784a6f41693a9b406",
    ),
    ("researchrubrics", "binary", "researchrubrics_binary_v1", "682c3f7ef6a048272383cc6de6e919e2"),
]


def judge_config_of(benchmark: str, **judge: Any) -> JudgeConfig:
    job = job_on(
        "sample", Path("nowhere"), benchmark=benchmark, judges=[{"name": "openai/gpt-4o", **judge}]
    )
    return judge_configs(job, load_benchmark(benchmark))[0]


@pytest.mark.parametrize(("benchmark", "grading", "name", "former"), FORMER)
def test_an_earlier_template_has_the_hash_that_it_always_had_and_the_default_is_another_that_marks_its_quotes(
    benchmark: str, grading: str, name: str, former: str
) -> None:
    default = judge_config_of(benchmark, grading=grading)

    assert (
        former
        == judge_config_of(benchmark, grading=grading, template=name).template_hash
        != default.template_hash
    )
    assert "<<marker>>" in default.template
    assert default.evidence_template is None or "<<marker>>" in default.evidence_template


def test_a_template_of_ones_own_goes_with_the_search_that_it_always_went_with(
    tmp_path: Path,
) -> None:
    own = tmp_path / "own.txt"
    own.write_text("<<conversation>>\n<<rubric_item>>", encoding="utf-8")
    former = judge_config_of(
        "researchrubrics", grading="binary", template="researchrubrics_binary_v1"
    )

    assert (
        former.evidence_template
        == judge_config_of("researchrubrics", template=str(own)).evidence_template
    )


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Job]]:
    """Make jobs on one sampled warehouse, whose judge has the given template."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    with FaultServer() as server:

        def job(template: str) -> Job:
            judges = [endpoint("judge", server.api_base, template=template)]
            rows = job_on(
                "sample", tmp_path, models=[endpoint("a", server.api_base)], judges=judges
            )
            return rows.model_copy(update={"limit": 1})

        sampled(prepared(job("default")))
        yield job


@pytest.mark.slow
@pytest.mark.usefixtures("without_scores")
def test_the_plan_says_what_another_template_rejudges_and_how_to_keep_the_last(
    at: Callable[..., Job],
) -> None:
    assert (
        plan(at("default"))[-1].judged_before == ""
    )  # the first judge configuration replaces none
    n_criteria = judged(at("binary_v1")).rows
    planned = plan(at("default"))[-1]

    assert planned.calls == n_criteria > 0
    assert (
        planned.judged_before
        == f"{n_criteria} verdicts were made with template binary_v1 (`template: binary_v1` goes on"
        " with it); they are kept together with the new ones"
    )
    kept = plan(at("binary_v1"))[-1]
    assert kept.calls == 0
    assert kept.judged_before == ""

    judged(at("default"))
    assert plan(at("default"))[-1].judged_before == ""
    with Warehouse(at("default").warehouse).reader() as reader:
        assert 2 * n_criteria == reader.value("select count(*) from verdicts")


def swallows_the_tag(request: Request, number: int) -> HttpResponse:
    """A server that sends thinking without its opening tag, also before a judge's JSON."""
    http_response = well_behaved(request, number)
    return replace(http_response, text=f"First this.</think>\n{http_response.text}")


@pytest.mark.slow
@pytest.mark.usefixtures("without_scores")
def test_replies_are_read_without_their_thinking_and_those_that_are_stored_without_a_call(
    tmp_path: Path,
) -> None:
    with FaultServer(swallows_the_tag) as server:

        def job(**of_model: Any) -> Job:
            judges = [endpoint("judge", server.api_base, omits_think_tag=True)]
            models = [endpoint("a", server.api_base, **of_model)]
            return prepared(
                job_on("sample", tmp_path, models=models, judges=judges).model_copy(
                    update={"limit": 2}
                )
            )

        sampled(job())
        report = judged(job())
        n_calls = len(server.book)
        sampled(job(omits_think_tag=True))
        assert len(server.book) == n_calls
        assert report.failures == {}
    with Warehouse(tmp_path).reader() as reader:
        rows = reader.rows(
            "select task_id, text, model_config_hash from responses order by task_id, len(text)"
        )
        assert {"met", "unmet"} >= {
            row["status"] for row in reader.rows("select status from verdicts")
        }
    assert len({row["model_config_hash"] for row in rows}) == 2
    for read, as_it_came in zip(rows[::2], rows[1::2], strict=True):
        assert f"First this.</think>\n{read['text']}" == as_it_came["text"]


@pytest.mark.slow
@pytest.mark.usefixtures("without_scores")
@pytest.mark.parametrize(
    ("own", "table", "stage"),
    [
        ({}, "responses", sampled),
        ({}, "verdicts", judged),
        ({"criteria_per_call": 5}, "verdicts", judged),
    ],
)
def test_a_row_with_an_unknown_end_is_made_again_without_a_call_when_its_word_is_accepted(
    own: dict[str, Any],
    table: str,
    stage: Callable[..., StageReport],
    server: FaultServer,
    tmp_path: Path,
) -> None:
    def job(**of_both: Any) -> Job:
        models = [endpoint("a", server.api_base, **of_both)]
        judges = [endpoint("judge", server.api_base, **own, **of_both)]
        return prepared(
            job_on("sample", tmp_path, models=models, judges=judges).model_copy(update={"limit": 1})
        )

    def odd_end(request: Request, number: int) -> HttpResponse:
        is_odd = is_judge_request(request) == (stage is judged)
        return replace(well_behaved(request, number), finish_reason="Odd End" if is_odd else "stop")

    server.behaviour = odd_end
    sampled(job())
    stage(job())
    n_calls = len(server.book)
    stage(job())
    stage(job(ends_ok=["another end"]))
    assert {row["status"] for row in rows_in(job(), f"select status from {table}")} == {"unclear"}
    stage(job(ends_ok=["odd end"]))
    assert "unclear" not in {row["status"] for row in rows_in(job(), f"select status from {table}")}
    assert n_calls == len(server.book)


AWAY = HttpResponse(
    status=307,
    raw=b"",
    headers={"Location": "http://elsewhere.example/v1/chat/completions"},
)
LARGE = HttpResponse("x" * (MOST_TEXT_BYTES + 1))


def first_fails(http_response: HttpResponse, *, is_judge: bool) -> Behaviour:
    """A provider whose first reply to a judge, or to a model, is a failure."""
    failed: list[int] = []

    def behaviour(request: Request, number: int) -> HttpResponse:
        is_first = is_judge_request(request) == is_judge and not failed
        failed.extend([1] * is_first)
        return http_response if is_first else well_behaved(request, number)

    return behaviour


@pytest.mark.slow
@pytest.mark.usefixtures("without_scores")
@pytest.mark.parametrize(
    ("http_response", "status", "table", "stage"),
    [(AWAY, "redirected", "responses", sampled), (LARGE, "too_large", "verdicts", judged)],
)
def test_what_failed_so_is_a_row_that_only_retry_failed_asks_for_again(
    table: str,
    stage: Callable[..., StageReport],
    http_response: HttpResponse,
    status: str,
    server: FaultServer,
    tmp_path: Path,
) -> None:
    server.behaviour = first_fails(http_response, is_judge=stage is judged)
    models = [endpoint("a", server.api_base)]
    judges = [endpoint("judge", server.api_base)]
    limits = {"concurrency": 1, "attempts": 3}
    job = prepared(
        job_on(
            "sample",
            tmp_path,
            models=models,
            judges=judges,
            limits=limits,
        )
    )
    sampled(job)
    stage(job)
    stage(job)  # a redirect stops the model for its run, so the other calls are made now
    n_calls = len(server.book)
    (row,) = rows_in(job, f"select status, error, attempts from {table} where error is not null")
    assert status == row["status"]
    assert row["attempts"] == 1
    if http_response is AWAY:
        assert "HTTP 307" in row["error"]
        assert "elsewhere.example" in row["error"]
    stage(job)
    assert len(server.book) == n_calls
    stage(job, retry_failed=True)
    assert len(server.book) == n_calls + 1
    assert rows_in(job, f"select 1 from {table} where error is not null") == []


@pytest.mark.slow
@pytest.mark.usefixtures("without_scores")
def test_an_opening_that_may_be_thinking_is_kept_and_noted_once(
    server: FaultServer, tmp_path: Path
) -> None:
    server.behaviour = lambda _request, _number: HttpResponse(
        "<scratchpad>Hm.</scratchpad>It is void."
    )
    job = prepared(job_on("sample", tmp_path, models=[endpoint("a", server.api_base)]))

    report = sampled(job, size=1)

    assert sum("a: responses begin with <scratchpad>" in line for line in report.warnings) == 1
    assert {row["text"] for row in rows_in(job, "from responses")} == {
        "<scratchpad>Hm.</scratchpad>It is void."
    }
