"""Templates by name, thinking that is left out, and failures that later runs do not retry."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tasks.benchmarks import load_benchmark
from tasks.config.job import Job
from tasks.llm.exchange import MOST_BYTES
from tasks.plan.plan import plan
from tasks.run.judge_configs import JudgeConfig, judge_configs
from tests.faults.behaviours import ELSEWHERE
from tests.faults.server import (
    Behaviour,
    FaultServer,
    HttpResponse,
    is_judge_request,
    well_behaved,
)
from tests.kit import endpoint, job_on, judged, prepared_sample, rows_in, sampled
from tests.tasks.judge.values import distinct

pytestmark = pytest.mark.usefixtures("without_scores")
Make = Callable[..., Job]


def judge_config_of(benchmark: str, **settings: Any) -> JudgeConfig:
    judge = {"name": "openai/gpt-4o", **settings}
    job = job_on("sample", Path("nowhere"), benchmark=benchmark, judges=[judge])
    return judge_configs(job, load_benchmark(benchmark))[0]


def test_a_template_of_ones_own_goes_with_the_search_that_it_always_went_with(
    tmp_path,
):
    template = tmp_path / "own.txt"
    template.write_text("<<conversation>>\n<<rubric_item>>", encoding="utf-8")
    earlier = judge_config_of("researchrubrics", template="researchrubrics_binary_v1")

    config = judge_config_of("researchrubrics", template=str(template))

    assert config.evidence_template == earlier.evidence_template


@pytest.fixture
def make(server: FaultServer, tmp_path) -> Make:
    """Make jobs on some tasks with a model and a judge with the given settings."""
    shutil.copytree(prepared_sample(), tmp_path, dirs_exist_ok=True)

    def job(judge=None, model=None, n_tasks=1):
        job = job_on(
            "sample",
            tmp_path,
            models=[endpoint("a", server.api_base, **(model or {}))],
            judges=[endpoint("judge", server.api_base, **(judge or {}))],
            limits={"concurrency": 1, "attempts": 3},
        )
        return job.model_copy(update={"limit": n_tasks})

    return job


@pytest.mark.slow
def test_the_plan_says_how_many_verdicts_another_template_judges_again_and_all_are_kept(
    make,
):
    earlier_job = make({"template": "binary_v1"})
    job = make({"template": "default"})
    sampled(earlier_job)
    note_at_first = plan(job)[-1].judged_before
    n_criteria = judged(earlier_job).rows

    planned = plan(job)[-1]
    earlier_plan = plan(earlier_job)[-1]
    judged(job)

    assert note_at_first == ""  # the first judge configuration replaces none
    assert planned.calls == n_criteria > 0
    assert planned.judged_before == (
        f"{n_criteria} verdicts were made with template binary_v1 (set `template: binary_v1` to"
        " keep it); they are kept together with the new ones"
    )
    assert earlier_plan.calls == 0
    assert earlier_plan.judged_before == ""
    assert plan(job)[-1].judged_before == ""
    assert len(rows_in(job, "from verdicts")) == 2 * n_criteria


def swallows_the_tag(request, number: int) -> HttpResponse:
    """A server that sends thinking without its opening tag."""
    http_response = well_behaved(request, number)
    return replace(http_response, text=f"First this.</think>\n{http_response.text}")


@pytest.mark.slow
def test_stored_responses_are_read_without_their_thinking_without_a_call(
    make, server
):
    server.behaviour = swallows_the_tag
    job = make()
    sampled(job)
    n_calls = len(server.book)

    sampled(make(model={"omits_think_tag": True}))

    query = "select text, model_config_hash from responses order by len(text)"
    read_row, whole_row = rows_in(job, query)
    assert len(server.book) == n_calls
    assert whole_row["text"] == f"First this.</think>\n{read_row['text']}"
    assert whole_row["model_config_hash"] != read_row["model_config_hash"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("table", "stage", "judge"),
    [
        ("responses", sampled, {}),
        ("verdicts", judged, {}),
        ("verdicts", judged, {"criteria_per_call": 5}),
    ],
)
def test_a_row_with_an_unknown_end_is_made_again_without_a_call_when_its_word_is_accepted(
    table,
    stage,
    judge,
    make,
    server,
):
    def odd_end(request, number):
        http_response = well_behaved(request, number)
        if is_judge_request(request) == (stage is judged):
            return replace(http_response, finish_reason="Odd End")
        return http_response

    def job_accepting(*words):
        return make({**judge, "ends_ok": words}, {"ends_ok": words})

    server.behaviour = odd_end
    job = job_accepting()
    sampled(job)
    stage(job)
    n_calls = len(server.book)
    stage(job_accepting("another end"))
    statuses = distinct(rows_in(job, f"from {table}"), "status")

    stage(job_accepting("odd end"))

    assert statuses == {"unclear"}
    assert "unclear" not in distinct(rows_in(job, f"from {table}"), "status")
    assert len(server.book) == n_calls


LARGE = HttpResponse("x" * (MOST_BYTES + 1))


def first_fails(http_response: HttpResponse, *, is_judge: bool) -> Behaviour:
    """A provider whose first reply to a judge, or to a model, is a failure."""
    failed_requests = []

    def behaviour(request, number):
        if failed_requests or is_judge_request(request) != is_judge:
            return well_behaved(request, number)
        failed_requests.append(request)
        return http_response

    return behaviour


@pytest.mark.slow
@pytest.mark.parametrize(
    ("http_response", "status", "cause", "table", "stage"),
    [
        (ELSEWHERE, "redirected", "elsewhere.example", "responses", sampled),
        (LARGE, "too_large", "", "verdicts", judged),
    ],
)
def test_a_redirect_or_a_large_reply_is_a_failure_that_only_retry_failed_requests_again(
    http_response,
    status,
    cause,
    table,
    stage,
    make,
    server,
):
    server.behaviour = first_fails(http_response, is_judge=stage is judged)
    job = make(n_tasks=2)
    sampled(job)
    stage(job)
    stage(job)  # makes the calls that a redirect kept the first run from making
    n_calls = len(server.book)
    failures = f"from {table} where error is not null"
    [row] = rows_in(job, failures)

    stage(job)
    n_repeated = len(server.book) - n_calls
    stage(job, retry_failed=True)

    assert row["status"] == status
    assert row["attempts"] == 1
    assert cause in row["error"]
    assert n_repeated == 0
    assert len(server.book) == n_calls + 1
    assert rows_in(job, failures) == []


@pytest.mark.slow
def test_an_opening_that_may_be_thinking_is_kept_and_noted_once(make, server):
    text = "<scratchpad>Hm.</scratchpad>It is void."
    server.behaviour = lambda _request, _number: HttpResponse(text)
    job = make(n_tasks=4)

    report = sampled(job, size=1)

    warnings = "\n".join(report.warnings)
    assert warnings.count("a: responses begin with <scratchpad>") == 1
    assert distinct(rows_in(job, "from responses"), "text") == {text}
