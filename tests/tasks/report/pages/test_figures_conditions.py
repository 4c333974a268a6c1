"""The page of conditions, against figures that are derived in Python from the stored answers and verdicts."""

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from tasks.config.job import Job
from tasks.report.build import build
from tasks.report.content.edition import Edition, criterion_key, open_edition
from tasks.report.pages.conditions import CONDITIONS as PAGE
from tasks.report.pages.conditions import with_addresses
from tasks.rules.statistics.comparison import holm, paired_difference
from tests.tasks.report.made_up.editions import check_sources, rows_of
from tests.tasks.report.made_up.evaluated import Evaluated, Row
from warehouse import Warehouse

FIGURES = {figure.name: figure for figure in PAGE.figures}
PAIRS = {
    ("alder-large as one", "search alder-large"): ("birch-2", "alder-large"),
    ("alder-large as one", "code"): ("birch-2", "cedar-mini"),
    ("nightly", "slow"): ("elm-chat", "fir-flash"),
}
"""Model and condition -> the labels of baseline and condition, as the made-up configuration has them."""
TOLERANCE = 1e-9


@pytest.fixture(scope="module")
def edition(world_job: Job) -> Iterator[Edition]:
    with Warehouse(world_job.warehouse).reader() as reader:
        yield open_edition(world_job, reader)


@pytest.fixture(scope="module")
def evaluated(edition: Edition) -> Evaluated:
    return Evaluated(edition)


def pairs_of(evaluated: Evaluated) -> Iterator[tuple[str, str, tuple[str, str], str, str]]:
    """Every judging, split and comparison for which both sides have a task with a decided trial."""
    for judging in evaluated.judgings:
        for (split,) in evaluated.splits:
            for pair, (baseline, changed) in PAIRS.items():
                yield judging, split, pair, baseline, changed


def values_of(
    evaluated: Evaluated, judging: str, split: str, baseline: str, changed: str, category: str | None = None
) -> tuple[list[float], list[float]]:
    """The values of the tasks that count on both sides, in the order of their ids."""

    def is_part(each: Row) -> bool:
        return category is None or each["category"] == category

    tasks = evaluated.tasks_of(split)
    first, second = (
        evaluated.task_means(judging, entry, tasks, is_part, is_normalised=category is not None)
        for entry in (baseline, changed)
    )
    both = sorted(first.keys() & second.keys())
    return [first[task] for task in both], [second[task] for task in both]


@pytest.mark.slow
@pytest.mark.parametrize("name", FIGURES)
def test_the_sql_runs_as_it_stands_and_gives_the_csv(name: str, edition: Edition, tmp_path: Path) -> None:
    check_sources(FIGURES[name], edition, tmp_path)


@pytest.mark.slow
def test_differences_are_those_of_the_stored_verdicts_with_their_tests(edition: Edition, evaluated: Evaluated) -> None:
    rows = rows_of(FIGURES["conditions"], edition)
    seen = 0
    for judging, split, pair, baseline, changed in pairs_of(evaluated):
        found = [each for each in rows if (each["judging"], each["split"]) == (judging, split)
                 and (each["shared_model"], each["condition"]) == pair]  # fmt: skip
        first, second = values_of(evaluated, judging, split, baseline, changed)
        if not first:
            assert all(each["n_tasks"] == 0 and each["difference"] is None for each in found)
            continue
        (row,) = found
        paired = paired_difference(np.array(first), np.array(second))
        assert row["n_tasks"] == len(first)
        assert row["difference"] == pytest.approx(fmean(second) - fmean(first), abs=TOLERANCE)
        for name in ("ci_low", "ci_high", "p_value", "smallest_detectable"):
            wanted = getattr(paired, name)
            assert row[name] == (None if wanted is None else pytest.approx(wanted, abs=1e-6))
        assert (row["no_interval"] is None) == (paired.ci_low is not None)
        seen += 1
    assert seen > len(PAIRS)


@pytest.mark.slow
def test_p_values_of_one_split_under_one_judge_are_corrected_together(edition: Edition) -> None:
    for name in ("conditions", "condition_categories"):
        families: dict[Any, list[Row]] = defaultdict(list)
        for row in rows_of(FIGURES[name], edition):
            # What was sampled in a night is another family than what was sampled once.
            families[row["judging"], row["split"], row["shared_model"] == "nightly"].append(row)
        assert any(len(family) > 2 for family in families.values()) or name == "conditions"
        for family in families.values():
            corrected = holm([row["p_value"] for row in family])
            assert [row["p_adjusted"] for row in family] == [
                None if value is None else pytest.approx(value, abs=TOLERANCE) for value in corrected
            ]


@pytest.mark.slow
def test_lengths_and_costs_are_means_over_the_tasks_that_both_answered(edition: Edition, evaluated: Evaluated) -> None:
    for row in rows_of(FIGURES["condition_responses"], edition):
        baseline, changed = PAIRS[row["shared_model"], row["condition"]]
        tasks = {each["task_id"] for each in evaluated.tasks_of(row["split"])}
        sides = []
        for entry in (baseline, changed):
            by_task: dict[str, list[Row]] = defaultdict(list)
            for answer in evaluated.answers[evaluated.entries[entry]]:
                if answer["task_id"] in tasks:
                    by_task[answer["task_id"]].append(answer)
            sides.append(by_task)
        usable = [{task: [each for each in answers if each["status"] == "ok"] for task, answers in side.items()}
                  for side in sides]  # fmt: skip
        both = [task for task in usable[0] if usable[0][task] and usable[1].get(task)]
        means = [fmean(fmean(each["chars_alnum"] for each in side[task]) for task in both) for side in usable]
        assert [row["baseline_mean_chars_alnum"], row["mean_chars_alnum"]] == pytest.approx(means)
        assert row["chars_ratio"] == pytest.approx(means[1] / means[0])
        assert [row["baseline_n_answers"], row["n_answers"]] == [sum(map(len, side.values())) for side in sides]
        assert [row["baseline_n_failed"], row["n_failed"]] == [
            sum(each["status"] != "ok" for answers in side.values() for each in answers) for side in sides
        ]
        costs = [
            {task: fmean(each["cost_usd"] for each in answers) for task, answers in side.items()
             if task in both and all(each["cost_usd"] is not None for each in answers)}
            for side in sides
        ]  # fmt: skip
        priced = costs[0].keys() & costs[1].keys()
        wanted = [fmean(side[task] for task in priced) if priced else None for side in costs]
        assert [row["baseline_answer_usd"], row["answer_usd"]] == [
            None if value is None else pytest.approx(value) for value in wanted
        ]


@pytest.mark.slow
def test_changed_criteria_are_those_whose_verdicts_differ(edition: Edition, evaluated: Evaluated) -> None:
    rows = rows_of(FIGURES["condition_changes"], edition)
    assert rows
    main = edition.main
    assert main
    for split in {row["split"] for row in rows}:
        for pair, (baseline, changed) in PAIRS.items():
            means = [met_means(evaluated, main, entry, split) for entry in (baseline, changed)]
            wanted: dict[str, list[float]] = defaultdict(list)
            for cell in means[0].keys() & means[1].keys():
                wanted[cell[2]].append(cell[3] * (means[1][cell] - means[0][cell]))
            found = {
                row["label"]: row for row in rows
                if (row["judging"], row["split"], row["shared_model"], row["condition"]) == (main, split, *pair)
            }  # fmt: skip
            assert found.keys() == wanted.keys()
            for category, points in wanted.items():
                row = found[category]
                assert row["n_compared"] == len(points)
                assert row["n_gained"] == sum(each > 0 for each in points)
                assert row["n_lost"] == sum(each < 0 for each in points)
                assert row["points_net"] == pytest.approx(sum(points), abs=TOLERANCE)


def met_means(evaluated: Evaluated, judging: str, entry: str, split: str) -> dict[tuple[str, str, str, float], float]:
    """Task, criterion, category and weight -> the mean of its verdicts over the trials that are decided as a whole."""
    values: dict[tuple[str, str, str, float], list[float]] = defaultdict(list)
    judged = evaluated.judged(judging, entry)
    for task in evaluated.tasks_of(split):
        for answer in judged[task["task_id"]]:
            if evaluated.value(judging, answer) is None:
                continue
            verdicts = evaluated.verdicts(judging, answer)
            for each in evaluated.rubrics[task["task_id"],]:
                cell = (task["task_id"], each["criterion_id"], each["category"] or "(none)", each["weight"])
                values[cell].append(verdicts[each["criterion_id"]]["value"])
    return {cell: fmean(of_cell) for cell, of_cell in values.items()}


@pytest.mark.slow
def test_a_criterion_leads_to_both_responses_side_by_side(edition: Edition) -> None:
    rows = with_addresses(rows_of(FIGURES["condition_criteria"], edition))

    assert rows
    for row in rows:
        assert criterion_key(row["criterion_id"]) in row["address"]
        assert "a=" in row["address"]
        assert "b=" in row["address"]
    gains = [row["points"] for row in rows if (row["judging"], row["condition"]) == (edition.main, "code")]
    assert gains == sorted(gains, reverse=True)
    assert len(gains) <= 20


@pytest.mark.slow
def test_the_page_is_there_only_where_conditions_are_configured(
    world_job: Job, research_job: Job, tmp_path: Path
) -> None:
    for job, is_there in ((world_job, True), (research_job, False)):
        with Warehouse(job.warehouse).reader() as reader:
            assert open_edition(job, reader).has_rows(PAGE.needs) == is_there
    written = build(research_job, tmp_path / "site")

    assert not (written.index.parent / "conditions.html").exists()
    assert "conditions.html" not in written.index.read_text(encoding="utf-8")
