"""Which splits the page that compares is about: those of `prbench diff`, and any other that is stored."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows.cli.main import main
from flows.report_server.compare_page import Comparison, comparison
from tasks.config.job import Job
from tasks.report.build import Written
from tests.kit import job_on
from tests.tasks.compare.comparisons import ALL_MET, RUBRICS, WORSE_IN_RISK, filled, judged, tasks_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Tasks of two splits that two models answered, and a configuration that evaluates one of the splits."""
    of_sample = {"dataset_revision": job_on("sample", tmp_path).data.revision}
    rows = tasks_of(RUBRICS, revision=of_sample["dataset_revision"])
    legal = [each | {"split": "legal"} for each in rows["split_members"] if each["task_id"] in {"t2", "t3"}]
    (tmp_path / "prbench.yaml").write_text(yaml.safe_dump({"dataset": {"source": "sample", "splits": ["finance"]}}))
    with filled(
        tmp_path / "data", rows, {"split_members": legal},
        judged(ALL_MET, "a", of_response=of_sample), judged(WORSE_IN_RISK, "b", of_response=of_sample),
    ):  # fmt: skip
        return tmp_path


def served(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """The job that `prbench report --serve` serves."""
    jobs: list[Job] = []
    monkeypatch.setattr("flows.report.write_report", lambda *_: Written(folder / "index.html", 0))
    monkeypatch.setattr("flows.report_server.server.serve_report", lambda job, *_, **__: jobs.append(job))
    assert main(["report", "--serve", *place(folder)]) == 0
    return jobs[0]


def place(folder: Path) -> list[str]:
    return ["--config", str(folder / "prbench.yaml"), "--warehouse", str(folder / "data")]


def by_diff(folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[tuple[str, str]]:
    capsys.readouterr()
    assert main(["diff", "a", "b", "--json", *arguments, *place(folder)]) == 0
    found: Mapping[str, Any] = json.loads(capsys.readouterr().out)
    return [(each["split"], f"{each['difference']:+.3f}") for each in found["comparisons"]]


def by_page(found: Comparison) -> list[tuple[str, str]]:
    rows = re.findall(r"<tr><td.*?</tr>", found.figures[0].table)
    cells = ([re.sub("<[^>]+>", "", cell) for cell in re.findall(r"<td.*?</td>", row)] for row in rows)
    return [(split, difference.replace("−", "-")) for _, _, split, difference, *_ in cells]


def test_the_page_compares_the_configured_splits_and_any_other_that_is_chosen_as_the_command_does(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job, both = served(folder, monkeypatch), {"of": "model", "first": "a", "second": "b"}

    as_configured = comparison(job, both, Path("nowhere"))
    other = comparison(job, both | {"split": "legal"}, Path("nowhere"))

    assert by_page(as_configured) == by_diff(folder, capsys)
    assert [split for split, _ in by_page(as_configured)] == ["finance"]
    assert by_page(other) == by_diff(folder, capsys, "--split", "legal")
    assert [split for split, _ in by_page(other)] == ["legal"]
    assert [[*field.options] for field in other.fields if field.name == "split"] == [
        [("", "finance (as configured)"), ("legal", "legal")]
    ]
