"""Responses that are removed for good and sampled again."""

import json
from collections.abc import Iterator
from unittest.mock import Mock

import pyarrow.parquet as pq
import pytest

from flows.cli.main import main
from tasks.config.job import Job
from tasks.exports.tables import export_tables
from tasks.llm.ledger.pruning import Pruned
from tasks.maintain.backup import backup, restore
from tasks.maintain.removal import ResponseChoice, remove
from tasks.maintain.spend import store_calls
from tasks.maintain.tidying import tidy
from tests.faults.server import (
    FaultServer,
    HttpResponse,
    is_judge_request,
    well_behaved,
)
from tests.kit import (
    Row,
    few_published,
    good_row,
    imported,
    judged,
    prepared,
    rows_in,
    sampled,
    values_in,
    write_jsonl,
)
from tests.tasks.maintain.conftest import job_at
from tests.warehouse.parts import flip
from warehouse import Warehouse, WarehouseBusy, WarehouseError

pytestmark = pytest.mark.slow

COUNTS = """
    select
        (select count(*) from responses),
        (select count(*) from verdicts),
        (select count(*) from scores)
"""


@pytest.fixture(scope="module", autouse=True)
def _few_published() -> Iterator[None]:
    """Publish only the scores that these tests read."""
    with few_published("scores", "verdict_details"):
        yield


@pytest.fixture(scope="module")
def provider() -> Iterator[FaultServer]:
    with FaultServer(rambling) as running:
        yield running


@pytest.fixture(scope="module")
def shared(provider: FaultServer, tmp_path_factory) -> Job:
    """A sampled and judged job with one response that is far too long."""
    folder = tmp_path_factory.mktemp("rambling")
    rows = [good_row("t1"), good_row("t2")]
    tasks = write_jsonl(folder / "finance.jsonl", rows)
    job = job_at(provider, folder / "warehouse", tasks, name="hosted_vllm/judge")
    sampled(prepared(job))
    judged(job)
    store_calls(job)
    Warehouse(job.warehouse).publish()
    return job


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


def is_in_ledger(job: Job) -> bool:
    """Return whether any file of the ledger has the text of the long response."""
    contents = [
        path.read_bytes()
        for path in (job.warehouse / "ledger").iterdir()
        if path.suffix != ".lock"
    ]
    return any(b"blah blah" in content for content in contents)


def rebuild(job: Job):
    """Publish the database again, from the stored rows alone."""
    Warehouse(job.warehouse).database.unlink()
    Warehouse(job.warehouse).publish()


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
