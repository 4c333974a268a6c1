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
from tasks.maintain.upkeep import ResponseChoice, remove, run_cost, store_calls, tidy
from tasks.rules.errors import UsageError
from tests import kit
from tests.faults.server import FaultServer, HttpResponse, Request, is_judge_request, well_behaved
from tests.kit import (
    call_entry,
    imported,
    job_on,
    judged,
    prepared,
    recorded,
    rows_in,
    sampled,
    values_in,
)
from tests.warehouse.parts import flip
from warehouse import Warehouse, WarehouseBusy, WarehouseError

pytestmark = pytest.mark.slow
without_scores = pytest.mark.usefixtures("without_scores")

N_TASKS = 8
N_CRITERIA = 98


def job_at(server: FaultServer, folder: Path, source: Path | str = "sample", **judge: Any) -> Job:
    price = dict.fromkeys(("input_usd_per_mtok", "cached_usd_per_mtok", "output_usd_per_mtok"), 1.0)
    at = {"max_tokens": 1000, "price": price}
    judges = [kit.endpoint("judge", server.api_base, **at, **{"name": "openai/judge", **judge})]
    models = [kit.endpoint("a", server.api_base, **at)]
    return job_on(
        source,
        folder,
        models=models,
        judges=judges,
        limits={"attempts": 2},
    )


def stored(job: Job) -> list[dict[str, Any]]:
    Warehouse(job.warehouse).publish()
    return rows_in(job, "from spend order by run_id, purpose")


def figures(job: Job) -> list[tuple[str, int, float]]:
    return [(row["run_id"], row["calls"], row["cost_usd"]) for row in stored(job)]


def record(job: Job, run_id: str, number: int) -> None:
    recorded(job, call_entry(f"{run_id}-{number}", run_id, purpose="drift"))


@without_scores
def test_each_purpose_has_its_row_with_discarded_attempts_and_table_sums(
    server: FaultServer, tmp_path: Path
) -> None:
    def fails_first(request: Request, number: int) -> HttpResponse:
        if is_judge_request(request) or number > 0:
            return well_behaved(request, 1)
        return HttpResponse("", usage={"prompt_tokens": 7, "completion_tokens": 0})

    server.behaviour = fails_first
    job = job_at(server, tmp_path, mode="batch")
    sampled(prepared(job))
    judged(job)
    assert store_calls(job) == 2
    of_judge, of_model = stored(job)
    sums = "select sum(cost_usd), count(*) from"
    ((of_responses, n_responses),), ((of_verdicts, _),) = (
        values_in(job, f"{sums} {table}") for table in ("responses", "verdicts")
    )
    names = ("purpose", "called_model", "calls", "failed_calls", "unpriced_calls")
    assert tuple(of_judge[name] for name in names) == ("judge", "openai/judge", N_CRITERIA, 0, 0)
    assert ("sample", "hosted_vllm/a", 2 * n_responses, n_responses) == tuple(
        of_model[name] for name in names[:-1]
    )
    assert pytest.approx((of_verdicts, of_responses)) == (
        of_judge["cost_usd"],
        of_model["cost_usd"],
    )
    assert of_verdicts > 0
    assert store_calls(job) == 0


@without_scores
def test_every_request_is_an_attempt_with_its_labels_and_costs_add_up(
    server: FaultServer, tmp_path: Path
) -> None:
    def fails_first(request: Request, number: int) -> HttpResponse:
        is_busy = number == 0 and not is_judge_request(request)
        return HttpResponse(status=503, raw=b"busy") if is_busy else well_behaved(request, number)

    server.behaviour = fails_first
    job = job_at(server, tmp_path)
    sampled(prepared(job))
    judged(job)
    store_calls(job)
    Warehouse(job.warehouse).publish()

    groups = rows_in(
        job,
        "select purpose, model, judge, http_status, count(*) as n, count(distinct"
        " coalesce(verdict_id, response_id)) as n_rows from attempts group by all order by purpose"
        " desc, http_status nulls last",
    )
    ((attempts_usd, costs_usd),) = values_in(
        job, "select (select sum(cost_usd) from attempts), (select sum(cost_usd) from run_costs)"
    )

    assert groups == [
        {
            "purpose": purpose,
            "model": "a",
            "judge": judge,
            "http_status": http_status,
            "n": n,
            "n_rows": n,
        }
        for purpose, judge, http_status, n in (
            ("sample", None, 503, N_TASKS),
            ("sample", None, None, N_TASKS),
            ("judge", "judge", None, N_CRITERIA),
        )
    ]
    assert attempts_usd == pytest.approx(costs_usd)
    assert attempts_usd > 0


@without_scores
def test_spend_is_written_only_when_it_is_new_and_the_ledger_may_be_read(
    server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_at(server, tmp_path)
    Warehouse(job.warehouse).write("criteria", [kit.criterion("t", 0, 1.0)])
    Warehouse(job.warehouse).publish()
    assert store_calls(job) == 0
    record(job, "killed", 1)
    assert store_calls(job) == 1
    assert figures(job) == [("killed", 1, 0.5)]
    record(job, "killed", 2)
    record(job, "next", 1)
    assert store_calls(job) == 2
    assert figures(job) == [("killed", 2, 1.0), ("next", 1, 0.5)]
    record(job, "next", 2)
    assert [row["calls"] for run_id in ("killed", "next") for row in run_cost(job, run_id)] == [
        2,
        2,
    ]
    with monkeypatch.context() as patched:
        # Two machines that open the same ledger damage it.
        patched.setattr(Warehouse, "elsewhere", lambda _: "node7")
        assert [row["calls"] for run_id in ("killed", "next") for row in run_cost(job, run_id)] == [
            2,
            1,
        ]
        assert store_calls(job) == 0
    shutil.rmtree(job.warehouse / "ledger")
    record(job, "killed", 3)
    assert store_calls(job) == 0
    assert figures(job) == [("killed", 2, 1.0), ("next", 1, 0.5)]


COUNTS = (
    "select (select count(*) from responses), (select count(*) from verdicts), (select count(*)"
    " from scores)"
)


@pytest.fixture(scope="module")
def provider() -> Iterator[FaultServer]:
    with FaultServer(rambling) as running:
        yield running


@pytest.fixture(scope="module")
def shared(provider: FaultServer, tmp_path_factory: pytest.TempPathFactory) -> Job:
    """A sampled and judged job with one response that is far too long."""
    folder = tmp_path_factory.mktemp("rambling")
    tasks = kit.write_jsonl(folder / "finance.jsonl", [kit.good_row("t1"), kit.good_row("t2")])
    job = job_at(provider, folder / "warehouse", tasks, name="hosted_vllm/judge")
    sampled(prepared(job))
    judged(job)
    store_calls(job)
    Warehouse(job.warehouse).publish()
    return job


def rambling(request: Request, number: int) -> HttpResponse:
    """The first response to one of the tasks never ends."""
    is_struck = (
        not is_judge_request(request) and "What does t1 cost?" in request["messages"][-1]["content"]
    )
    return (
        HttpResponse("blah " * 20_000)
        if is_struck and number == 0
        else well_behaved(request, number)
    )


def longest(job: Job) -> dict[str, Any]:
    return rows_in(job, "select * from responses order by chars_alnum desc, response_id limit 1")[0]


def in_ledger(job: Job, text: str) -> bool:
    files = [path for path in (job.warehouse / "ledger").iterdir() if path.suffix != ".lock"]
    return any(text.encode() in path.read_bytes() for path in files)


def test_a_removed_response_goes_with_its_verdicts_and_is_sampled_again(
    job: Job, provider: FaultServer
) -> None:
    ((n_responses, n_verdicts, _),) = before = values_in(job, COUNTS)
    bad = longest(job)
    of_bad = f"where response_id = '{bad['response_id']}'"
    n_of_bad = len(values_in(job, f"from verdicts {of_bad}"))
    spend = "select count(*), sum(cost_usd) from run_costs"
    spent = values_in(job, spend)

    assert remove(job, ResponseChoice([bad["response_id"]]), "never ends").rows == 1
    assert [(n_responses - 1, n_verdicts - n_of_bad)] == [row[:2] for row in values_in(job, COUNTS)]
    assert (
        values_in(job, f"select 1 from verdict_details {of_bad} and status <> 'not_judged'") == []
    )
    assert [(bad["response_id"], "never ends")] == values_in(
        job, "select response_id, reason from removals"
    )
    assert not in_ledger(job, "blah blah")
    assert spent == values_in(job, spend)

    n_calls = len(provider.book)
    assert sampled(job).rows == 1
    assert n_of_bad == judged(job).rows
    assert n_calls + 1 + n_of_bad == len(provider.book)
    assert [(bad["text"],)] != values_in(job, f"select text from responses {of_bad}")
    Warehouse(job.warehouse).database.unlink()
    Warehouse(job.warehouse).publish()
    assert before == values_in(job, COUNTS)
    assert sampled(job).rows == 0
    assert judged(job).rows == 0
    assert n_calls + 1 + n_of_bad == len(provider.book)


def test_a_removed_response_is_in_no_part_backup_or_export_and_its_space_is_freed(
    job: Job, tmp_path: Path
) -> None:
    export_tables(job, tmp_path / "before")
    bad = longest(job)
    remove(job, ResponseChoice([bad["response_id"]]), "")
    expected = values_in(job, COUNTS)

    backup(job, tmp_path / "backup")
    restored, other = (
        job.model_copy(update={"warehouse": tmp_path / name}) for name in ("restored", "other")
    )
    restore(restored, tmp_path / "backup")
    export_tables(job, tmp_path / "exported")
    imported(other, tmp_path / "exported")
    imported(job, tmp_path / "before")
    assert [expected] * 3 == [values_in(each, COUNTS) for each in (restored, other, job)]
    assert not in_ledger(restored, "blah blah")

    parts = (job.warehouse / "parts" / "responses").rglob("*.parquet")
    stored_ids = {each for part in parts for each in pq.read_table(part)["response_id"].to_pylist()}
    assert bad["response_id"] not in stored_ids
    Warehouse(job.warehouse).database.unlink()
    Warehouse(job.warehouse).publish()
    assert values_in(job, COUNTS) == expected


@without_scores
def test_a_kill_after_a_noted_removal_is_made_good_by_compaction(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = longest(job)
    with monkeypatch.context() as patched:
        patched.setattr(Warehouse, "clean", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            remove(job, ResponseChoice([bad["response_id"]]), "")
    tidy(job)

    assert rows_in(job, f"select 1 from responses where response_id = '{bad['response_id']}'") == []
    assert not in_ledger(job, "blah blah")
    assert not any(
        b"blah" in part.read_bytes()
        for part in Warehouse(job.warehouse).store.standing("responses")
    )


@without_scores
def test_what_is_removed_is_chosen_by_all_that_is_given(
    job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(*arguments: str, code: int = 0) -> str:
        assert code == main(["remove", "response", *arguments, "--warehouse", str(job.warehouse)])
        captured = capsys.readouterr()
        return captured.err if code else captured.out

    def listed(*arguments: str) -> list[str]:
        return [each["response_id"] for each in json.loads(run(*arguments, "--dry-run", "--json"))]

    bad = longest(job)
    assert [bad["response_id"]] == listed("--longer-than", "50000")
    assert len(rows_in(job, "from responses")) == len(listed("--model", "a", "--trial", "1"))
    assert listed("--model", "b") == []
    assert "name the responses to remove" in run(code=2)
    assert "nothing-like-it: no stored response has this id" in run("nothing-like-it", code=2)
    assert "1 response removed" in run(
        bad["response_id"], "--task", bad["task_id"], "--reason", "too long"
    )
    assert "no stored response has this id" in run(bad["response_id"], code=2)


@without_scores
def test_nothing_is_removed_while_a_part_is_damaged_or_a_run_is_at_work(job: Job) -> None:
    warehouse = Warehouse(job.warehouse)
    wanted = ResponseChoice([longest(job)["response_id"]])
    with warehouse.writing(), pytest.raises(WarehouseBusy):
        remove(job, wanted, "")
    with pytest.raises(UsageError, match="name the responses"):
        remove(job, ResponseChoice(), "")
    (part,) = warehouse.store.standing("verdicts")
    flip(part)
    with pytest.raises(
        WarehouseError, match=f"{part.name}: is damaged; run `prbench aggregate` to repair it"
    ):
        remove(job, wanted, "too long")
    assert not warehouse.store.standing("removals")

    warehouse.verify()
    remove(job, wanted, "too long")
    assert warehouse.losses() == []


@without_scores
def test_the_ledger_does_not_bring_a_removed_response_back(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    # as if another ledger file had the reply, or a backup of the ledger had been restored
    monkeypatch.setattr("tasks.maintain.upkeep.forget", lambda *_: Pruned())
    remove(job, ResponseChoice([longest(job)["response_id"]]), "")

    assert in_ledger(job, "blah blah")
    assert sampled(job).rows == 1
    assert longest(job)["chars_alnum"] < 50_000
