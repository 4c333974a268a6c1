"""Taking an import back and bringing it in again: what is shown changes, and nothing is lost or judged twice."""

from pathlib import Path

import pytest

from tasks.config.job import Job
from tasks.imports.files import retract
from tasks.imports.responses import import_responses
from tasks.imports.verdicts import import_verdicts
from tasks.rules.errors import UsageError
from tests.faults.server import FaultServer
from tests.kit import good_row, job_on, judged, prepared, rows_in, write_jsonl

pytestmark = pytest.mark.slow

RESPONSES = [{"task": task, "model": "ada", "response": f"A response to {task}."} for task in ("t1", "t2")]
LABELS = [{"task": "t1", "model": "ada", "criterion": f"t1-c{i}", "criteria_met": True, "judge": "eva"} for i in (0, 1)]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    tasks = write_jsonl(tmp_path / "finance.jsonl", [good_row("t1"), good_row("t2")])
    return prepared(job_on(tasks, tmp_path / "warehouse"))


@pytest.fixture
def responses(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "responses.jsonl", RESPONSES)


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "labels.jsonl", LABELS)


def counts(job: Job) -> tuple[int, int]:
    """Responses and verdicts that are published."""
    (actual,) = rows_in(job, "select (select count(*) from responses) as r, (select count(*) from verdicts) as v")
    return actual["r"], actual["v"]


def batch_of(job: Job, table: str = "responses", model: str = "ada") -> str:
    (actual,) = rows_in(job, f"select distinct import_batch as batch from {table} where model = '{model}'")
    return str(actual["batch"])


@pytest.mark.parametrize(("table", "counted", "left"), [
    ("responses", "2 responses and 2 verdicts", (1, 0)), ("verdicts", "0 responses and 2 verdicts", (3, 0)),
])  # fmt: skip
def test_a_retracted_import_goes_with_all_verdicts_on_its_responses_and_others_stay(
    table: str, counted: str, left: tuple[int, int], job: Job, responses: Path, labels: Path, tmp_path: Path
) -> None:
    import_responses(job, responses)
    import_verdicts(job, labels)
    import_responses(job, write_jsonl(tmp_path / "other.jsonl", [RESPONSES[0] | {"model": "bell"}]))

    batch = batch_of(job, table)
    assert f"{counted} retracted" in retract(job, batch).line
    assert "is already retracted" in retract(job, batch).line
    assert left == counts(job)


def test_importing_the_file_again_brings_back_what_it_brought_and_what_was_judged_on_it(
    job: Job, responses: Path, labels: Path, server: FaultServer
) -> None:
    judge = {"name": "openai/judge", "label": "judge", "api_base": server.api_base, "max_tokens": 1000}
    job = job_on(job.settings.dataset.source, job.warehouse, judges=[judge])
    import_responses(job, responses)
    import_verdicts(job, labels)
    judged(job)
    queries = [f"select * exclude (cost_usd) from {table} order by all" for table in ("responses", "verdicts")]
    before = [rows_in(job, query) for query in queries]
    n_calls = len(server.book)
    retract(job, batch_of(job))
    assert (0, 0) == counts(job)
    judged(job)

    report = import_responses(job, responses)
    judged(job)

    assert "2 responses and 22 verdicts restored" in report.line
    assert (2, 22) == counts(job)
    assert before == [rows_in(job, query) for query in queries]
    assert n_calls == len(server.book) == 20


def test_an_unknown_batch_is_refused_and_known_ones_are_named(job: Job, responses: Path) -> None:
    with pytest.raises(UsageError, match="imported are none"):
        retract(job, "deadbeef")
    import_responses(job, responses)
    with pytest.raises(UsageError, match=batch_of(job)):
        retract(job, "deadbeef")
    assert (2, 0) == counts(job)
