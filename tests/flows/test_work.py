"""What `has_work` finds in data and configuration, and which reports are up to date.

Work that is overlooked is not done.
"""

import asyncio
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from flows.report import inputs_of, is_up_to_date, on_everything
from flows.work import FLOWS, has_work, prefect_flow, without_work
from tasks.aggregate import aggregate
from tasks.assemble import assemble
from tasks.check import check
from tasks.config.job import Job
from tasks.config.settings import Limits
from tasks.drift import choose_control_set, judge_control_set
from tasks.hard_subset.select import select_hard
from tasks.ingest import ingest
from tasks.judge.rubric_variants import derive
from tasks.report.rendering.program import hash_of_program
from tasks.report.rendering.site import Site
from tasks.rules.errors import UsageError
from tests.faults.server import FaultServer, HttpResponse, well_behaved
from tests.kit import (
    ROOT,
    configure,
    endpoint,
    job_on,
    judged,
    one_line,
    prepared,
    row,
    sampled,
    written,
)
from tests.tasks.hard_subset.hard_world import (
    SIZE,
    TASKS,
    TENTHS,
    job_with,
    with_rule,
)
from warehouse import Warehouse, sample_path


@pytest.fixture
def data(tmp_path) -> Path:
    """A data set with one split."""
    folder = tmp_path / "set"
    folder.mkdir()
    shutil.copy(sample_path("prbench"), folder / "a.jsonl")
    return folder


def test_ingest_has_work_until_the_data_is_stored_and_checked(data, tmp_path):
    job = job_on(data, tmp_path / "data")

    assert has_work(job, "ingest")
    ingest(job)
    assert has_work(job, "ingest")
    check(job, ("ingest",), reuse=True)
    assert not has_work(job, "ingest")


def test_ingest_has_work_for_other_data_and_other_checks(data, tmp_path):
    prepared(job_on(data, tmp_path / "data"))

    other_data = job_on("sample", tmp_path / "data")
    other_checks = job_on(
        data,
        tmp_path / "data",
        quality={"weight_range": "warn"},
    )
    assert has_work(other_data, "ingest")
    assert has_work(other_checks, "ingest")


@pytest.mark.slow
def test_plan_checks_the_data_under_another_policy_as_a_run_does(command):
    plan = ("plan", "--warehouse", "data")
    command(*plan)
    command.configure(dataset={"source": "sample"}, quality={"weight_range": "warn"})

    assert "checking the data set" in command(*plan).stderr


def test_there_is_work_for_a_new_split(data, tmp_path):
    prepared(job_on(data, tmp_path / "data"))

    shutil.copy(data / "a.jsonl", data / "b.jsonl")

    job = job_on(data, tmp_path / "data")
    assert has_work(job, "ingest")
    assert has_work(job, "evaluate")


def test_a_task_that_is_not_stored_is_refused_before_a_flow_starts(data, tmp_path):
    job = prepared(job_on(data, tmp_path / "data"))

    with pytest.raises(UsageError, match=one_line("--task nope: ")):
        has_work(job.model_copy(update={"named_tasks": ("nope",)}), "backfill")


def test_select_hard_has_work_until_the_configured_subset_is_selected(tmp_path):
    job = job_with(tmp_path, TENTHS, {"finance": TASKS})

    aggregate(job)
    assert has_work(job, "select_hard")
    select_hard(job)
    aggregate(job)
    assert not has_work(job, "select_hard")
    assert has_work(with_rule(job, share={"Finance": SIZE + 1}), "select_hard")
    assert has_work(with_rule(job, panel=sorted(TENTHS)[:2]), "select_hard")
    assert has_work(with_rule(job, panel=["unknown"]), "select_hard")


def select_and_aggregate(job: Job):
    select_hard(job, must_select=False)
    aggregate(job)


STAGES: list[tuple[str, Callable[[Job], object]]] = [
    ("ingest", prepared),
    ("sample", sampled),
    ("derive", lambda job: asyncio.run(derive(job))),
    ("judge", judged),
    ("aggregate", aggregate),
    ("select_hard", select_and_aggregate),
]
"""The stages of a run in their order, each with a function that does its work."""


@dataclass
class FinishedRun:
    """A run whose stages are done."""

    server: FaultServer
    settings: dict[str, Any]
    folder: Path

    def job(self, **changes: Any) -> Job:
        """A job with some other settings on the same folder."""
        return job_on("sample", self.folder, **self.settings | changes)

    def endpoint(self, label: str, **changes: Any) -> dict[str, Any]:
        return endpoint(
            label,
            self.server.api_base,
            name="hosted_vllm/m",
            **changes,
        )


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory) -> Iterator[FinishedRun]:
    """A run of all stages, each of which had work until it was done.

    Only the last test on it, of a night, changes it.
    """
    with FaultServer() as server:
        run = FinishedRun(
            server,
            {},
            tmp_path_factory.mktemp("finished") / "data",
        )
        run.settings = {
            "models": [run.endpoint("a")],
            "judges": [
                run.endpoint("judge", rubric="examples_removed"),
                run.endpoint("plain"),
            ],
            "drift": {"verdicts": 5},
            "limits": {"attempts": 1},
            "report": {"enabled": False},
        }
        for name, work in STAGES:
            assert has_work(run.job(), name), name
            assert has_work(run.job(), "evaluate"), name
            work(run.job())
            assert not has_work(run.job(), name), name
        yield run


@pytest.mark.slow
@pytest.mark.parametrize("name", ["evaluate", "backfill", "assemble"])
def test_a_flow_has_no_work_when_its_stages_are_done(name, finished_run):
    assert not has_work(finished_run.job(), name)


@pytest.mark.slow
def test_a_run_without_work_reports_on_data_and_coverage_and_calls_nothing(
    finished_run,
):
    n_calls = len(finished_run.server.book)

    data_report, coverage_report = without_work(finished_run.job(), "evaluate")

    assert data_report.stage == "ingest"
    assert coverage_report.stage == "coverage"
    assert not coverage_report.is_below_bar
    assert len(finished_run.server.book) == n_calls


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes",
    [
        {"trials": 2},
        {"majorities": {"all": ["a", "b", "somebody"]}},
        {"report": {"enabled": True}},
        {"hard_subset": {"share": 0.25}},
    ],
)
def test_a_run_has_work_after_a_change_of_the_settings(changes, finished_run):
    assert has_work(finished_run.job(**changes), "evaluate")


@pytest.mark.slow
def test_a_run_has_work_for_a_new_model_judge_or_rubric(finished_run):
    endpoint_of = finished_run.endpoint
    models = [endpoint_of("a"), endpoint_of("b")]
    judges = [endpoint_of("judge", rubric="examples_removed"), endpoint_of("j")]

    assert has_work(finished_run.job(models=models), "evaluate")
    assert has_work(finished_run.job(judges=judges), "evaluate")
    assert has_work(finished_run.job(judges=[endpoint_of("judge")]), "evaluate")


IMPORTS_OF_A_RUN = """
import sys
from flows.cli.main import main
heavy = {"prefect", "litellm", "great_expectations", "datasets", "altair", "scipy.special"}
print([main(["run", "-q"]), main(["leaderboard"])], sorted(heavy & set(sys.modules)))
"""


@pytest.mark.slow
def test_a_finished_run_and_a_leaderboard_import_nothing_heavy_and_start_no_server(
    finished_run, tmp_path, monkeypatch
):
    shutil.copytree(finished_run.folder, tmp_path / "data")
    configure(
        tmp_path,
        dataset={"source": "sample"},
        warehouse="data",
        **finished_run.settings,
    )
    monkeypatch.delenv("PRBENCH_PREFECT")
    monkeypatch.setenv("PREFECT_HOME", str(tmp_path / "home"))
    n_calls = len(finished_run.server.book)

    output = subprocess.check_output(
        [sys.executable, "-c", IMPORTS_OF_A_RUN], cwd=tmp_path, text=True
    )

    assert output.splitlines()[-1] == "[0, 0] []"
    assert len(finished_run.server.book) == n_calls
    assert not (tmp_path / "data" / "prefect").exists()


@pytest.mark.slow
def test_a_night_has_work_until_it_has_ended_and_its_control_sets_have_verdicts(
    finished_run,
):
    night = finished_run.job().model_copy(update={"night": "2026-11-22"})
    finished_night = row(
        "runs",
        night=night.night,
        outcome="done",
        config='{"benchmark": "prbench"}',
    )

    assert has_work(night, "night")
    assert not has_work(night, "evaluate")
    written(night.warehouse, {"runs": [finished_night]}).publish()
    assert has_work(night, "night")
    choose_control_set(night)
    failure = HttpResponse(status=500, error={"message": "x"})
    finished_run.server.behaviour = lambda _, __: failure
    asyncio.run(judge_control_set(night))
    assert has_work(night, "night")
    finished_run.server.behaviour = well_behaved
    asyncio.run(judge_control_set(night))
    assert not has_work(night, "night")


@pytest.mark.parametrize("name", FLOWS)
def test_without_data_every_flow_has_work(name, tmp_path):
    assert has_work(job_on("sample", tmp_path / "data"), name)


@pytest.mark.parametrize("name", ["check", "compact"])
def test_a_flow_whose_work_is_not_known_always_has_work(name, tmp_path):
    job = job_on("sample", tmp_path / "data")

    assemble(prepared(job))

    assert has_work(job, name)


@pytest.fixture
def written_report(tmp_path) -> Job:
    """A job with a report of a few stand-in pages, which counts as up to date."""
    job = job_on("sample", tmp_path)
    Warehouse(job.warehouse).publish()
    write_pages(job, inputs_of(on_everything(job)))
    return job


def write_pages(job: Job, inputs: dict[str, str]):
    """Write stand-in pages that are made from these inputs."""
    index = Site(job.report_folder)
    site = Site(job.report_index.parent, inputs)
    for name in ("index.html", "data/task.js"):
        site.write(name, "a page")
    site.finish()
    index.write("index.html", "a page")
    index.finish()


def test_a_report_without_hashes_of_its_inputs_is_not_up_to_date(written_report):
    assert is_up_to_date(written_report)

    write_pages(written_report, {})

    assert not is_up_to_date(written_report)


def test_a_setting_that_no_page_shows_leaves_a_report_up_to_date(written_report):
    capped = written_report.with_settings(limits=Limits(max_usd=1.0))

    assert is_up_to_date(capped)


def test_another_vintage_makes_a_report_out_of_date(written_report):
    later = written_report.model_copy(update={"vintage": "later"})

    assert not is_up_to_date(later)


@pytest.mark.parametrize(
    "name",
    [
        "tasks/figures/shown/judges.py",
        "sql/figures/judges.sql",
        "sql/marts/leaderboards/leaderboard.sql",
        "tasks/report/build.py",
    ],
)
def test_a_changed_figure_query_or_page_makes_a_report_out_of_date(
    name,
    written_report,
    tmp_path,
    monkeypatch,
):
    program = tmp_path / "program"
    (program / name).parent.mkdir(parents=True)
    shutil.copy(ROOT / name, program / name)
    monkeypatch.setattr(
        "flows.report.hash_of_program", lambda: hash_of_program(program)
    )
    write_pages(written_report, inputs_of(on_everything(written_report)))
    assert is_up_to_date(written_report)

    with (program / name).open("a", encoding="utf-8") as file:
        file.write("\n")
    hash_of_program.cache_clear()

    assert not is_up_to_date(written_report)


def test_a_file_of_somebody_else_leaves_a_report_up_to_date(written_report):
    foreign_file = written_report.report_index.parent / "data/of-somebody.txt"

    foreign_file.write_text("not listed")

    assert is_up_to_date(written_report)


@pytest.mark.parametrize(
    "name", ["index.html", "prbench/index.html", "prbench/data/task.js"]
)
def test_a_missing_page_makes_a_report_out_of_date(name, written_report):
    (written_report.report_folder / name).unlink()

    assert not is_up_to_date(written_report)


@pytest.mark.parametrize("name", ["prbench/index.html", "prbench/data/task.js"])
def test_a_cut_page_makes_a_report_out_of_date(name, written_report):
    (written_report.report_folder / name).write_text("a pag")

    assert not is_up_to_date(written_report)


def test_newly_published_rows_make_a_report_out_of_date(written_report):
    written(written_report.warehouse, {"labels": [row("labels")]}).publish()

    assert not is_up_to_date(written_report)


def test_every_flow_that_commands_start_can_be_loaded():
    from prefect import Flow  # it takes seconds to import

    for name in FLOWS:
        assert isinstance(prefect_flow(name), Flow)
