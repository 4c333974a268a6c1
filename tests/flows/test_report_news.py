"""A report is written only as far as something is new."""

from unittest.mock import Mock

import pytest

from flows.report import inputs_of, write_report
from tasks.config.job import Job
from tasks.llm.ledger.ledger import LedgerReader
from tests.kit import add_calls, call_entry, copied, few_published, file_times, row
from tests.tasks.report.drilldown.drilled import response_rows_of, store, tiny_job
from warehouse import Warehouse

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("only_leaderboard")]


@pytest.fixture(scope="module")
def reported_job(tmp_path_factory) -> Job:
    """A job with a report on two tasks; tests must not change it."""
    with few_published("leaderboard"):
        job = tiny_job(tmp_path_factory.mktemp("reported"), ("t1", "t2"))
        write_report(job)
    return job


@pytest.fixture
def job(reported_job: Job, tmp_path) -> Job:
    """A copy of it."""
    return copied(reported_job, tmp_path / "warehouse")


REPORT = "prbench/report.json"


def test_a_report_without_news_is_not_written_again(job):
    first_times = file_times(job.report_folder)

    n_bytes = write_report(job)

    assert file_times(job.report_folder) == first_times
    site = job.report_index.parent
    assert n_bytes == sum(path.stat().st_size for path in site.rglob("*.*"))


@pytest.mark.parametrize("name", ["data/index.js", "assets/page.js", "../index.html"])
def test_a_damaged_file_of_a_report_without_news_is_repaired(job, name):
    path = job.report_index.parent / name
    content = path.read_bytes()
    path.write_bytes(content.replace(b"e", b"E"))

    write_report(job)

    assert path.read_bytes() == content


def test_a_report_that_could_not_be_finished_is_written_again(job, monkeypatch):
    store(job, response_rows_of(("t1",), "m3"))
    with monkeypatch.context() as broken:
        failure = Mock(side_effect=OSError("full"))
        broken.setattr("tasks.report.build.write_benchmark_index", failure)
        with pytest.raises(OSError, match="full"):
            write_report(job)
    first_times = file_times(job.report_folder)

    write_report(job)

    assert file_times(job.report_folder)[REPORT] > first_times[REPORT]


def test_data_files_of_the_report_before_are_removed_without_news(job):
    outdated = job.report_index.parent / "data/0123456789abcdef.js"
    outdated.write_text("of the report before")

    write_report(job)

    assert not outdated.exists()


@pytest.mark.parametrize("night", [None, "2026-10-01"])
def test_of_runs_only_a_night_changes_data_files(job, night):
    first_inputs = inputs_of(job)
    warehouse = Warehouse(job.warehouse)
    warehouse.write("runs", [row("runs", run_id="another", night=night)])
    warehouse.publish()

    inputs = inputs_of(job)

    assert inputs["runs"] != first_inputs["runs"]
    assert (inputs["results"] == first_inputs["results"]) == (night is None)


@pytest.mark.parametrize("narrowed", [{"named_models": ("m1",)}, {"vintage": "v2"}])
def test_a_narrowed_report_is_made_from_other_results(reported_job, narrowed):
    narrowed_job = reported_job.model_copy(update=narrowed)

    assert inputs_of(narrowed_job)["results"] != inputs_of(reported_job)["results"]


def test_after_a_run_without_results_only_pages_are_written(job, monkeypatch):
    warehouse = Warehouse(job.warehouse)
    warehouse.write("runs", [row("runs", run_id="a-run-without-results")])
    warehouse.publish()
    never_called = Mock(side_effect=AssertionError)
    monkeypatch.setattr("tasks.report.drilldown.pages.subjects_of", never_called)

    write_report(job)

    assert (
        "a-run-without-results"
        in (job.report_index.parent / "history.html").read_text()
    )


def test_a_report_without_replies_is_written_again(job, monkeypatch):
    rows = response_rows_of(("t1",), "m3")
    store(job, rows)
    verdict_id = rows["verdicts"][0]["verdict_id"]
    add_calls(job, call_entry("a call", cell=verdict_id))
    with monkeypatch.context() as broken:
        broken.setattr(LedgerReader, "replies_for", Mock(side_effect=OSError))
        write_report(job)
    lacking_times = file_times(job.report_folder)

    write_report(job)

    assert file_times(job.report_folder)[REPORT] > lacking_times[REPORT]
