"""What the page that compares offers and shows: the same difference as `prbench diff`, and every changed verdict."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from flows.cli.output import cell_text
from flows.report_server.compare_page import asked_in, comparison
from tasks.compare.sentences import table_of
from tasks.config.job import DataRevision, Job
from tests.kit import REVISION, at, job_on, reading, row
from tests.tasks.compare.comparisons import ALL_MET, MIXED, RUBRICS, WORSE_IN_RISK, ask, judged, tasks_of
from warehouse import Reader

NIGHT = {"vintage": "2026-10-02", "created_at": at(5)}
OLDER = "an-older-revision"


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    folder = tmp_path_factory.mktemp("compared") / "data"
    runs = [row("runs", run_id=name, command="prbench run", started_at=at(n), outcome="done", ended_at=at(n + 1),
                night=NIGHT["vintage"] if name == "later" else None)
            for n, name in enumerate(("a-run", "later", "idle", "old-run"))]  # fmt: skip
    old = {"of_response": {"dataset_revision": OLDER}, "judge": "old-judge"}
    with reading(
        folder,
        tasks_of(RUBRICS),
        judged(ALL_MET, "a"),
        judged(WORSE_IN_RISK, "b"),
        judged(MIXED, "a", of_response=NIGHT, run_id="later"),
        # Nothing else was judged by this judge, so there is nothing to compare it with.
        judged(MIXED, "alone", judge="another-judge"),
        tasks_of(RUBRICS, split="retired", revision=OLDER),
        judged(ALL_MET, "old-a", **old),
        judged(MIXED, "old-b", **old, run_id="old-run"),
        {"runs": runs},
    ) as reader:
        yield reader


@pytest.fixture(scope="module")
def job(reader: Reader) -> Job:
    job = job_on("sample", reader._path.parent)
    return job.looking_up(lambda: DataRevision(name="made up", revision=REVISION, splits=("finance",)))


def shown(job: Job, folder: Path = Path("nowhere"), **given: str) -> Mapping[str, Any]:
    result = comparison(job, given, folder).result
    assert result is not None
    return result


def test_every_changed_verdict_is_listed_with_its_effect_and_both_explanations(job: Job) -> None:
    result = shown(job, of="model", first="a", second="b")

    assert [(each["task"], each["weight"], each["first"], each["second"], each["effect"]) for each in result["flips"]][
        :2
    ] == [("t4", "−10", "not met", "met", "−1.111"), ("t3", "+7", "met", "not met", "−0.467")]
    assert result["flips"][0]["explanations"] == [["why in a: 0.0"], ["why in b: 1"]]
    assert [(way["title"], way["n"]) for way in result["changes"]] == [
        ("all", 4), ("lower the score", 4), ("raise the score", 0),
    ]  # fmt: skip


def test_only_losses_or_gains_are_listed_when_they_are_asked_for(job: Job) -> None:
    nights = {"of": "vintage", "first": "base", "second": "2026-10-02"}

    lost, gained = (shown(job, **nights, change=change)["flips"] for change in ("lost", "gained"))

    assert len(lost) == shown(job, **nights)["changes"][1]["n"] > 0
    assert all(each["is_loss"] for each in lost)
    assert gained == []


def test_runs_are_compared_as_the_command_does_and_offered_with_their_time_latest_first(job: Job) -> None:
    found = comparison(job, {"of": "run", "first": "a-run", "second": "later"}, Path("nowhere"))

    assert found.result is not None
    assert found.fields[0].options == [
        ("later", "2026-01-01 00:00:01 night 2026-10-02"), ("a-run", "2026-01-01 00:00:00 prbench run"),
    ]  # fmt: skip
    assert [each["task"] for each in found.result["flips"]]


@pytest.mark.parametrize(("kind", "offered"), [
    ("model", {"first": ["a", "b"], "second": ["a", "b"]}),
    ("vintage", {"first": ["2026-10-02 (night)", "base"], "second": ["2026-10-02 (night)", "base"]}),
    ("judge", {"first": [], "second": []}),
])  # fmt: skip
def test_only_what_has_something_to_be_compared_with_in_the_revision_is_offered(
    job: Job, kind: str, offered: dict[str, list[str]]
) -> None:
    found = comparison(job, {"of": kind}, Path("nowhere"))

    assert {field.name: [text for _, text in field.options] for field in found.fields} == offered


def test_the_table_and_its_notes_are_those_of_the_command(job: Job, reader: Reader) -> None:
    table = table_of(ask(reader, "a", "b"))

    result = shown(job, of="model", first="a", second="b")

    ((cells, _),) = result["rows"]
    assert ("First", "Second", *result["columns"]) == table.columns
    assert ["a", "b", *(cell.replace("−", "-") for cell in cells)] == [cell_text(cell) for cell in table.rows[0]]
    assert result["table_notes"] == ["No interval and no test: fewer than 5 tasks differ."] == list(table.notes)


def test_task_pages_are_linked_where_they_are_written(job: Job, tmp_path: Path) -> None:
    asked = {"of": "model", "first": "a", "second": "b"}
    assert shown(job, tmp_path, **asked)["flips"][0]["link"] is None
    (tmp_path / "task.html").touch()

    assert shown(job, tmp_path, **asked)["flips"][0]["link"].startswith("task.html#task=")


@pytest.mark.parametrize(("kind", "chosen"), [
    ("model", {"first": "a", "second": "b"}),
    ("vintage", {"first": "base", "second": "2026-10-02"}),
    ("run", {"first": "a-run", "second": "later"}),
])  # fmt: skip
def test_likely_choices_are_made_before_anything_is_asked(job: Job, kind: str, chosen: dict[str, str]) -> None:
    found = comparison(job, {"of": kind}, Path("nowhere"))

    assert found.result is None
    assert chosen.items() <= {field.name: field.chosen for field in found.fields}.items()


@pytest.mark.parametrize(("asked", "trouble"), [
    ({"of": "model", "first": "a", "second": "nobody"}, "nobody: there is no model of that name"),
    ({"of": "model", "first": "a", "second": "a"}, "a: given twice"),
    ({"of": "model", "first": "a", "second": "alone"},
     "Nothing to compare: a and alone share no combination of dataset revision, vintage, judge, judge configuration"),
    ({"of": "model", "first": "a", "second": "b", "split": "nowhere"}, "what is stored has none"),
    ({"of": "model", "first": "a", "second": "b", "judge": "nobody"}, "no verdict has it"),
])  # fmt: skip
def test_what_cannot_be_compared_is_said_beside_the_choices(job: Job, asked: dict[str, str], trouble: str) -> None:
    found = comparison(job, asked, Path("nowhere"))

    assert found.fields
    assert trouble in (found.trouble or "")


def test_without_a_database_the_page_says_that_nothing_is_published(tmp_path: Path) -> None:
    found = comparison(job_on("sample", tmp_path / "none"), {}, tmp_path)

    assert "nothing is published here yet" in (found.trouble or "")


@pytest.mark.parametrize("given", [
    {"of": "password"}, {"show": "-1"}, {"show": "9" * 5000}, {"show": "²"}, {"change": "all"}, {"whole": "1"},
    {"first": "only one"}, {"first": "", "second": "b"},
])  # fmt: skip
def test_what_an_address_cannot_mean_is_as_if_nothing_was_asked(given: dict[str, str]) -> None:
    assert asked_in(given) == asked_in({})
