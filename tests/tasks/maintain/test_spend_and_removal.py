"""The spend of every run, also of killed ones; and responses that are removed for good and sampled
again.
"""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pyarrow.parquet as pq
import pytest

from flows.cli.main import main
from tasks.config.job import Job
from tasks.exports.tables import export_tables
from tasks.llm.ledger.pruning import Pruned
from tasks.maintain.backup import backup, restore
from tasks.maintain.removal import ResponseChoice, remove
from tasks.maintain.spend import run_cost, store_calls
from tasks.maintain.tidying import tidy
from tests import kit
from tests.faults.server import (
    FaultServer,
    HttpResponse,
    is_judge_request,
    well_behaved,
)
from tests.kit import (
    Row,
    add_calls,
    call_entry,
    few_published,
    imported,
    job_on,
    judged,
    prepared,
    rows_in,
    sampled,
    values_in,
)
from tests.warehouse.parts import flip
from warehouse import Warehouse, WarehouseBusy, WarehouseError

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("without_scores")]

N_TASKS = 8
N_CRITERIA = 98


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
        models=[kit.endpoint("a", server.api_base, **parameters)],
        judges=[kit.endpoint("judge", server.api_base, **judge_parameters)],
        limits={"attempts": 2},
    )


def published_spend(job: Job) -> list[Row]:
    Warehouse(job.warehouse).publish()
    return rows_in(job, "from spend order by run_id, purpose")


def spend_by_run(job: Job) -> list[tuple[str, int, float]]:
    return [
        (row["run_id"], row["calls"], row["cost_usd"]) for row in published_spend(job)
    ]


def record(job: Job, run_id: str, number: int):
    add_calls(job, call_entry(f"{run_id}-{number}", run_id, purpose="drift"))


def test_each_purpose_has_its_row_with_discarded_attempts_and_table_sums(
    server, tmp_path
):
    def reply_nothing_first(request, number):
        if is_judge_request(request) or number > 0:
            return well_behaved(request, 1)
        return HttpResponse("", usage={"prompt_tokens": 7, "completion_tokens": 0})

    server.behaviour = reply_nothing_first
    job = job_at(server, tmp_path, mode="batch")
    sampled(prepared(job))
    judged(job)

    assert store_calls(job) == 2
    judge_spend, model_spend = published_spend(job)
    assert judge_spend["purpose"] == "judge"
    assert judge_spend["called_model"] == "openai/judge"
    assert judge_spend["calls"] == N_CRITERIA
    assert judge_spend["failed_calls"] == 0
    assert judge_spend["unpriced_calls"] == 0
    assert model_spend["purpose"] == "sample"
    assert model_spend["called_model"] == "hosted_vllm/a"
    assert model_spend["calls"] == 2 * N_TASKS
    assert model_spend["failed_calls"] == N_TASKS
    ((verdicts_usd, responses_usd),) = values_in(
        job,
        "select (select sum(cost_usd) from verdicts), (select sum(cost_usd) from responses)",
    )
    assert judge_spend["cost_usd"] == pytest.approx(verdicts_usd)
    assert judge_spend["cost_usd"] > 0
    assert model_spend["cost_usd"] == pytest.approx(responses_usd)
    assert store_calls(job) == 0


def test_every_request_is_an_attempt_with_its_labels_and_costs_add_up(
    server, tmp_path
):
    def be_busy_first(request, number):
        if number == 0 and not is_judge_request(request):
            return HttpResponse(status=503, raw=b"busy")
        return well_behaved(request, number)

    server.behaviour = be_busy_first
    job = job_at(server, tmp_path)
    sampled(prepared(job))
    judged(job)
    store_calls(job)
    Warehouse(job.warehouse).publish()

    query = """
        select
            purpose, model, judge, http_status,
            count(*), count(distinct coalesce(verdict_id, response_id))
        from attempts
        group by all
        order by purpose desc, http_status nulls last
    """
    assert values_in(job, query) == [
        ("sample", "a", None, 503, N_TASKS, N_TASKS),
        ("sample", "a", None, None, N_TASKS, N_TASKS),
        ("judge", "a", "judge", None, N_CRITERIA, N_CRITERIA),
    ]
    ((attempts_usd, costs_usd),) = values_in(
        job,
        "select (select sum(cost_usd) from attempts), (select sum(cost_usd) from run_costs)",
    )
    assert attempts_usd == pytest.approx(costs_usd)
    assert attempts_usd > 0


@pytest.fixture
def empty_job(server: FaultServer, tmp_path) -> Job:
    job = job_at(server, tmp_path)
    Warehouse(job.warehouse).write("criteria", [kit.criterion("t", 0, 1.0)])
    Warehouse(job.warehouse).publish()
    return job


def test_spend_is_written_only_when_it_is_new(empty_job):
    assert store_calls(empty_job) == 0

    record(empty_job, "killed", 1)
    assert store_calls(empty_job) == 1
    assert spend_by_run(empty_job) == [("killed", 1, 0.5)]

    record(empty_job, "killed", 2)
    record(empty_job, "next", 1)
    assert store_calls(empty_job) == 2
    assert spend_by_run(empty_job) == [("killed", 2, 1.0), ("next", 1, 0.5)]


def test_the_ledger_is_read_unless_another_machine_writes(empty_job, monkeypatch):
    record(empty_job, "run", 1)
    store_calls(empty_job)
    Warehouse(empty_job.warehouse).publish()
    record(empty_job, "run", 2)

    assert [row["calls"] for row in run_cost(empty_job, "run")] == [2]
    # Two machines that open the same ledger damage it.
    monkeypatch.setattr(Warehouse, "other_host", lambda _: "node7")
    assert [row["calls"] for row in run_cost(empty_job, "run")] == [1]
    assert store_calls(empty_job) == 0


def test_spend_stays_where_the_ledger_is_lost(empty_job):
    record(empty_job, "killed", 1)
    record(empty_job, "killed", 2)
    store_calls(empty_job)
    Warehouse(empty_job.warehouse).publish()

    shutil.rmtree(empty_job.warehouse / "ledger")
    record(empty_job, "killed", 3)

    assert store_calls(empty_job) == 0
    assert spend_by_run(empty_job) == [("killed", 2, 1.0)]


COUNTS = """
    select
        (select count(*) from responses),
        (select count(*) from verdicts),
        (select count(*) from scores)
"""


SCORES = ("scores", "verdict_details")
"""The views that tests of removals read, apart from stored rows."""


@pytest.fixture(scope="module")
def provider() -> Iterator[FaultServer]:
    with FaultServer(rambling) as running:
        yield running


@pytest.fixture(scope="module")
def shared(provider: FaultServer, tmp_path_factory) -> Job:
    """A sampled and judged job with one response that is far too long."""
    folder = tmp_path_factory.mktemp("rambling")
    rows = [kit.good_row("t1"), kit.good_row("t2")]
    tasks = kit.write_jsonl(folder / "finance.jsonl", rows)
    job = job_at(provider, folder / "warehouse", tasks, name="hosted_vllm/judge")
    with few_published(*SCORES):
        sampled(prepared(job))
        judged(job)
        store_calls(job)
        Warehouse(job.warehouse).publish()
    return job


@pytest.fixture
def with_scores(without_scores) -> Iterator[None]:
    with few_published(*SCORES):
        yield


def rambling(request, number: int) -> HttpResponse:
    """The first response to one of the tasks never ends."""
    is_of_t1 = "What does t1 cost?" in request["messages"][-1]["content"]
    if is_of_t1 and number == 0 and not is_judge_request(request):
        return HttpResponse("blah " * 20_000)
    return well_behaved(request, number)


def longest(job: Job) -> Row:
    query = "from responses order by chars_alnum desc, response_id limit 1"
    [response] = rows_in(job, query)
    return response


def remove_longest(job: Job, reason: str = "") -> str:
    """Remove the longest response, and return its id."""
    response_id = longest(job)["response_id"]
    assert remove(job, ResponseChoice([response_id]), reason).rows == 1
    return response_id


def is_in_ledger(job: Job, text: bytes = b"blah blah") -> bool:
    """Return whether any file of the ledger has a text, by default that of the long response."""
    contents = [
        path.read_bytes()
        for path in (job.warehouse / "ledger").iterdir()
        if path.suffix != ".lock"
    ]
    return any(text in content for content in contents)


def rebuild(job: Job):
    """Publish the database again, from the stored rows alone."""
    Warehouse(job.warehouse).database.unlink()
    Warehouse(job.warehouse).publish()


@pytest.mark.usefixtures("with_scores")
def test_a_removed_response_goes_with_its_verdicts_and_its_reply(job):
    spend_query = "select count(*), sum(cost_usd) from run_costs"
    spend = values_in(job, spend_query)
    n_responses = len(rows_in(job, "from responses"))

    response_id = remove_longest(job, "never ends")

    assert len(rows_in(job, "from responses")) == n_responses - 1
    assert rows_in(job, "from verdicts where response_id = ?", response_id) == []
    details = "from verdict_details where response_id = ? and status <> 'not_judged'"
    assert rows_in(job, details, response_id) == []
    removals = values_in(job, "select response_id, reason from removals")
    assert removals == [(response_id, "never ends")]
    assert not is_in_ledger(job)
    assert values_in(job, spend_query) == spend


@pytest.mark.usefixtures("with_scores")
def test_a_removed_response_is_sampled_and_judged_again(job, provider):
    counts = values_in(job, COUNTS)
    response_id = longest(job)["response_id"]
    n_verdicts = len(rows_in(job, "from verdicts where response_id = ?", response_id))
    remove_longest(job)
    n_calls = len(provider.book)

    assert sampled(job).rows == 1
    assert judged(job).rows == n_verdicts
    assert len(provider.book) == n_calls + 1 + n_verdicts
    rebuild(job)
    assert values_in(job, COUNTS) == counts
    [sampled_again] = rows_in(
        job, "from responses where response_id = ?", response_id
    )
    assert "blah" not in sampled_again["text"]
    assert sampled(job).rows == 0
    assert judged(job).rows == 0


@pytest.mark.usefixtures("with_scores")
def test_a_removed_response_is_in_no_part_backup_or_export(job, tmp_path):
    response_id = remove_longest(job)
    counts = values_in(job, COUNTS)
    restored = job.model_copy(update={"warehouse": tmp_path / "restored"})
    imported_copy = job.model_copy(update={"warehouse": tmp_path / "imported"})

    backup(job, tmp_path / "backup")
    restore(restored, tmp_path / "backup")
    export_tables(job, tmp_path / "exported")
    imported(imported_copy, tmp_path / "exported")
    rebuild(job)

    assert values_in(restored, COUNTS) == counts
    assert not is_in_ledger(restored)
    assert values_in(imported_copy, COUNTS) == counts
    assert values_in(job, COUNTS) == counts
    for part in Warehouse(job.warehouse).store.current_parts("responses"):
        assert response_id not in pq.read_table(part)["response_id"].to_pylist()


@pytest.mark.usefixtures("with_scores")
def test_an_earlier_export_does_not_bring_a_removed_response_back(job, tmp_path):
    export_tables(job, tmp_path / "exported")
    remove_longest(job)
    counts = values_in(job, COUNTS)

    imported(job, tmp_path / "exported")

    assert values_in(job, COUNTS) == counts


def test_a_kill_after_a_noted_removal_is_made_good_by_compaction(job, monkeypatch):
    response_id = longest(job)["response_id"]
    with monkeypatch.context() as patched:
        patched.setattr(Warehouse, "clean", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            remove(job, ResponseChoice([response_id]), "")

    tidy(job)

    assert rows_in(job, "from responses where response_id = ?", response_id) == []
    assert not is_in_ledger(job)
    for part in Warehouse(job.warehouse).store.current_parts("responses"):
        assert b"blah" not in part.read_bytes()


def run_remove(job: Job, *arguments: str) -> int:
    return main(["remove", "response", *arguments, "--warehouse", str(job.warehouse)])


@pytest.mark.parametrize(
    ("arguments", "n_chosen"),
    [
        (("--longer-than", "50000"), 1),
        (("--model", "a", "--trial", "1"), 2),
        (("--model", "a", "--task", "t1"), 1),
        (("--model", "b"), 0),
    ],
)
def test_what_is_removed_is_chosen_by_all_that_is_given(
    job,
    capsys,
    arguments,
    n_chosen,
):
    assert run_remove(job, *arguments, "--dry-run", "--json") == 0

    assert len(json.loads(capsys.readouterr().out)) == n_chosen


def test_a_response_can_be_removed_once(job, capsys):
    response_id = longest(job)["response_id"]

    assert run_remove(job, response_id, "--task", "t1", "--reason", "too long") == 0
    assert "1 response removed" in capsys.readouterr().out

    assert run_remove(job, response_id) == 2
    assert "no stored response has this id" in capsys.readouterr().err


def test_nothing_is_removed_during_a_run(job):
    choice = ResponseChoice([longest(job)["response_id"]])

    with Warehouse(job.warehouse).writing(), pytest.raises(WarehouseBusy):
        remove(job, choice, "")


def test_nothing_is_removed_while_a_part_is_damaged(job):
    warehouse = Warehouse(job.warehouse)
    [part] = warehouse.store.current_parts("verdicts")
    flip(part)

    reason = f"{part.name}: is damaged; run `prbench aggregate` to repair it"
    with pytest.raises(WarehouseError, match=reason):
        remove(
            job,
            ResponseChoice([longest(job)["response_id"]]),
            "too long",
        )
    assert warehouse.store.current_parts("removals") == []

    warehouse.verify()
    remove_longest(job)
    assert warehouse.losses() == []


def test_the_ledger_does_not_bring_a_removed_response_back(job, monkeypatch):
    # The reply stays in the ledger, as if a backup of the ledger had been restored.
    monkeypatch.setattr("tasks.maintain.removal.forget", lambda *_: Pruned())

    remove_longest(job)

    assert is_in_ledger(job)
    assert sampled(job).rows == 1
    assert longest(job)["chars_alnum"] < 50_000
