"""The page *Compare* offers what can be compared, and shows the same difference as `prbench
diff`.
"""

import re
from collections.abc import Iterator
from html import unescape
from pathlib import Path

import pytest

from flows.report_server.compare_page import ComparePage, compare_page
from tasks.compare.differences import difference_details, rows_of, with_verdicts
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

DATA = DataRevision(
    name="made up",
    revision=REVISION,
    splits=("finance",),
)
NIGHT = {"vintage": "2026-10-02", "created_at": at(5)}
NIGHT_EXPLANATION = "why in the night"
"""Explains each verdict on model a in the night; in its vintage `base` that is "why in a: 1.0"."""
OLDER = "an-older-revision"
MODELS = {
    "of": "model",
    "first": "a",
    "second": "b",
}
JUDGES = {
    "of": "judge",
    "first": "a-judge",
    "second": "second-judge",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tmp_path_factory.mktemp("compared") / "data"


@pytest.fixture(scope="module")
def reader(folder: Path) -> Iterator[Reader]:
    runs = []
    for number, name in enumerate(("a-run", "later", "idle", "old-run")):
        times = {"started_at": at(number), "ended_at": at(number + 1)}
        runs.append(
            row(
                "runs",
                run_id=name,
                command="prbench run",
                outcome="done",
                **times,
            )
        )
    older = {"dataset_revision": OLDER}
    night_verdicts = {"run_id": "later", "explanation": NIGHT_EXPLANATION}
    with reading(
        folder,
        {"runs": runs},
        tasks_of(RUBRICS),
        judged(ALL_MET, "a"),
        judged(WORSE_IN_RISK, "b"),
        judged(MIXED, "a", of_response=NIGHT, **night_verdicts),
        # This judge judged nothing else, so there is nothing to compare with.
        judged(MIXED, "alone", judge="another-judge"),
        {"verdicts": judged(MIXED, "a", judge="second-judge")["verdicts"]},
        {"verdicts": judged(MIXED, "b", judge="second-judge")["verdicts"]},
        tasks_of(RUBRICS, split="retired", revision=OLDER),
        judged(ALL_MET, "old-a", of_response=older, judge="old-judge"),
        judged(
            MIXED, "old-b", of_response=older, judge="old-judge", run_id="old-run"
        ),
    ) as reader:
        yield reader


@pytest.fixture(scope="module")
def job(folder: Path, reader: Reader) -> Job:
    return job_on("sample", folder).looking_up(lambda: DATA)


def page_of(job: Job, choices: dict[str, str]) -> ComparePage:
    return compare_page(job, choices, Path("nowhere"))


def figures_of(job: Job, choices: dict[str, str]) -> dict[str, PageFigure]:
    page = page_of(job, choices)
    assert page.trouble is None
    return {figure.figure.name: figure for figure in page.figures}


def cells(figure: PageFigure) -> list[list[str]]:
    """The rows of a figure's table, each as the texts of its cells."""
    rows = []
    for line in re.findall(r"<tr><td.*?</tr>", figure.table):
        html_cells = re.findall(r"<td.*?</td>", line)
        rows.append([unescape(re.sub("<[^>]+>", "", cell)) for cell in html_cells])
    return rows


def test_every_flipped_criterion_is_listed_with_its_effect_and_both_explanations(job):
    figures = figures_of(job, MODELS | {"vintage": "base"})

    flips = cells(figures["diff_flips"])
    # The effects are -10 points of 9, and -7 points of 15.
    assert [row[-7:] for row in flips[:2]] == [
        [
            "−10.00",
            "not met",
            "met",
            "−1.111",
            "t4",
            "why in a: 0.0",
            "why in b: 1.0",
        ],
        ["7.00", "met", "not met", "−0.467", "t3", "why in a: 1.0", "why in b: 0.0"],
    ]
    assert len(flips) == 4


def test_of_several_differences_the_first_is_explained_unless_a_model_is_chosen(job):
    page = page_of(job, JUDGES)
    page_on_b = page_of(job, JUDGES | {"model": "b"})

    assert page.about == "From a-judge to second-judge on finance, model a"
    assert page_on_b.about == "From a-judge to second-judge on finance"
    assert page.figures[1].table != page_on_b.figures[1].table


def test_runs_are_compared_as_the_command_does(job):
    page = page_of(
        job,
        {
            "of": "run",
            "first": "a-run",
            "second": "later",
        },
    )

    names = {figure.figure.name for figure in page.figures if figure.n_rows}
    assert names == {figure.name for figure in COMPARE.figures}


@pytest.mark.parametrize(
    ("kind", "texts", "choices"),
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
def test_only_what_can_be_compared_is_offered_and_chosen(job, kind, texts, choices):
    page = page_of(job, {"of": kind})

    first_field, second_field = page.fields[:2]
    assert [text for _, text in first_field.options] == texts
    assert [text for _, text in second_field.options] == texts
    assert [first_field.choice, second_field.choice] == choices
    assert page.figures == ()


def test_the_table_and_its_notes_are_those_of_the_command(job, reader):
    result = ask(reader, "a", "b", judges=("a-judge",))
    verdicts = difference_details(reader, result, result.differences)["verdicts"]
    rows = list(map(with_verdicts, rows_of(result), verdicts))

    difference = figures_of(job, MODELS | {"judge": "a-judge"})["diff"]

    columns = terminal_columns(DIFF.columns, rows)
    assert cells(difference) == [
        [column.cells[0] for column in columns if not column.is_absent]
    ]
    assert difference.notes == DIFF.notes_on(rows)
    assert difference.table_notes == DIFF.small_notes(rows)
    assert "No interval and no test: too few tasks differ." in difference.notes


@pytest.mark.parametrize(
    ("choices", "trouble"),
    [
        ({"second": "nobody"}, "nobody: no model with verdicts has this name"),
        ({"second": "a"}, "a: given twice"),
        (
            {"second": "alone"},
            "nothing to compare: a and alone share no combination of dataset revision, judge,"
            " judge configuration",
        ),
        ({"split": "nowhere"}, "the chosen splits have no admitted task"),
        ({"judge": "nobody"}, "a has no verdict under these options"),
    ],
)
def test_an_impossible_comparison_shows_its_reason_and_choices(job, choices, trouble):
    page = page_of(job, MODELS | choices)

    assert page.fields
    assert trouble in (page.trouble or "")


def test_models_begin_in_their_current_vintages(job):
    page = page_of(job, MODELS)

    [vintage_field] = [field for field in page.fields if field.name == "vintage"]
    assert vintage_field.choice == ""
    assert list(vintage_field.options) == [
        ("", "current"),
        ("all", "all"),
        ("2026-10-02", "2026-10-02"),
        ("base", "base"),
    ]
    assert NIGHT_EXPLANATION in page.figures[1].table
    assert "why in a: " not in page.figures[1].table


def test_models_can_be_compared_in_another_vintage(job):
    figures = figures_of(job, MODELS | {"vintage": "base"})

    assert "why in a: 1.0" in figures["diff_flips"].table
    assert NIGHT_EXPLANATION not in figures["diff_flips"].table


def test_vintages_begin_with_the_current_one_even_if_an_earlier_one_was_completed_later(
    tmp_path,
):
    """The base responses were completed after the night, which remains the current vintage."""
    responses = judged(ALL_MET, "a")
    for response in responses["responses"][1:]:
        response["created_at"] = at(9)
    night = judged(MIXED, "a", of_response=NIGHT)
    with reading(tmp_path / "data", tasks_of(RUBRICS), responses, night):
        job = job_on("sample", tmp_path / "data").looking_up(lambda: DATA)
        page = page_of(job, {"of": "vintage"})

    assert [field.choice for field in page.fields[:2]] == ["base", "2026-10-02"]


@pytest.mark.parametrize("choices", [{"of": "password"}, {"first": "only one"}])
def test_incomplete_choices_show_no_figure(job, choices):
    assert page_of(job, choices).figures == ()


def test_invalid_parameters_are_ignored(job):
    figures = figures_of(job, MODELS | {"unknown": "x"})

    assert figures["diff_flips"] == figures_of(job, MODELS)["diff_flips"]
