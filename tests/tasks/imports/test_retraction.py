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
OTHER = [{"task": "t1", "model": "bell", "response": "Another one."}]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    return prepared(
        job_on(write_jsonl(tmp_path / "finance.jsonl", [good_row("t1"), good_row("t2")]), tmp_path / "warehouse")
    )


@pytest.fixture
def answers(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "answers.jsonl", ANSWERS)


@pytest.fixture
def labels(tmp_path: Path) -> Path:
    return write_jsonl(tmp_path / "labels.jsonl", LABELS)


def counts(job: Job) -> tuple[int, int]:
    """Responses and verdicts that are published."""
    (found,) = rows_in(job, "select (select count(*) from responses) as r, (select count(*) from verdicts) as v")
    return found["r"], found["v"]


def batch_of(job: Job, table: str, where: str) -> str:
    (found,) = rows_in(job, f"select distinct import_batch as batch from {table} where {where}")
    return str(found["batch"])


def test_a_retracted_import_goes_with_all_verdicts_on_its_responses(job: Job, answers: Path, labels: Path) -> None:
    import_responses(job, answers)
    import_verdicts(job, labels)
    report = retract(job, batch_of(job, "responses", "true"))

    assert "2 responses and 2 verdicts retracted" in report.line
    assert (0, 0) == counts(job)


def test_retracting_labels_leaves_the_responses(job: Job, answers: Path, labels: Path) -> None:
    import_responses(job, answers)
    import_verdicts(job, labels)
    retract(job, batch_of(job, "verdicts", "true"))

    assert (2, 0) == counts(job)


def test_other_imports_stay(job: Job, answers: Path, tmp_path: Path) -> None:
    import_responses(job, answers)
    import_responses(job, write_jsonl(tmp_path / "other.jsonl", OTHER))
    retract(job, batch_of(job, "responses", "model = 'ada'"))

    assert [{"model": "bell"}] == rows_in(job, "select model from responses")


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
    retract(job, batch_of(job, "responses", "true"))
    assert (0, 0) == counts(job)
    judged(job)

    report = import_responses(job, answers)
    judged(job)

    assert "2 responses and 22 verdicts restored" in report.line
    assert (2, 22) == counts(job)
    assert before == [rows_in(job, query) for query in queries]
    assert n_calls == len(server.book) == 20


def test_a_file_is_retracted_and_brought_back_as_often_as_one_likes(job: Job, answers: Path) -> None:
    import_responses(job, answers)
    batch = batch_of(job, "responses", "true")
    for _ in range(2):
        retract(job, batch)
        assert (0, 0) == counts(job)
        import_responses(job, answers)
        assert (2, 0) == counts(job)


def test_what_takes_the_place_of_a_retracted_response_keeps_it(job: Job, answers: Path, tmp_path: Path) -> None:
    import_responses(job, answers)
    retract(job, batch_of(job, "responses", "true"))
    corrected = [{**row, "response": "Corrected."} for row in ANSWERS]
    import_responses(job, write_jsonl(tmp_path / "corrected.jsonl", corrected))

    with pytest.raises(Exception, match="row 1: a different response already exists"):
        import_responses(job, answers)
    assert [{"text": "Corrected."}] == rows_in(job, "select distinct text from responses")


def test_the_same_answers_from_another_file_outlive_the_first_one(job: Job, answers: Path, tmp_path: Path) -> None:
    import_responses(job, answers)
    first = batch_of(job, "responses", "true")
    retract(job, first)
    import_responses(job, write_jsonl(tmp_path / "again.jsonl", list(reversed(ANSWERS))))
    import_responses(job, answers)
    retract(job, first)

    assert (2, 0) == counts(job)


def test_retracting_twice_is_a_no_op(job: Job, answers: Path) -> None:
    import_responses(job, answers)
    batch = batch_of(job, "responses", "true")
    retract(job, batch)
    before = sorted(job.warehouse.rglob("*.parquet"))

    assert "is already retracted" in retract(job, batch).line
    assert before == sorted(job.warehouse.rglob("*.parquet"))


def test_an_unknown_batch_is_refused_and_known_ones_are_named(job: Job, answers: Path) -> None:
    import_responses(job, answers)
    known = batch_of(job, "responses", "true")

    with pytest.raises(UsageError, match=known):
        retract(job, "deadbeef")
    assert (2, 0) == counts(job)


def test_where_nothing_was_imported_that_is_what_is_said(job: Job) -> None:
    with pytest.raises(UsageError, match="nothing was imported"):
        retract(job, "deadbeef")
