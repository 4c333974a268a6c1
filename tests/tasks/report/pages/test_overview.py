"""The overview says what is so: figures against a computation of their own, and notices for what happened."""

import json
from pathlib import Path

import pytest

from flows.nightly import changes
from flows.report import write_report
from tasks.config.job import Job
from tasks.figures.scope import Scope, open_scope
from tasks.report.rendering.notices import notices
from tests.kit import job_on
from tests.tasks.report.drilldown.drilled import files, tiny_job
from tests.tasks.report.made_up.contenders import DROPPING, NIGHTS


@pytest.mark.parametrize("night", [NIGHTS[2], NIGHTS[3]])
def test_a_named_sampling_is_compared_with_the_one_before_it(world_job: Job, scope: Scope, night: str) -> None:
    found = open_scope(world_job, scope.reader, night, changes(world_job, night)).rows("overview/changes")

    # On the second night the judge had drifted, so what came before that is what the third one is compared with.
    before = {NIGHTS[2]: NIGHTS[1], NIGHTS[3]: NIGHTS[1]}[night]
    strict = [row for row in found if row["judging"] == "strict-judge"]
    assert {row["model"] for row in strict} == {DROPPING, "elm-chat"}
    assert {(row["earlier"], row["later"]) for row in strict} == {(before, night)}


@pytest.mark.parametrize(("vintage", "asked"), [(None, None), ("all", None), (NIGHTS[3], NIGHTS[3])])
def test_what_changed_is_computed_whichever_samplings_are_shown(
    world_job: Job, monkeypatch: pytest.MonkeyPatch, vintage: str | None, asked: str | None
) -> None:
    monkeypatch.setattr("flows.nightly.changes", lambda job, vintage: [{"of": vintage}])
    monkeypatch.setattr("tasks.report.build.build", lambda job, folder, vintage, found: (vintage, found))

    assert write_report(world_job, None, vintage) == (vintage, [{"of": asked}])


def test_the_fall_is_the_first_thing_that_one_reads_and_the_steady_model_is_not_named(scope: Scope) -> None:
    found = notices(scope)

    assert found[0].level == "bad"
    assert any(each.text.startswith(f"{DROPPING} fell since") for each in found)
    assert not any("elm-chat" in each.text for each in found if each.level == "bad")


@pytest.mark.parametrize(
    "expected",
    ["Coverage below 99%", "dogwood-open", "criteria_per_task (1 of 49); 1 task refused and left out of all scores."],
)
def test_what_is_wrong_with_the_figures_is_said(scope: Scope, expected: str) -> None:
    assert any(expected in each.text for each in notices(scope))


def test_an_embedded_judge_is_the_gravest_notice(world_job: Job, scope: Scope) -> None:
    judges = tuple(
        judge.model_copy(update={"name": "embedded/smollm2-135m-instruct", "label": judge.label})
        for judge in world_job.settings.judges
    )
    settings = world_job.settings.model_copy(update={"judges": judges})
    embedded = Scope(
        world_job.model_copy(update={"settings": settings}), scope.benchmark, scope.revision, scope.reader,
        scope.entries, scope.judgings,
    )  # fmt: skip

    assert notices(embedded)[0].text.startswith("strict-judge, mild-judge is the embedded model")


@pytest.mark.slow
def test_the_report_of_a_warehouse_with_tasks_alone_can_be_written(tmp_path: Path) -> None:
    from tests.kit import prepared

    job = prepared(job_on("sample", tmp_path / "warehouse"))

    written = write_report(job)

    assert "nothing to rank" in written.index.read_text(encoding="utf-8")
    assert written.index == tmp_path / "warehouse/report/prbench/index.html"


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["tiny", *(pytest.param(name, marks=pytest.mark.long) for name in ("research", "world"))]
)
def test_the_same_data_gives_the_same_bytes(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    job = tiny_job(tmp_path) if name == "tiny" else request.getfixturevalue(f"{name}_job")
    for folder in ("one", "other"):
        write_report(job, tmp_path / folder)

    one, other = files(tmp_path / "one"), files(tmp_path / "other")
    assert len(one) > 50
    assert [name for name in one if one[name] != other.get(name)] == []
    assert one.keys() == other.keys()


def test_file_names_hold_nothing_that_came_from_data(hostile_site: Path) -> None:
    names = [path.relative_to(hostile_site).as_posix() for path in hostile_site.rglob("*")]

    assert [name for name in names if not all(c.isascii() and (c.isalnum() or c in "._-/") for c in name)] == []
    assert json.loads((hostile_site / "report.json").read_text())["format"] == "prbench-report"
