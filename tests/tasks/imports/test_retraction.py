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

ANSWERS = [{"task": task, "model": "ada", "response": f"An answer to {task}."} for task in ("t1", "t2")]
LABELS = [{"task": "t1", "model": "ada", "criterion": f"t1-c{i}", "criteria_met": True, "judge": "eva"} for i in (0, 1)]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    tasks = write_jsonl(tmp_path / "finance.jsonl", [good_row("t1"), good_row("t2")])
    return prepared(job_on(tasks, tmp_path / "warehouse"))


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "responses.jsonl", ANSWERS)


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "labels.jsonl", LABELS)


def counts(job: Job) -> tuple[int, int]:
    """Responses and verdicts that are published."""
    (found,) = rows_in(job, "select (select count(*) from responses) as r, (select count(*) from verdicts) as v")
    return found["r"], found["v"]


def batch_of(job: Job, table: str = "responses", model: str = "ada") -> str:
    (found,) = rows_in(job, f"select distinct import_batch as batch from {table} where model = '{model}'")
    return str(found["batch"])


@pytest.mark.parametrize(("table", "said", "left"), [
    ("responses", "2 responses and 2 verdicts", (1, 0)), ("verdicts", "0 responses and 2 verdicts", (3, 0)),
])  # fmt: skip
def test_a_retracted_import_goes_with_all_verdicts_on_its_responses_and_others_stay(
    table: str, said: str, left: tuple[int, int], job: Job, answers: Path, labels: Path, tmp_path: Path
) -> None:
    import_responses(job, answers)
    import_verdicts(job, labels)
    import_responses(job, write_jsonl(tmp_path / "other.jsonl", [ANSWERS[0] | {"model": "bell"}]))

    batch = batch_of(job, table)
    assert f"{said} retracted" in retract(job, batch).line
    assert "is already retracted" in retract(job, batch).line
    assert left == counts(job)


def test_importing_the_file_again_brings_back_what_it_brought_and_what_was_judged_on_it(
    job: Job, answers: Path, labels: Path, server: FaultServer
) -> None:
    judge = {"name": "openai/judge", "label": "judge", "api_base": server.api_base, "max_tokens": 1000}
    job = job_on(job.settings.dataset.source, job.warehouse, judges=[judge])
    import_responses(job, answers)
    import_verdicts(job, labels)
    judged(job)
    queries = [f"select * exclude (cost_usd) from {table} order by all" for table in ("responses", "verdicts")]
    before = [rows_in(job, query) for query in queries]
    n_calls = len(server.book)
    retract(job, batch_of(job))
    assert (0, 0) == counts(job)
    judged(job)

    report = import_responses(job, answers)
    judged(job)

    assert "2 responses and 22 verdicts restored" in report.line
    assert (2, 22) == counts(job)
    assert before == [rows_in(job, query) for query in queries]
    assert n_calls == len(server.book) == 20


def test_what_takes_the_place_of_a_retracted_response_keeps_it(job: Job, answers: Path, tmp_path: Path) -> None:
    import_responses(job, answers)
    first = batch_of(job)
    retract(job, first)
    import_responses(job, write_jsonl(tmp_path / "again.jsonl", list(reversed(ANSWERS))))
    import_responses(job, answers)
    retract(job, first)
    assert (2, 0) == counts(job)

    retract(job, batch_of(job))
    import_responses(job, write_jsonl(tmp_path / "new.jsonl", [{**row, "response": "Corrected."} for row in ANSWERS]))
    with pytest.raises(Exception, match="row 1: a different response already exists"):
        import_responses(job, answers)
    assert [{"text": "Corrected."}] == rows_in(job, "select distinct text from responses")


def test_an_unknown_batch_is_refused_and_known_ones_are_named(job: Job, answers: Path) -> None:
    with pytest.raises(UsageError, match="imported are none"):
        retract(job, "deadbeef")
    import_responses(job, answers)
    with pytest.raises(UsageError, match=batch_of(job)):
        retract(job, "deadbeef")
    assert (2, 0) == counts(job)
