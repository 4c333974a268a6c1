"""Data Docs of a warehouse: what the latest checks found has its pages, whatever else happens."""

import shutil
from pathlib import Path

import pytest

from tasks.check.check import check
from tasks.ingest.ingest import ingest
from tasks.maintain.backup import backup, restore
from tasks.rules.errors import PipelineError
from tasks.run.stage_report import StageReport
from tests.builders import job_on
from tests.expectations.pages import read
from tests.stages.bad_rows import EXPECTED
from warehouse import Warehouse

PAGES = {
    "index.html", "style.css", "ingest-criteria.html", "ingest-rubrics.html", "judge-judged_responses.html",
    "judge-verdicts.html", "sample-responses.html",
}  # fmt: skip


def docs_of(root: Path) -> Path:
    """The only folder of pages in a warehouse."""
    (folder,) = (root / "data-docs").iterdir()
    return folder


def pages_in(root: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in docs_of(root).iterdir()}


def n_checks(root: Path) -> int:
    with Warehouse(root).reader() as reader:
        return len(reader.rows("select distinct run_id from checks"))


def test_a_check_leaves_a_page_for_each_frame_and_an_index(checked: tuple[Path, StageReport]) -> None:
    root, _ = checked
    index = read((docs_of(root) / "index.html").read_text())

    assert set(pages_in(root)) == PAGES
    assert {name for name in PAGES if "-" in name} <= index.values("href")
    assert "9 of 9" in index.text


def test_the_pages_name_every_task_that_was_refused(checked: tuple[Path, StageReport]) -> None:
    text = "".join(read(page.decode()).text for name, page in pages_in(checked[0]).items() if name != "style.css")

    assert [] == [task for task in EXPECTED if task not in text]
    assert "weights are from -10 to 10 (weight_range, policy quarantine)" in text


def test_the_folder_is_found_by_benchmark_and_revision(checked: tuple[Path, StageReport]) -> None:
    with Warehouse(checked[0]).reader() as reader:
        revision = reader.value("select any_value(dataset_revision) from checks")

    assert docs_of(checked[0]) == Warehouse(checked[0]).data_docs("prbench", revision)


@pytest.mark.parametrize("revision", ["../../elsewhere", "a/b", "a b", "ä"])
def test_no_revision_leads_out_of_the_warehouse(tmp_path: Path, revision: str) -> None:
    folder = Warehouse(tmp_path).data_docs("prbench", revision)

    assert tmp_path / "data-docs" == folder.resolve().parent


def test_pages_of_suites_that_did_not_run_stay(bad_rows: Path, unchecked: Path) -> None:
    check(job_on(bad_rows, unchecked, run_id="first"), ["ingest"])
    before = pages_in(unchecked)
    check(job_on(bad_rows, unchecked, run_id="second"), ["judge"])
    after = pages_in(unchecked)
    index = read(after["index.html"].decode()).text

    assert before["ingest-criteria.html"] == after["ingest-criteria.html"]
    assert {"judge-judged_responses.html", "judge-verdicts.html"} == set(after) - set(before)
    assert "first" in index
    assert "second" in index


def test_the_page_of_a_suite_is_that_of_its_latest_check(bad_rows: Path, unchecked: Path) -> None:
    check(job_on(bad_rows, unchecked, run_id="first"), ["ingest"])
    check(job_on(bad_rows, unchecked, run_id="second", quality={"weight_range": "warn"}), ["ingest"])
    page = pages_in(unchecked)["ingest-criteria.html"].decode()

    assert "in run second" in page
    assert "(weight_range, policy warn)" in page
    assert "first" not in page


def test_a_check_that_stands_is_not_repeated_unless_its_pages_are_gone(bad_rows: Path, unchecked: Path) -> None:
    check(job_on(bad_rows, unchecked, run_id="first"), ["ingest"])
    check(job_on(bad_rows, unchecked, run_id="second"), ["ingest"], reuse=True)
    assert 1 == n_checks(unchecked)

    (docs_of(unchecked) / "ingest-rubrics.html").unlink()
    check(job_on(bad_rows, unchecked, run_id="third"), ["ingest"], reuse=True)

    assert 2 == n_checks(unchecked)
    assert "in run third" in pages_in(unchecked)["ingest-rubrics.html"].decode()


def test_a_check_that_ends_the_run_has_its_pages(bad_rows: Path, unchecked: Path) -> None:
    with pytest.raises(PipelineError):
        check(job_on(bad_rows, unchecked, quality={"positive_criterion": "fail"}), ["ingest"])

    assert "(positive_criterion, policy fail)" in pages_in(unchecked)["ingest-rubrics.html"].decode()


def test_each_data_set_revision_has_a_folder_of_its_own(bad_rows: Path, unchecked: Path) -> None:
    check(job_on(bad_rows, unchecked), ["judge"])
    before = pages_in(unchecked)
    ingest(job_on("sample", unchecked))
    check(job_on("sample", unchecked), ["judge"])
    folders = sorted((unchecked / "data-docs").iterdir(), key=lambda folder: folder.stat().st_mtime)

    assert 2 == len(folders)
    assert before == {path.name: path.read_bytes() for path in folders[0].iterdir()}


def test_pages_that_cannot_be_written_are_a_warning_and_the_check_stands(bad_rows: Path, unchecked: Path) -> None:
    (unchecked / "data-docs").write_text("in the way")
    report = check(job_on(bad_rows, unchecked), ["judge"])

    assert 1 == len([line for line in report.warnings if "the Data Docs there are not those of this check" in line])
    assert 1 == n_checks(unchecked)


def test_a_backup_leaves_them_out(bad_rows: Path, unchecked: Path, tmp_path: Path) -> None:
    job = job_on(bad_rows, unchecked)
    check(job, ["judge"])
    backup(job, tmp_path / "backup")
    shutil.rmtree(unchecked)
    restore(job, tmp_path / "backup")

    assert 1 == n_checks(unchecked)
    assert not (unchecked / "data-docs").exists()
