"""The page of categories, against figures that are derived in Python from the stored verdicts."""

from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from tasks.benchmarks.prbench import SEVERITIES
from tasks.config.job import Job
from tasks.report.content.edition import Edition, open_edition
from tasks.report.drawing.plots import specification
from tasks.report.pages.categories import CATEGORIES as PAGE
from tests.builders import admitted, at, criterion, response, verdict
from tests.tasks.aggregate.breakdowns_oracle import severity_rows
from tests.tasks.report.made_up.contenders import JUDGES
from tests.tasks.report.made_up.editions import check_sources, edition_of, rows_of
from tests.tasks.report.made_up.evaluated import Evaluated, Row
from warehouse import Warehouse

FIGURES = {figure.name: figure for figure in PAGE.figures}
OF_TASKS = {
    "topics": lambda task: [task["topic"]],
    "decision_types": lambda task: task["decision_types"],
    "economic_pathways": lambda task: task["economic_pathways"],
    "experts": lambda task: [task["expert"]],
    "turns": lambda task: [str(task["turns"])],
    "reference_texts": lambda task: ["with" if task["has_reference_texts"] else "without"],
}
"""Figure -> the labels that a task stands under in it."""
GRAVEST = {"missed": "critically important", "mistake": "critically detrimental"}


@pytest.fixture(scope="module")
def edition(world_job: Job) -> Iterator[Edition]:
    with Warehouse(world_job.warehouse).reader() as reader:
        yield open_edition(world_job, reader)


@pytest.fixture(scope="module")
def evaluated(edition: Edition) -> Evaluated:
    return Evaluated(edition)


def boards(evaluated: Evaluated) -> Iterator[tuple[str, str, str, list[Row]]]:
    """Every judging, split and model of which a judge has seen anything, with the tasks of the split."""
    for judging in evaluated.judgings:
        for entry in evaluated.entries:
            judged = evaluated.judged(judging, entry)
            for (split,) in evaluated.splits:
                tasks = evaluated.tasks_of(split)
                if any(evaluated.verdicts(judging, each) for task in tasks for each in judged[task["task_id"]]):
                    yield judging, split, entry, tasks


def keyed(rows: list[Row], *columns: str) -> dict[tuple[Any, ...], Row]:
    found = {tuple(each[name] for name in columns): each for each in rows}
    assert len(found) == len(rows), "no figure stands there twice"
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_the_sql_runs_as_it_stands_and_gives_the_csv(name: str, edition: Edition, tmp_path: Path) -> None:
    check_sources(FIGURES[name], edition, tmp_path)


def test_a_category_has_the_mean_of_what_its_criteria_come_to_under_one_judge_in_the_latest_sampling(
    edition: Edition, evaluated: Evaluated
) -> None:
    actual = keyed(rows_of(FIGURES["categories"], edition), "judging", "split", "label", "model")

    wanted = {}
    for judging, split, entry, tasks in boards(evaluated):
        for category in {each["category"] for task in tasks for each in evaluated.rubrics[task["task_id"],]}:
            means = evaluated.task_means(
                judging, entry, tasks, lambda each, of=category: each["category"] == of, is_normalised=True
            )
            wanted[judging, split, category, entry] = (
                pytest.approx(fmean(means.values())) if means else None, len(means),
            )  # fmt: skip
    assert {key: (each["mean_score"], each["n_tasks"]) for key, each in actual.items()} == wanted
    assert {each["model"] for each in actual.values()} == set(evaluated.entries)
    assert {each["is_hard"] for key, each in actual.items() if key[1].endswith("_hard")} == {True}


@pytest.mark.parametrize("name", OF_TASKS)
def test_a_label_has_the_mean_of_its_tasks_and_none_below_zero(
    name: str, edition: Edition, evaluated: Evaluated
) -> None:
    actual = keyed(rows_of(FIGURES[name], edition), "judging", "split", "label", "model")

    wanted = {}
    for judging, split, entry, tasks in boards(evaluated):
        for label in {label for task in tasks for label in OF_TASKS[name](task)}:
            means = evaluated.task_means(judging, entry, [task for task in tasks if label in OF_TASKS[name](task)])
            score = pytest.approx(max(0.0, fmean(means.values()))) if means else None
            wanted[judging, split, label, entry] = (score, len(means))
    assert {key: (each["mean_score"], each["n_tasks"]) for key, each in actual.items()} == wanted


def test_coverage_and_bounds_tell_what_is_not_decided(edition: Edition) -> None:
    rows = rows_of(FIGURES["topics"], edition)

    partial = [each for each in rows if each["coverage"] < 1]
    assert partial
    assert all(each["n_tasks"] <= each["n_tasks_wanted"] for each in rows)
    assert all(each["mean_lower"] < each["mean_upper"] for each in partial)
    assert any(each["mean_score"] is None for each in partial), "a judge has seen no task of some topic"
    assert all(each["ci_low"] is None for each in rows if each["mean_score"] is None)


def test_what_was_missed_and_what_was_done_wrong_is_pooled_over_criteria(
    edition: Edition, evaluated: Evaluated
) -> None:
    actual = keyed(rows_of(FIGURES["critical"], edition), "judging", "split", "model")

    wanted = {}
    for judging, split, entry, tasks in boards(evaluated):
        good, bad = (
            evaluated.met(judging, entry, tasks, lambda each, of=severity: each["severity"] == of)
            for severity in GRAVEST.values()
        )
        wanted[judging, split, entry] = (
            pytest.approx(1 - fmean(value for of in good for value in of)) if good else None,
            sum(map(len, good)) if good else None,
            pytest.approx(fmean(value for of in bad for value in of)) if bad else None,
            sum(map(len, bad)) if bad else None,
        )  # fmt: skip
    columns = ("missed_share", "n_critical", "mistake_share", "n_mistakes_possible")
    assert {key: tuple(each[name] for name in columns) for key, each in actual.items()} == wanted
    for each in actual.values():
        for side in GRAVEST:
            if each[f"{side}_ci_low"] is not None:
                assert each[f"{side}_ci_low"] <= each[f"{side}_share"] <= each[f"{side}_ci_high"]


def test_every_severity_has_the_share_of_its_criteria_that_are_met(edition: Edition, evaluated: Evaluated) -> None:
    rows = rows_of(FIGURES["severities"], edition)
    actual = keyed(rows, "judging", "split", "severity", "model")

    wanted = {}
    for judging, split, entry, tasks in boards(evaluated):
        for severity in {each["severity"] for task in tasks for each in evaluated.rubrics[task["task_id"],]}:
            met = evaluated.met(judging, entry, tasks, lambda each, of=severity: each["severity"] == of)
            wanted[judging, split, severity, entry] = (
                pytest.approx(fmean(value for of in met for value in of)) if met else None
            )
    assert {key: each["met_share"] for key, each in actual.items()} == wanted
    assert {key[2]: each["is_detrimental"] for key, each in actual.items()} == {
        severity: high < 0 for severity, (_, high) in SEVERITIES.items()
    }
    first = [each["severity"] for each in rows if (each["judging"], each["split"]) == (edition.main, "finance")]
    assert list(dict.fromkeys(first)) == list(SEVERITIES), "from the gravest good one to the gravest bad one"


# charts


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_no_chart_shows_two_judges_or_two_splits_or_a_hard_split_beside_its_full_one(
    name: str, edition: Edition
) -> None:
    rows = rows_of(FIGURES[name], edition)
    plots = FIGURES[name].plots(rows)  # type: ignore[misc]

    charted = [specification(plot.chart)["data"]["values"] for plot in plots]
    assert all(len({each["judging"] for each in values}) == 1 for values in charted)
    titles = [plot.title for plot in plots]
    assert len(titles) == len(set(titles))
    assert not [title for title in titles if "_hard" in title]
    for split in ("finance", "legal"):
        assert any(title.endswith(f"{split}, judged by {JUDGES[0]}") for title in titles)
    listed = FIGURES[name].listed(rows)  # type: ignore[misc]
    assert {each["split"] for each in listed} == {"finance", "legal"}


def test_where_only_a_hard_split_is_evaluated_the_charts_show_it(edition: Edition) -> None:
    rows = [each for each in rows_of(FIGURES["topics"], edition) if each["split"] == "finance_hard"]

    assert {"finance_hard"} == {plot.title.split(",")[0] for plot in FIGURES["topics"].plots(rows)}  # type: ignore[misc]
    assert rows == FIGURES["topics"].listed(rows)  # type: ignore[misc]


# small cases


def decided(judge: str, vintage: str, value: float, **of_response: Any) -> tuple[Row, list[Row]]:
    """An answer to the only task in a sampling, with a judge's verdicts, all of one value."""
    answer = response("t1", vintage=vintage, **of_response) | {"response_id": f"t1/{vintage}"}
    return answer, [verdict(answer, each, value, judge=judge) for each in CRITERIA]


CRITERIA = [
    criterion("t1", 0, 8.0, "Accuracy") | {"severity": "critically important"},
    criterion("t1", 1, -9.0, "Risk") | {"severity": "critically detrimental"},
]


def test_judges_and_samplings_are_never_mixed(tmp_path: Path) -> None:
    old, of_old = decided("ada", "first", 1.0)
    new, of_new = decided("ada", "second", 0.0, created_at=at(1000))
    of_new += [verdict(new, each, 1.0, judge="bell") for each in CRITERIA]
    edition = edition_of(tmp_path, {
        **admitted(["t1"], n_criteria=2), "severities": severity_rows(), "criteria": CRITERIA,
        "responses": [old, new], "verdicts": of_old + of_new,
    })  # fmt: skip

    rows = rows_of(FIGURES["categories"], edition)
    found = {(each["judging"], each["model"], each["label"]): each["mean_score"] for each in rows}
    critical = rows_of(FIGURES["critical"], edition)

    # A category of nothing but mistakes is at its best where none was made.
    assert found == {
        ("ada", "a-model", "Accuracy"): 0.0, ("ada", "a-model", "Risk"): 1.0,
        ("bell", "a-model", "Accuracy"): 1.0, ("bell", "a-model", "Risk"): 0.0,
    }  # fmt: skip
    assert [(each["judging"], each["missed_share"], each["mistake_share"]) for each in critical] == [
        ("ada", 1.0, 0.0), ("bell", 0.0, 1.0),
    ]  # fmt: skip


def test_what_is_not_decided_has_no_figure_and_not_a_bad_one(tmp_path: Path) -> None:
    answer = response("t1")
    edition = edition_of(tmp_path, {
        **admitted(["t1"], n_criteria=2), "severities": severity_rows(), "criteria": CRITERIA, "responses": [answer],
        "verdicts": [verdict(answer, CRITERIA[0], 1.0), verdict(answer, CRITERIA[1], None)],
    })  # fmt: skip

    categories = {each["label"]: each for each in rows_of(FIGURES["categories"], edition)}
    (critical,) = rows_of(FIGURES["critical"], edition)

    assert (categories["Accuracy"]["mean_score"], categories["Risk"]["mean_score"]) == (1.0, None)
    assert (categories["Risk"]["mean_lower"], categories["Risk"]["mean_upper"]) == (0.0, 1.0)
    assert (critical["missed_share"], critical["mistake_share"], critical["mistake_coverage"]) == (0.0, None, 0.0)
    assert critical["responses_with_mistake_share"] is None


def test_a_criterion_of_an_unknown_severity_is_listed_last_and_is_no_mistake(tmp_path: Path) -> None:
    odd = criterion("t1", 2, 3.0, "Accuracy") | {"severity": "nice to have"}
    answer = response("t1")
    edition = edition_of(tmp_path, {
        **admitted(["t1"], n_criteria=3), "severities": severity_rows(), "criteria": [*CRITERIA, odd],
        "responses": [answer], "verdicts": [verdict(answer, each, 1.0) for each in (*CRITERIA, odd)],
    })  # fmt: skip

    rows = rows_of(FIGURES["severities"], edition)

    assert [(each["severity"], each["is_detrimental"]) for each in rows] == [
        ("critically important", False), ("critically detrimental", True), ("nice to have", None),
    ]  # fmt: skip
    plots = FIGURES["severities"].plots(rows)  # type: ignore[misc]
    assert ["Criteria met, finance", "Mistakes made, finance"] == [plot.title for plot in plots]


def test_a_mean_below_0_stands_unclipped_beside_the_0_and_no_other_does(tmp_path: Path) -> None:
    rubric = [criterion("t1", 0, 5.0), criterion("t1", 1, -10.0)]
    bad, good = response("t1", "bad"), response("t1", "good")
    edition = edition_of(tmp_path, {
        **admitted(["t1"], n_criteria=2, topic="Tax"), "severities": severity_rows(), "criteria": rubric,
        "responses": [bad, good],
        "verdicts": [verdict(bad, each, float(each["weight"] < 0)) for each in rubric]
        + [verdict(good, each, float(each["weight"] > 0)) for each in rubric],
    })  # fmt: skip

    found = {
        each["model"]: (each["mean_score"], each["raw_mean_score"]) for each in rows_of(FIGURES["topics"], edition)
    }
    assert found == {"bad": (0.0, -2.0), "good": (1.0, None)}
