"""Judging the control set again, against a provider on a real socket: calls, stored rows, and
findings.
"""

import asyncio
import itertools
import json
import shutil
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tasks.config.job import Job
from tasks.drift import choose_control_set, drift_rows, judge_control_set
from tasks.run.writing import StageReport
from tests import kit
from tests.faults.behaviours import prompt_of
from tests.faults.server import (
    Behaviour,
    FaultServer,
    HttpResponse,
    Request,
    meets,
    well_behaved,
)
from tests.kit import (
    Row,
    few_published,
    job_on,
    judged,
    prepared,
    rows_in,
    sampled,
    values_in,
    written,
)
from tests.tasks.drift.test_drift_figures import verdict_on
from tests.warehouse.parts import forget_parts, put_table
from warehouse import Warehouse

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_scores")]
N_MEMBERS = 40
SCORES = ("leaderboard", "scores")


def job_at(
    server: FaultServer,
    folder: Path,
    verdicts: int = N_MEMBERS,
    *,
    mode: str = "live",
    **drift: Any,
) -> Job:
    """A job on the sample with one nightly model and one judge."""
    address = {"api_base": server.api_base, "max_tokens": 1000}
    model = {
        "name": "hosted_vllm/a",
        "label": "a",
        "resample": "nightly",
    }
    judge = {
        "name": "openai/judge",
        "label": "judge",
        "mode": mode,
    }
    return job_on(
        "sample",
        folder,
        models=[model | address],
        judges=[judge | address],
        limits={"batch_wait_s": 0.0, "attempts": 1},
        drift={"verdicts": verdicts, **drift},
    )


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with pytest.MonkeyPatch.context() as patched, FaultServer() as running:
        patched.setenv("OPENAI_API_KEY", "none")
        yield running


@pytest.fixture(scope="module")
def judged_once(server: FaultServer, tmp_path_factory) -> Path:
    """A warehouse with everything sampled and judged."""
    folder = tmp_path_factory.mktemp("judged") / "warehouse"
    job = job_at(server, folder)
    with few_published(*SCORES):
        sampled(prepared(job))
        judged(job)
    return folder


@pytest.fixture
def folder(server: FaultServer, judged_once: Path, tmp_path) -> Path:
    """A copy of that warehouse, and a provider without faults."""
    server.behaviour = well_behaved
    return Path(shutil.copytree(judged_once, tmp_path / "warehouse"))


@dataclass
class Night:
    """A night: the stage's report, its calls, and the judges that drifted."""

    report: StageReport
    calls: list[Request]
    drifted: list[dict[str, Any]]


def night(server: FaultServer, job: Job, label: str) -> Night:
    """Run the stage as in a night."""
    tonight = job.model_copy(update={"night": label, "run_id": f"run {label}"})
    n_calls = len(server.book)
    report = asyncio.run(judge_control_set(tonight))
    return Night(report, server.book[n_calls:], drift_rows(tonight))


def prompts(calls: Sequence[Request]) -> Counter[str]:
    return Counter(str(call["messages"][0]["content"]) for call in calls)


def lenient() -> Behaviour:
    """A judge that now calls two in five criteria met that it called unmet before."""
    numbers = itertools.count()

    def respond(request, number: int) -> HttpResponse:
        if not meets(prompt_of(request)) and next(numbers) % 5 < 2:
            content = {"explanation": "let pass", "criteria_met": True}
            return HttpResponse(json.dumps(content))
        return well_behaved(request, number)

    return respond


def test_the_control_set_is_half_met_and_spread(server, folder):
    job = job_at(server, folder)
    choose_control_set(job)

    members = rows_in(
        job,
        "select * from control_set inner join verdicts using (verdict_id, response_id, task_id)",
    )
    assert Counter(member["first_value"] for member in members) == {1.0: 20, 0.0: 20}
    assert [member["value"] for member in members] == [
        member["first_value"] for member in members
    ]
    assert len({member["set_id"] for member in members}) == 1
    assert len({member["task_id"] for member in members}) == 8
    assert max(Counter(member["response_id"] for member in members).values()) <= 8


CONTROL_SET = "select set_id, verdict_id, first_value from control_set order by all"


def test_the_same_verdicts_give_the_same_control_set(server, folder, tmp_path):
    job = job_at(server, folder)
    repeated_job = job_at(
        server, Path(shutil.copytree(folder, tmp_path / "repeated"))
    )

    choose_control_set(job)
    choose_control_set(repeated_job)

    assert values_in(repeated_job, CONTROL_SET) == values_in(job, CONTROL_SET)


def test_a_control_set_never_changes(server, folder):
    job = job_at(server, folder, verdicts=10)
    choose_control_set(job)
    members = values_in(job, CONTROL_SET)
    assert len(members) == 10

    report = choose_control_set(job_at(server, folder, verdicts=30))

    assert report.rows == 0
    assert values_in(job, CONTROL_SET) == members


@pytest.fixture
def with_labels(without_scores) -> Iterator[None]:
    """Publish labels, but no scores."""
    with few_published("intermediate.sampled_labels"):
        yield


def store_labels(job: Job, verdicts: Sequence[Row], probability: float | None = None):
    """Store labels on verdicts, of a sheet that sampled them if it knows their probability."""
    label = {
        "judge": "eva",
        "judge_config_hash": "imported",
        "source": "imported",
        "import_batch": "a-batch",
    }
    labels = []
    draws = []
    for verdict in verdicts:
        labels.append(
            verdict | label | {"verdict_id": f"label {verdict['verdict_id']}"}
        )
        columns = {name: verdict.get(name) for name in kit.row("label_draws")}
        draw = {"sheet_id": "a-sheet", "probability": probability, "is_known": False}
        draws.append(columns | draw)
    sheet = kit.row(
        "label_sheets",
        sheet_id="a-sheet",
        covered_breakdown="all",
        covered_responses=[verdict["response_id"] for verdict in verdicts],
        n_population=len(verdicts),
        n_drawn=len(verdicts),
    )
    tables = {
        "verdicts": labels,
        "labellers": [kit.row("labellers", judge="eva", import_batch="a-batch")],
        "label_sheets": [sheet],
        "label_draws": draws,
    }
    written(job.warehouse, tables, job.data.revision).publish()


VERDICTS = (
    "from verdicts where value is not null order by md5(verdict_id || 'labels')"
)


@pytest.mark.usefixtures("with_labels")
def test_labelled_verdicts_are_drawn_first(server, folder):
    job = job_at(server, folder, verdicts=10)
    labelled = rows_in(job, f"{VERDICTS} limit 6")
    store_labels(job, labelled)

    choose_control_set(job)

    members = rows_in(job, "from control_set")
    labelled_ids = {verdict["verdict_id"] for verdict in labelled}
    assert len(members) == 10
    assert labelled_ids < {member["verdict_id"] for member in members}
    assert {member["probability"] for member in members} == {None}


@pytest.mark.usefixtures("with_labels")
def test_labels_of_one_kind_leave_half_of_the_set_to_the_other(server, folder):
    job = job_at(server, folder, verdicts=10)
    met = VERDICTS.replace("value is not null", "value = 1")
    store_labels(job, rows_in(job, f"{met} limit 12"))

    choose_control_set(job)

    decisions = rows_in(job, "select first_value from control_set")
    assert Counter(row["first_value"] for row in decisions) == {1.0: 5, 0.0: 5}


@pytest.mark.usefixtures("with_labels")
def test_of_too_many_labels_a_random_sample_with_known_probabilities_is_drawn(
    server,
    folder,
):
    job = job_at(server, folder, verdicts=10)
    labelled = rows_in(job, f"{VERDICTS} limit 40")
    store_labels(job, labelled, probability=0.5)

    choose_control_set(job)

    members = rows_in(job, "from control_set")
    n_labelled = Counter(verdict["value"] for verdict in labelled)
    assert {member["verdict_id"] for member in members} < {
        verdict["verdict_id"] for verdict in labelled
    }
    # Half of all verdicts were labelled; 5 met and 5 unmet ones are drawn.
    assert {member["first_value"]: member["probability"] for member in members} == {
        1.0: pytest.approx(0.5 * 5 / n_labelled[1.0]),
        0.0: pytest.approx(0.5 * 5 / n_labelled[0.0]),
    }


def test_members_of_earlier_versions_have_no_probability(server, folder):
    job = job_at(server, folder, verdicts=10)
    choose_control_set(job)
    warehouse = Warehouse(job.warehouse)
    [part] = warehouse.store.current_parts("control_set")
    part_table = pq.read_table(part).drop_columns("probability")
    part.unlink()
    forget_parts(warehouse)
    put_table(job.warehouse, "control_set", 1, part_table)
    warehouse.publish()

    probabilities = values_in(job, "select probability from control_set")

    assert probabilities == [(None,)] * 10


def test_another_judge_configuration_gets_its_own_control_set(server, folder):
    job = job_at(server, folder, verdicts=10)
    choose_control_set(job)
    members = values_in(job, CONTROL_SET)
    judge = job.settings.judges[0].model_copy(update={"temperature": 0.5})
    settings = job.settings.model_copy(update={"judges": (judge,)})
    warm_job = job.model_copy(update={"settings": settings})

    report = choose_control_set(warm_job)
    assert report.notes == ["control set of judge: 0 of 10 decided verdicts"]
    judged(warm_job)
    choose_control_set(warm_job)

    query = "select distinct set_id, judge_config_hash from control_set"
    assert len(rows_in(job, query)) == 2
    assert set(members) < set(values_in(job, CONTROL_SET))


def test_a_night_requests_every_member_with_its_first_prompt_and_only_once(
    server,
    folder,
):
    job = job_at(server, folder)
    calls = night(server, job, "2026-11-20").calls
    prompts_sent = prompts(calls)

    assert len(calls) == N_MEMBERS
    assert set(prompts_sent.values()) == {1}
    assert set(prompts_sent) <= set(prompts(server.judge_requests[: -len(calls)]))
    criteria = "select distinct criterion_id from {} order by all"
    assert values_in(job, criteria.format("control_verdicts")) == values_in(
        job,
        criteria.format("control_set"),
    )
    repeated = night(server, job, "2026-11-20")
    assert repeated.calls == []
    assert repeated.report.notes == ["0 verdicts of the control set judged again"]
    assert prompts(night(server, job, "2026-11-21").calls) == prompts_sent


def test_no_configured_number_means_that_nothing_is_judged(server, folder):
    choose_control_set(job_at(server, folder))

    assert night(server, job_at(server, folder, verdicts=0), "2026-11-20").calls == []


def test_no_score_sees_the_control_verdicts(server, folder):
    job = job_at(server, folder)
    tables = ("verdicts", *SCORES)
    rows = {table: rows_in(job, f"from {table} order by all") for table in tables}
    assert all(rows.values())

    server.behaviour = lenient()
    with few_published(*SCORES):
        night(server, job, "2026-11-20")

    rows_after = {
        table: rows_in(job, f"from {table} order by all") for table in tables
    }
    assert rows_after == rows


def test_a_judge_drifts_from_the_night_on_in_which_it_decides_otherwise(
    server, folder
):
    job = job_at(server, folder)
    choose_control_set(job)
    verdicts = [
        verdict_on(member, f"2026-11-{day}", member["first_value"], "")
        for member, day in product(rows_in(job, "from control_set"), range(10, 14))
    ]
    written(
        job.warehouse, {"control_verdicts": verdicts}, job.data.revision
    ).publish()
    server.behaviour = lenient()
    drift_night = night(server, job, "2026-11-14")
    next_night = night(server, job, "2026-11-15")

    [drift] = drift_night.drifted
    assert drift["judge"] == "judge"
    assert drift["n_decided"] == N_MEMBERS
    assert drift["cause"] == "limit"
    assert drift["first_met_share"] == 0.5
    assert drift["agreement"] < drift["lower_limit"]
    assert "judge repeated its first decision on" in str(drift_night.report.warnings)
    assert next_night.drifted[0]["lower_limit"] == drift["lower_limit"]
    assert next_night.drifted[0]["cause"] == "limit and joint limit"
    query = "select night from judge_drift where is_out_of_control order by night"
    assert values_in(job, query) == [("2026-11-14",), ("2026-11-15",)]


def test_failures_are_no_disagreement_and_are_retried_by_the_same_night(
    server, folder
):
    def failing(request, number):
        fails = meets(prompt_of(request))
        return HttpResponse(status=500) if fails else well_behaved(request, number)

    job = job_at(server, folder)
    query = (
        "select n_members, n_decided, n_failed, n_lost, n_agreeing from judge_drift"
    )
    server.behaviour = failing
    n_failed = night(server, job, "2026-11-20").report.failures["provider_error"]

    assert 0 < n_failed < N_MEMBERS
    n_decided = N_MEMBERS - n_failed
    assert values_in(job, query) == [(N_MEMBERS, n_decided, n_failed, 0, n_decided)]

    server.behaviour = well_behaved
    calls = night(server, job, "2026-11-20").calls

    assert len(calls) == n_failed
    assert values_in(job, query) == [(N_MEMBERS, N_MEMBERS, 0, 0, N_MEMBERS)]


def replace_response(
    job: Job,
    response_id: str,
    **changes: Any,
):
    """Change the columns of a stored response, or without changes remove it."""
    warehouse = Warehouse(job.warehouse)
    for path in warehouse.store.current_parts("responses"):
        rows = []
        for row in pq.read_table(path).to_pylist():
            if row["response_id"] != response_id:
                rows.append(row)
            elif changes:
                rows.append(row | changes)
        path.unlink()
        forget_parts(warehouse)
        warehouse.write("responses", rows)
    warehouse.publish()


@pytest.mark.parametrize("changes", [{}, {"text": "Another response."}])
def test_members_without_their_response_are_lost(server, folder, changes):
    job = job_at(server, folder)
    night(server, job, "2026-11-20")
    query = "select response_id, count(*) from control_set group by all order by all limit 1"
    ((response_id, n_lost),) = values_in(job, query)
    replace_response(job, response_id, **changes)

    result = night(server, job, "2026-11-21")

    n_decided = N_MEMBERS - n_lost
    assert len(result.calls) == n_decided
    warning = f"judge: {n_lost} members of its control set are lost"
    assert warning in result.report.warnings[0]
    query = (
        "select night, n_decided, n_failed, n_lost from judge_drift order by night"
    )
    assert values_in(job, query) == [
        ("2026-11-20", N_MEMBERS, 0, 0),
        ("2026-11-21", n_decided, 0, n_lost),
    ]
    parts = Warehouse(job.warehouse).store.current_parts("control_verdicts")
    assert night(server, job, "2026-11-21").calls == []
    assert Warehouse(job.warehouse).store.current_parts("control_verdicts") == parts


def test_the_bar_is_the_one_that_was_configured_in_its_night(server, folder):
    server.behaviour = lenient()
    result = night(server, job_at(server, folder, min_agreement=0.99), "2026-11-20")
    job = job_at(server, folder)
    server.behaviour = well_behaved
    night(server, job, "2026-11-21")

    [drift] = result.drifted
    assert drift["cause"] == "bar"
    assert "below the bar (bar 99.0%)" in str(result.report.warnings)
    query = "select min_agreement, cause from judge_drift order by night"
    assert values_in(job, query) == [(0.99, "bar"), (None, None)]


def test_a_judge_with_provider_batches_gets_live_calls(server, folder):
    n_requests = len(server.entries)
    result = night(server, job_at(server, folder, mode="batch"), "2026-11-20")

    assert len(result.calls) == N_MEMBERS
    assert result.report.rows == N_MEMBERS
    assert result.report.skipped == 0
    assert {entry.path for entry in server.entries[n_requests:]} == {
        "/v1/chat/completions"
    }
