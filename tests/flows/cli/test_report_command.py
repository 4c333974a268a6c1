"""The options of `prbench report`."""

import pytest
import yaml

import flows.report
import flows.report_server.server
from flows.cli.main import main
from tasks.config.job import Job
from warehouse import Warehouse


@pytest.fixture
def reports(tmp_path, monkeypatch) -> list[Job]:
    """The jobs of the reports that a command requests, with a configuration that evaluates one
    split.
    """
    jobs = []

    def note(job, *_, **__):
        jobs.append(job)
        return 0

    monkeypatch.setattr(flows.report, "write_report", note)
    monkeypatch.chdir(tmp_path)
    dataset = {"source": "sample", "splits": ["finance"]}
    (tmp_path / "prbench.yaml").write_text(yaml.safe_dump({"dataset": dataset}))
    return jobs


@pytest.mark.parametrize(
    ("options", "splits"), [((), ()), (("--split", "legal"), ("legal",))]
)
def test_options_alone_narrow_to_splits(reports, options, splits):
    assert main(["report", *options]) == 0

    [job] = reports
    assert job.settings.dataset.splits == splits


def test_live_without_serve_is_refused_in_one_line(reports, run):
    assert "--live shows a page of the local server; add --serve" in run(
        "report",
        "--live",
        code=2,
    )
    assert reports == []


@pytest.fixture
def live_flags(monkeypatch, tmp_path) -> list[bool]:
    """For each served report: true if runs are followed."""
    flags = []

    def note(_job, index, _port, *, is_live):
        assert index == tmp_path / "warehouse/data/report/prbench/index.html"
        flags.append(is_live)

    monkeypatch.setattr(flows.report_server.server, "serve_report", note)
    return flags


@pytest.mark.parametrize("options", [(), ("--live",)])
def test_a_served_report_is_written_first(reports, live_flags, tmp_path, options):
    Warehouse(tmp_path / "warehouse/data").publish()

    assert main(["report", "--serve", *options]) == 0

    assert len(reports) == 1
    assert live_flags == [bool(options)]


def test_live_writes_no_report_where_nothing_is_published(reports, live_flags):
    assert main(["report", "--serve", "--live"]) == 0

    assert reports == []
    assert live_flags == [True]


def test_live_writes_no_report_in_a_run(reports, live_flags, tmp_path):
    warehouse = Warehouse(tmp_path / "warehouse/data")
    warehouse.publish()

    with warehouse.living("r"):
        assert main(["report", "--serve", "--live"]) == 0

    assert reports == []
    assert live_flags == [True]
