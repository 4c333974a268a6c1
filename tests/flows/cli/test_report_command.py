"""The options of `prbench report`."""

from pathlib import Path
from typing import Any

import pytest
import yaml

import flows.report
import flows.report_server.server
from flows.cli.main import main
from tasks.config.job import Job
from tests.flows.conftest import Run
from tests.kit import Patch
from warehouse import Warehouse


@pytest.fixture
def reports(tmp_path: Path, monkeypatch: Patch) -> list[Job]:
    """The jobs of the reports that a command requests, with a configuration that evaluates one
    split.
    """
    jobs: list[Job] = []

    def note(job: Job, *_: Any, **__: Any) -> int:
        jobs.append(job)
        return 0

    monkeypatch.setattr(flows.report, "write_report", note)
    monkeypatch.chdir(tmp_path)
    dataset = {"source": "sample", "splits": ["finance"]}
    (tmp_path / "prbench.yaml").write_text(yaml.safe_dump({"dataset": dataset}), encoding="utf-8")
    return jobs


@pytest.mark.parametrize(("options", "splits"), [((), ()), (("--split", "legal"), ("legal",))])
def test_options_alone_narrow_to_splits(
    reports: list[Job], options: tuple[str, ...], splits: tuple[str, ...]
) -> None:
    assert main(["report", *options]) == 0

    assert [splits] == [job.settings.dataset.splits for job in reports]


def test_live_without_serve_is_refused_in_one_line(reports: list[Job], run: Run) -> None:
    assert "--live shows a page of the local server; add --serve" in run("report", "--live", code=2)
    assert reports == []


@pytest.fixture
def served(monkeypatch: Patch) -> list[tuple[Path, bool]]:
    """The served reports: the first page, and a flag that is true if runs are followed."""
    calls: list[tuple[Path, bool]] = []

    def note(_job: Job, index: Path, _port: int, *, is_live: bool) -> None:
        calls.append((index, is_live))

    monkeypatch.setattr(flows.report_server.server, "serve_report", note)
    return calls


def test_live_writes_no_report_in_a_run(
    reports: list[Job], served: list[tuple[Path, bool]], tmp_path: Path
) -> None:
    live = ["report", "--serve", "--live", "--warehouse", str(tmp_path / "data")]
    index = tmp_path / "data/report/prbench/index.html"

    assert main(live) == 0
    assert reports == []
    assert [(index, True)] == served

    Warehouse(tmp_path / "data").publish()
    with Warehouse(tmp_path / "data").living("r"):
        assert main(live) == 0
    assert reports == []

    assert main(live) == 0
    assert len(reports) == 1
    assert main(["report", "--serve", "--warehouse", str(tmp_path / "data")]) == 0
    assert [(index, True), (index, True), (index, False)] == served[1:]
