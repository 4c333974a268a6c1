"""What `has_work` finds, by stored data and configuration: work that it overlooks is not done."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from flows.report import basis_of, is_up_to_date, whole_of
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
from tests.faults.server import FaultServer, HttpResponse, well_behaved
from tests.kit import ROOT, job_on, judged, prepared, row, sampled, written
from tests.tasks.hard_subset.hard_world import SIZE, TASKS, TENTHS, job_with, with_rule
from warehouse import Warehouse, sample_path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data set with one split."""
    folder = tmp_path / "set"
    folder.mkdir()
    shutil.copy(str(sample_path("prbench")), folder / "a.jsonl")
    return folder


def test_ingest_has_work_for_data_that_is_not_stored_or_not_checked_and_only_then(
    data: Path, tmp_path: Path
) -> None:
    job = job_on(data, tmp_path / "data")
    assert has_work(job, "ingest")
    ingest(job)
    assert has_work(job, "ingest")
    check(job, ("ingest",), reuse=True)
    assert not has_work(job, "ingest")
    assert has_work(job_on("sample", tmp_path / "data"), "ingest")
    assert has_work(job_on(data, tmp_path / "data", quality={"weights": "warn"}), "ingest")
    shutil.copy(data / "a.jsonl", data / "b.jsonl")
    assert has_work(job_on(data, tmp_path / "data"), "ingest")
    assert has_work(job_on(data, tmp_path / "data"), "evaluate")


def test_select_hard_has_work_until_what_is_configured_now_is_selected(tmp_path: Path) -> None:
    job = job_with(tmp_path, TENTHS, {"finance": TASKS})
    aggregate(job)
    assert has_work(job, "select_hard")
    select_hard(job)
    aggregate(job)
    assert not has_work(job, "select_hard")
    for changed in (
        {"share": {"Finance": SIZE + 1}},
        {"panel": sorted(TENTHS)[:2]},
        {"panel": ["unknown"]},
    ):
        assert has_work(with_rule(job, **changed), "select_hard"), changed


STAGES: list[tuple[str, Callable[[Job], object]]] = [
    ("ingest", prepared),
    ("sample", sampled),
    ("derive", lambda job: asyncio.run(derive(job))),
    ("judge", judged),
    ("aggregate", aggregate),
    ("select_hard", lambda job: (select_hard(job, must_select=False), aggregate(job))),
]
"""The stages of a run in their order, each with a function that does its work."""


@pytest.mark.slow
def test_each_stage_of_a_run_has_work_until_it_was_done_and_so_has_the_run(tmp_path: Path) -> None:
    with FaultServer() as server:
        at = {"name": "hosted_vllm/m", "api_base": server.api_base}
        judge = {
            **at,
            "label": "judge",
            "rubric": "examples_removed",
        }
        settings = {
            "models": [{**at, "label": "a"}],
            "judges": [judge, {**at, "label": "plain"}],
            "drift": {"verdicts": 5},
            "limits": {"attempts": 1},
            "report": {"enabled": False},
        }
        job = job_on("sample", tmp_path / "data", **settings)
        for name, work in STAGES:
            assert has_work(job, name), name
            assert has_work(job, "evaluate"), name
            work(job)
            assert not has_work(job, name), name
        done = len(server.book)
        for name in ("evaluate", "backfill", "assemble"):
            assert not has_work(job, name), name
        ingested, covered = without_work(job, "evaluate")
        assert ingested.stage == "ingest"
        assert covered.stage == "coverage"
        assert not covered.is_below_bar
        assert done == len(server.book)

        night = job.model_copy(update={"night": "2026-11-22"})
        assert has_work(night, "night")
        assert not has_work(night, "evaluate")
        # A finished night still has work while a control set lacks verdicts.
        ended = row(
            "runs",
            night=night.night,
            outcome="done",
            config='{"benchmark": "prbench"}',
        )
        written(job.warehouse, {"runs": [ended]}).publish()
        assert has_work(night, "night")
        choose_control_set(night)
        for behaviour, is_left in (
            (lambda _, __: HttpResponse(status=500, error={"message": "x"}), True),
            (well_behaved, False),
        ):
            server.behaviour = behaviour
            asyncio.run(judge_control_set(night))
            assert is_left == has_work(night, "night")
    changed: dict[str, dict[str, Any]] = {
        "a model": {"models": [*settings["models"], {**at, "label": "b"}]},
        "a judge": {"judges": [judge, {**at, "label": "j"}]},
        "another rubric": {"judges": [{**at, "label": "judge"}]},
        "a trial": {"trials": 2},
        "a majority": {"majorities": {"all": ["a", "b", "c"]}},
        "the report": {"report": {"enabled": True}},
        "a hard subset": {"hard_subset": {"share": 0.25}},
    }
    for what, more in changed.items():
        assert has_work(job_on("sample", tmp_path / "data", **(settings | more)), "evaluate"), what


def test_unknown_work_counts_as_work(tmp_path: Path) -> None:
    job = job_on("sample", tmp_path / "data")
    assert all(has_work(job, name) for name in FLOWS)
    assemble(prepared(job))
    assert has_work(job, "check")
    assert has_work(job, "compact")


@pytest.fixture
def written_report(tmp_path: Path) -> Job:
    """A job whose report has a few pages that are no longer written, and is up to date."""
    job = job_on("sample", tmp_path)
    Warehouse(job.warehouse).publish()
    site = Site(job.report_index.parent)
    for name in ("index.html", "data/task.js"):
        site.write(name, "a page")
    site.finish()
    (job.report_folder / "index.html").write_text("a page", encoding="utf-8")
    (site.folder / "report-basis.txt").write_text(basis_of(whole_of(job)), encoding="ascii")
    return job


def test_a_report_without_the_hash_of_its_inputs_is_not_up_to_date(written_report: Job) -> None:
    assert is_up_to_date(written_report)

    (written_report.report_index.parent / "report-basis.txt").unlink()

    assert not is_up_to_date(written_report)


def test_a_setting_that_no_page_shows_does_not_rewrite_a_report(written_report: Job) -> None:
    capped = written_report.with_settings(limits=Limits(max_usd=1.0))

    assert is_up_to_date(capped)


def test_another_vintage_rewrites_a_report(written_report: Job) -> None:
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
def test_a_changed_figure_query_or_page_rewrites_a_report(
    name: str, written_report: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "program"
    (program / name).parent.mkdir(parents=True)
    shutil.copy(ROOT / name, program / name)
    monkeypatch.setattr("flows.report.hash_of_program", lambda: hash_of_program(program))
    basis = written_report.report_index.parent / "report-basis.txt"
    basis.write_text(basis_of(whole_of(written_report)), encoding="ascii")
    assert is_up_to_date(written_report)

    with (program / name).open("a", encoding="utf-8") as file:
        file.write("\n")
    hash_of_program.cache_clear()

    assert not is_up_to_date(written_report)


def test_a_file_of_somebody_else_does_not_rewrite_a_report(written_report: Job) -> None:
    foreign_file = written_report.report_index.parent / "data/of-somebody.txt"

    foreign_file.write_text("not listed", encoding="utf-8")

    assert is_up_to_date(written_report)


@pytest.mark.parametrize("name", ["index.html", "prbench/index.html", "prbench/data/task.js"])
def test_a_missing_page_rewrites_a_report(name: str, written_report: Job) -> None:
    (written_report.report_folder / name).unlink()

    assert not is_up_to_date(written_report)


@pytest.mark.parametrize("name", ["prbench/index.html", "prbench/data/task.js"])
def test_a_cut_page_rewrites_a_report(name: str, written_report: Job) -> None:
    (written_report.report_folder / name).write_text("a pag", encoding="utf-8")

    assert not is_up_to_date(written_report)


def test_newly_published_rows_rewrite_a_report(written_report: Job) -> None:
    label = {
        "benchmark": "prbench",
        "field": "f",
        "kind": "k",
        "label": "l",
    }
    warehouse = Warehouse(written_report.warehouse)

    warehouse.write("labels", [label])
    warehouse.publish()

    assert not is_up_to_date(written_report)


def test_every_flow_that_commands_start_can_be_loaded() -> None:
    from prefect import Flow  # it takes seconds to import

    kinds = {name: type(prefect_flow(name)) for name in FLOWS}

    assert kinds == dict.fromkeys(FLOWS, Flow)
