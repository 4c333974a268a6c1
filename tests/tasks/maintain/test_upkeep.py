"""The spend of every run, killed ones included; and responses that are removed for good and sampled again."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from flows.cli.main import main
from tasks.config.job import Job
from tasks.exports.tables import export_tables
from tasks.llm.calls.batches import Batching, BatchOutcome
from tasks.llm.ledger.entries import Entry
from tasks.llm.ledger.ledger import Ledger, spend_in
from tasks.llm.limiter import Budget
from tasks.llm.replies import Reply
from tasks.llm.request import Call
from tasks.maintain.backup import backup, restore
from tasks.maintain.upkeep import Choice, remove, spend_of_all, store_spend, tidy
from tasks.rules.errors import UsageError
from tasks.run.judge_configs import judge_target
from tests import kit
from tests.faults.server import FaultServer, HttpResponse, Request, is_judge_request, well_behaved
from tests.kit import imported, job_on, judged, prepared, recorded, rows_in, sampled, values_in
from warehouse import Warehouse, WarehouseBusy, WarehouseError

pytestmark = pytest.mark.slow

N_CRITERIA = 98
FIGURES = "select run_id, purpose, called_model, calls, failed_calls, unpriced_calls, cost_usd from spend order by all"


def job_at(server: FaultServer, folder: Path, **judge: Any) -> Job:
    at = {"api_base": server.api_base, "max_tokens": 1000, "price": {
        "input_usd_per_mtok": 1.0, "cached_usd_per_mtok": 1.0, "output_usd_per_mtok": 1.0,
    }}  # fmt: skip
    return job_on(
        "sample", folder, models=[{"name": "hosted_vllm/a", "label": "a", **at}],
        judges=[{"name": "openai/judge", "label": "judge", **at, **judge}], limits={"attempts": 2},
    )  # fmt: skip


def stored(job: Job) -> list[dict[str, Any]]:
    warehouse = Warehouse(job.warehouse)
    warehouse.publish()
    return rows_in(warehouse.root, FIGURES)


def record(job: Job, run_id: str, number: int) -> None:
    reply = Reply("ok", "x", prompt_tokens=1, completion_tokens=1, cost_usd=0.5)
    recorded(job, Entry(f"{run_id}-{number}", 1, "c", run_id, "m", "", "{}", reply, True, purpose="drift"))


def test_each_purpose_has_its_row_with_discarded_attempts_and_table_sums(server: FaultServer, tmp_path: Path) -> None:
    def fails_first(request: Request, number: int) -> HttpResponse:
        is_struck = not is_judge_request(request) and number == 0
        return (
            HttpResponse("", usage={"prompt_tokens": 7, "completion_tokens": 0})
            if is_struck
            else well_behaved(request, 1)
        )

    server.behaviour = fails_first
    job = job_at(server, tmp_path, mode="batch")
    sampled(prepared(job))
    judged(job)
    assert store_spend(job) == 2
    judging, sampling = stored(job)
    with Warehouse(job.warehouse).reader() as reader:
        paid = reader.rows("select (select sum(cost_usd) from responses) r, (select sum(cost_usd) from verdicts) v")[0]
        n_responses = reader.value("select count(*) from responses")
    assert (judging["purpose"], judging["called_model"]) == ("judge", "openai/judge")
    assert (judging["calls"], judging["failed_calls"], judging["unpriced_calls"]) == (N_CRITERIA, 0, 0)
    assert (sampling["purpose"], sampling["called_model"]) == ("sample", "hosted_vllm/a")
    assert (sampling["calls"], sampling["failed_calls"]) == (2 * n_responses, n_responses)
    assert (judging["cost_usd"], sampling["cost_usd"]) == pytest.approx((paid["v"], paid["r"]))
    assert paid["v"] > 0
    assert store_spend(job) == 0


def test_rows_are_written_for_every_run_and_only_when_they_are_news_and_this_machine_may_read_them(
    server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = job_at(server, tmp_path)
    Warehouse(job.warehouse).write("criteria", [kit.criterion("t", 0, 1.0)])
    Warehouse(job.warehouse).publish()
    assert store_spend(job) == 0
    record(job, "killed", 1)
    assert store_spend(job) == 1
    assert [(row["run_id"], row["calls"], row["cost_usd"]) for row in stored(job)] == [("killed", 1, 0.5)]
    record(job, "killed", 2)
    record(job, "next", 1)
    assert store_spend(job) == 2
    known = [(row["run_id"], row["calls"], row["cost_usd"]) for row in stored(job)]
    assert known == [("killed", 2, 1.0), ("next", 1, 0.5)]
    record(job, "next", 2)
    assert [row["calls"] for row in spend_of_all(job)] == [2, 2]
    with monkeypatch.context() as patched:
        # Two machines that open one ledger damage it.
        patched.setattr(Warehouse, "elsewhere", lambda _: "node7")
        assert [row["calls"] for row in spend_of_all(job)] == [2, 1]
        assert store_spend(job) == 0
    shutil.rmtree(job.warehouse / "ledger")
    record(job, "killed", 3)
    assert store_spend(job) == 0
    assert [row["calls"] for row in stored(job)] == [2, 1]


COUNTS = """
    select (select count(*) from responses) as responses, (select count(*) from verdicts) as verdicts,
        (select count(*) from scores) as scores
"""


def job_of_two(server: FaultServer, folder: Path) -> Job:
    at = {"api_base": server.api_base, "max_tokens": 1000}
    tasks = kit.write_jsonl(folder.with_name("finance.jsonl"), [kit.good_row("t1"), kit.good_row("t2")])
    return job_on(
        tasks, folder, models=[{"name": "hosted_vllm/a", "label": "a", **at}],
        judges=[{"name": "openai/judge", "label": "judge", **at}], limits={"attempts": 2},
    )  # fmt: skip


@pytest.fixture
def job(server: FaultServer, tmp_path: Path) -> Job:
    """Sampled and judged, one answer of it far too long."""
    server.behaviour = rambling
    job = job_of_two(server, tmp_path / "warehouse")
    sampled(prepared(job))
    judged(job)
    return job


def rambling(request: Request, number: int) -> HttpResponse:
    """The first answer to one of the questions never comes to its end."""
    said = well_behaved(request, number)
    is_struck = not is_judge_request(request) and "What does t1 cost?" in request["messages"][-1]["content"]
    return HttpResponse("blah " * 20_000) if is_struck and number == 0 else said


def longest(job: Job) -> dict[str, Any]:
    return rows_in(job, "select * from responses order by chars_alnum desc, response_id limit 1")[0]


def in_ledger(job: Job, text: str) -> bool:
    files = [path for path in (job.warehouse / "ledger").iterdir() if path.suffix != ".lock"]
    return any(text.encode() in path.read_bytes() for path in files)


def test_a_removed_answer_goes_with_its_verdicts_and_the_next_run_makes_a_new_one(
    job: Job, server: FaultServer
) -> None:
    (before,) = rows_in(job, COUNTS)
    bad = longest(job)
    assert bad["chars_alnum"] > 50_000
    of_bad = f"where response_id = '{bad['response_id']}'"
    n_verdicts = rows_in(job, f"select count(*) as n from verdicts {of_bad}")[0]["n"]
    spend = rows_in(job, "select count(*) as n, sum(cost_usd) as usd from run_costs")

    report = remove(job, Choice([bad["response_id"]]), "never ends")
    assert report.rows == 1
    (after,) = rows_in(job, COUNTS)
    assert (after["responses"], after["verdicts"]) == (before["responses"] - 1, before["verdicts"] - n_verdicts)
    assert rows_in(job, f"select count(*) as n from verdict_details {of_bad} and status <> 'not_judged'") == [{"n": 0}]
    assert values_in(job, "select response_id, reason from removals") == [(bad["response_id"], "never ends")]
    assert not in_ledger(job, "blah blah")
    assert rows_in(job, "select count(*) as n, sum(cost_usd) as usd from run_costs") == spend

    calls = len(server.book)
    assert sampled(job).rows == 1
    assert judged(job).rows == n_verdicts
    assert len(server.book) == calls + 1 + n_verdicts
    new = rows_in(job, f"select * from responses {of_bad}")[0]
    assert new["text"] != bad["text"]
    assert rows_in(job, COUNTS) == [before]
    assert rows_in(job, f"select count(*) as n from verdicts {of_bad}") == [{"n": n_verdicts}]
    Warehouse(job.warehouse).database.unlink()
    Warehouse(job.warehouse).publish()
    assert rows_in(job, COUNTS) == [before]
    assert (sampled(job).rows, judged(job).rows, len(server.book)) == (0, 0, calls + 1 + n_verdicts)


def test_a_removed_answer_is_in_no_part_backup_or_export_and_its_space_comes_back(
    job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    export_tables(job, tmp_path / "before")
    bad = longest(job)
    remove(job, Choice([bad["response_id"]]), "")
    (expected,) = rows_in(job, COUNTS)

    backup(job, tmp_path / "backup")
    restored = job.model_copy(update={"warehouse": tmp_path / "restored"})
    restore(restored, tmp_path / "backup")
    assert rows_in(restored, COUNTS) == [expected]
    assert not in_ledger(restored, "blah blah")

    export_tables(job, tmp_path / "exported")
    other = job.model_copy(update={"warehouse": tmp_path / "other"})
    imported(other, tmp_path / "exported")
    assert rows_in(other, COUNTS) == [expected]
    imported(job, tmp_path / "before")
    assert rows_in(job, COUNTS) == [expected]

    monkeypatch.setattr("warehouse.warehouse.compact", _without_grace)
    monkeypatch.setattr("warehouse.compaction.GRACE_S", 0.0)
    tidy(job)
    tidy(job)
    assert rows_in(job, COUNTS) == [expected]
    assert bad["response_id"] not in _stored_ids(job)
    Warehouse(job.warehouse).database.unlink()
    Warehouse(job.warehouse).publish()
    assert rows_in(job, COUNTS) == [expected]


def _without_grace(*given: Any, **named: Any) -> Any:
    from warehouse.compaction import compact

    return compact(*given, **named | {"grace_s": 0.0})


def _stored_ids(job: Job) -> set[str]:
    import pyarrow.parquet as pq

    parts = (job.warehouse / "parts" / "responses").rglob("*.parquet")
    return {each for part in parts for each in pq.read_table(part, columns=["response_id"])["response_id"].to_pylist()}


def test_a_kill_after_a_noted_removal_is_made_good_by_compaction(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    def killed(_: object) -> None:
        raise KeyboardInterrupt

    bad = longest(job)
    with monkeypatch.context() as patched:
        patched.setattr(Warehouse, "clean", killed)
        with pytest.raises(KeyboardInterrupt):
            remove(job, Choice([bad["response_id"]]), "")
    tidy(job)
    assert rows_in(job, f"select 1 from responses where response_id = '{bad['response_id']}'") == []
    assert not in_ledger(job, "blah blah")
    standing = Warehouse(job.warehouse).store.standing("responses")
    assert all("blah" not in str(part.path.read_bytes()) for part in standing)


def test_what_is_removed_is_chosen_by_all_that_is_given(job: Job, capsys: pytest.CaptureFixture[str]) -> None:
    def said(*arguments: str, code: int = 0) -> str:
        assert main(["remove", "response", *arguments, "--warehouse", str(job.warehouse)]) == code
        captured = capsys.readouterr()
        return captured.err if code else captured.out

    n_responses = rows_in(job, "select count(*) as n from responses")[0]["n"]
    bad = longest(job)
    listed = json.loads(said("--longer-than", "50000", "--dry-run", "--json"))
    assert {each["response_id"] for each in listed} == {
        row["response_id"] for row in rows_in(job, "select response_id from responses where chars_alnum > 50000")
    }
    assert len(json.loads(said("--model", "a", "--trial", "1", "--dry-run", "--json"))) == n_responses
    assert json.loads(said("--model", "b", "--dry-run", "--json")) == []
    assert "name the responses to remove" in said(code=2)
    assert "nothing-like-it: no stored response has this id" in said("nothing-like-it", code=2)
    assert "1 response removed" in said(bad["response_id"], "--task", bad["task_id"], "--reason", "too long")
    assert "no stored response has this id" in said(bad["response_id"], code=2)


def test_nothing_is_removed_while_a_part_is_damaged(job: Job) -> None:
    (part,) = Warehouse(job.warehouse).store.standing("verdicts")
    content = bytearray(part.path.read_bytes())
    content[len(content) // 2] ^= 1
    part.path.write_bytes(content)
    wanted = Choice([longest(job)["response_id"]])

    with pytest.raises(WarehouseError, match=f"{part.name}: is damaged; run `prbench aggregate` to repair it"):
        remove(job, wanted, "too long")
    assert not Warehouse(job.warehouse).store.standing("removals")

    Warehouse(job.warehouse).verify()
    remove(job, wanted, "too long")
    assert [] == Warehouse(job.warehouse).losses()


def test_nothing_is_removed_while_a_run_is_at_work(job: Job) -> None:
    with Warehouse(job.warehouse).writing(), pytest.raises(WarehouseBusy):
        remove(job, Choice([longest(job)["response_id"]]), "")
    with pytest.raises(UsageError, match="name the responses"):
        remove(job, Choice(), "")


def test_the_ledger_does_not_bring_a_removed_answer_back_even_if_it_still_holds_it(
    job: Job, server: FaultServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when another file of the ledger holds the reply, or a backup of the ledger was put back."""
    monkeypatch.setattr(
        "tasks.maintain.upkeep.forget", lambda *_: __import__("tasks.llm.ledger.ledger").llm.ledger.ledger.Pruned()
    )
    bad = longest(job)
    remove(job, Choice([bad["response_id"]]), "")
    assert in_ledger(job, "blah blah")
    assert sampled(job).rows == 1
    assert longest(job)["chars_alnum"] < 50_000


def test_two_runs_submit_the_same_calls_in_one_batch_and_collect_it_once(server: FaultServer, tmp_path: Path) -> None:
    server.polls_until_done = 1
    target = judge_target(job_at(server, tmp_path, mode="batch").settings.judges[0])
    calls = [
        Call(target, [{"role": "user", "content": f"question {number}"}], f"cell {number}", is_batched=True)
        for number in range(30)
    ]

    async def both() -> tuple[BatchOutcome, BatchOutcome]:
        ledgers = [Ledger(tmp_path / "ledger") for _ in range(2)]
        runs = [Batching(target, ledger, Budget(None, None), f"run {n}") for n, ledger in enumerate(ledgers)]
        one, other = await asyncio.gather(*(run.submit_and_collect(calls, 30.0) for run in runs))
        for ledger in ledgers:
            answers = [ledger.history(call.key(call.parameters(target.parameters))) for call in calls]
            assert [len(history.entries) for history in answers] == [1] * 30
            ledger.close()
        return one, other

    one, other = asyncio.run(both())
    assert sorted([one.n_submitted, other.n_submitted]) == [0, 30]
    assert sorted([len(one.replies), len(other.replies)]) == [0, 30]
    assert len(server.paid) == 30
    assert [(row["calls"], row["purpose"]) for row in spend_in(tmp_path / "ledger")] == [(30, "judge")]
