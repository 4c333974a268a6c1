"""The page *Compare*: its choices, what it shows, on which splits; the same difference as `prbench
diff`.
"""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from flows.report_server.compare_page import compare_page
from tasks.compare.differences import apart, rows_of, with_verdicts
from tasks.config.job import DataRevision, Job
from tasks.figures.figure import terminal_columns
from tasks.figures.shown.comparisons import COMPARE, DIFF
from tasks.report.rendering.page_figures import PageFigure
from tests.kit import REVISION, at, job_on, reading, row
from tests.tasks.compare.comparisons import (
    ALL_MET,
    MIXED,
    RUBRICS,
    WORSE_IN_RISK,
    ask,
    judged,
    tasks_of,
)
from warehouse import Reader

NIGHT = {"vintage": "2026-10-02", "created_at": at(5)}
OLDER = "an-older-revision"
PAIR = "From a-judge to second-judge "


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("compared") / "data"


@pytest.fixture(scope="module")
def reader(folder: Path) -> Iterator[Reader]:
    runs = [
        row(
            "runs",
            run_id=name,
            command="prbench run",
            started_at=at(n),
            outcome="done",
            ended_at=at(n + 1),
            night=NIGHT["vintage"] if name == "later" else None,
        )
        for n, name in enumerate(("a-run", "later", "idle", "old-run"))
    ]
    old = {"of_response": {"dataset_revision": OLDER}, "judge": "old-judge"}
    by_second = [judged(MIXED, model, judge="second-judge")["verdicts"] for model in "ab"]
    with reading(
        folder,
        {"runs": runs},
        tasks_of(RUBRICS),
        judged(ALL_MET, "a"),
        judged(WORSE_IN_RISK, "b"),
        judged(MIXED, "a", of_response=NIGHT, run_id="later"),
        # This judge judged nothing else, so there is nothing to compare with.
        judged(MIXED, "alone", judge="another-judge"),
        *({"verdicts": verdicts} for verdicts in by_second),
        tasks_of(RUBRICS, split="retired", revision=OLDER),
        judged(ALL_MET, "old-a", **old),
        judged(MIXED, "old-b", **old, run_id="old-run"),
    ) as reader:
        yield reader


@pytest.fixture(scope="module")
def job(folder: Path, reader: Reader) -> Job:
    job = job_on("sample", folder)
    return job.looking_up(
        lambda: DataRevision(
            name="made up",
            revision=REVISION,
            splits=("finance",),
        )
    )


def shown(job: Job, folder: Path = Path("nowhere"), **given: str) -> dict[str, PageFigure]:
    page = compare_page(job, given, folder)
    assert page.trouble is None
    return {each.figure.name: each for each in page.figures}


def cells(drawn: PageFigure) -> list[list[str]]:
    rows = re.findall(r"<tr><td.*?</tr>", drawn.table)
    return [
        [unescape(re.sub("<[^>]+>", "", cell)) for cell in re.findall(r"<td.*?</td>", row)]
        for row in rows
    ]


def test_every_flipped_criterion_is_listed_with_its_effect_and_both_explanations(job: Job) -> None:
    flips = cells(
        shown(
            job,
            of="model",
            first="a",
            second="b",
            vintage="base",
        )["diff_flips"]
    )

    assert [row[-7:] for row in flips[:2]] == [
        ["−10.00", "not met", "met", "−1.111", "t4", "why in a: 0.0", "why in b: 1"],
        ["7.00", "met", "not met", "−0.467", "t3", "why in a: 1.0", "why in b: 0"],
    ]
    assert len(flips) == 4


def test_of_several_differences_the_chosen_one_is_explained(job: Job) -> None:
    judges = {
        "of": "judge",
        "first": "a-judge",
        "second": "second-judge",
    }

    pages = [compare_page(job, judges | chosen, Path("nowhere")) for chosen in ({}, {"model": "b"})]

    assert [page.about.removeprefix(PAIR) for page in pages] == [
        "on finance, model a",
        "on finance",
    ]
    assert pages[0].figures[1].table != pages[1].figures[1].table


def test_runs_are_compared_as_the_command_does(job: Job) -> None:
    page = compare_page(
        job,
        {
            "of": "run",
            "first": "a-run",
            "second": "later",
        },
        Path("nowhere"),
    )

    assert {each.name for each in COMPARE.figures} == {
        each.figure.name for each in page.figures if each.n_rows
    }


@pytest.mark.parametrize(
    ("kind", "offered", "chosen"),
    [
        ("model", ["a", "b"], ["a", "b"]),
        ("vintage", ["2026-10-02", "base"], ["base", "2026-10-02"]),
        ("judge", ["a-judge", "second-judge"], ["a-judge", "second-judge"]),
        (
            "run",
            ["2026-01-01 00:00:01 prbench run", "2026-01-01 00:00:00 prbench run"],
            ["a-run", "later"],
        ),
    ],
)
def test_only_what_can_be_compared_is_offered_and_chosen(
    job: Job, kind: str, offered: Any, chosen: Any
) -> None:
    page = compare_page(job, {"of": kind}, Path("nowhere"))

    assert [offered, offered] == [[text for _, text in field.options] for field in page.fields[:2]]
    assert chosen == [field.choice for field in page.fields[:2]]
    assert page.figures == ()


def test_the_table_and_its_notes_are_those_of_the_command(job: Job, reader: Reader) -> None:
    result = ask(reader, "a", "b", judges=("a-judge",))
    rows = [
        *map(with_verdicts, rows_of(result), apart(reader, result, result.differences)["verdicts"])
    ]

    difference = shown(
        job,
        of="model",
        first="a",
        second="b",
        judge="a-judge",
    )["diff"]

    columns = terminal_columns(DIFF.columns, rows)
    assert [[column.cells[0] for column in columns if not column.is_absent]] == cells(difference)
    assert [*DIFF.notes_on(rows)] == [*difference.notes, *difference.table_notes]
    assert "No interval and no test: fewer than 5 tasks differ." in difference.notes


@pytest.mark.parametrize(
    ("choices", "trouble"),
    [
        (
            {
                "of": "model",
                "first": "a",
                "second": "nobody",
            },
            "nobody: no model with verdicts has this name",
        ),
        (
            {
                "of": "model",
                "first": "a",
                "second": "a",
            },
            "a: given twice",
        ),
        (
            {
                "of": "model",
                "first": "a",
                "second": "alone",
            },
            (
                "nothing to compare: a and alone share no combination of dataset revision, judge,"
                " judge configuration"
            ),
        ),
        (
            {
                "of": "model",
                "first": "a",
                "second": "b",
                "split": "nowhere",
            },
            "the chosen splits have no admitted task",
        ),
        (
            {
                "of": "model",
                "first": "a",
                "second": "b",
                "judge": "nobody",
            },
            "a has no verdict under these options",
        ),
    ],
)
def test_an_impossible_comparison_shows_its_reason_and_choices(
    job: Job, choices: dict[str, str], trouble: str
) -> None:
    page = compare_page(job, choices, Path("nowhere"))

    assert page.fields
    assert trouble in (page.trouble or "")


def test_models_begin_in_their_current_vintages_and_another_one_can_be_chosen(job: Job) -> None:
    page = compare_page(
        job,
        {
            "of": "model",
            "first": "a",
            "second": "b",
        },
        Path("nowhere"),
    )
    [vintage] = [field for field in page.fields if field.name == "vintage"]

    assert vintage.choice == ""
    assert [*vintage.options] == [
        ("", "current"),
        ("all", "all"),
        ("2026-10-02", "2026-10-02"),
        ("base", "base"),
    ]
    assert "why in a: 1" in page.figures[1].table
    assert (
        "why in a: 1.0"
        in shown(
            job,
            of="model",
            first="a",
            second="b",
            vintage="base",
        )["diff_flips"].table
    )


def test_vintages_begin_with_the_current_one_even_if_an_earlier_one_was_completed_later(
    tmp_path: Path,
) -> None:
    """The base responses were completed after the night, which remains the current vintage."""
    first, *later = RUBRICS
    completed = {"created_at": at(9)}
    with reading(
        tmp_path / "data",
        tasks_of(RUBRICS),
        judged({first: ALL_MET[first]}, "a"),
        judged({task: ALL_MET[task] for task in later}, "a", of_response=completed),
        judged(MIXED, "a", of_response=NIGHT),
    ):
        data = DataRevision(
            name="made up",
            revision=REVISION,
            splits=("finance",),
        )
        job = job_on("sample", tmp_path / "data").looking_up(lambda: data)
        page = compare_page(job, {"of": "vintage"}, Path("nowhere"))

    assert [field.choice for field in page.fields[:2]] == ["base", "2026-10-02"]


@pytest.mark.parametrize("given", [{"of": "password"}, {"first": "only one"}])
def test_invalid_parameters_are_ignored(job: Job, given: dict[str, str]) -> None:
    assert compare_page(job, given, Path("nowhere")).figures == ()
    both = {
        "of": "model",
        "first": "a",
        "second": "b",
    }
    assert shown(job, **both)["diff_flips"] == shown(job, **both, show="x")["diff_flips"]
