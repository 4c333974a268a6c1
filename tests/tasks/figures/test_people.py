"""Agreement with people, pooled over their decisions, against figures from the raw pairs of
decisions.
"""

import random
from itertools import combinations
from statistics import fmean
from typing import Any

import pytest
from sklearn.metrics import cohen_kappa_score, f1_score

import sql
from tasks.figures.scope import with_literals
from tasks.figures.shown.judges import against_people
from tests.kit import REVISION, Fill, Rows, admitted, criterion, response, verdict

N_TASKS = 60
N_CRITERIA = 2
Cell = tuple[int, int]
SIZES = {
    "p1": 120,
    "p2": 120,
    "p3": 9,
    "p4": 1,
}
NOISE = {
    "judge": 0.25,
    "p1": 0.1,
    "p2": 0.1,
    "p3": 0.6,
    "p4": 0.0,
}
PARAMETERS = {
    "benchmark": "prbench",
    "dataset_revision": REVISION,
    "breakdown": "all",
    "people": list(SIZES),
    "graders": [],
}


Decisions = dict[str, dict[Cell, float]]
"""Grader -> cell -> decision."""
Pair = tuple[str, str]


@pytest.fixture(scope="module")
def decisions() -> Decisions:
    """Each grader's decisions; two people decide all 120 criteria, one nine, and one a single
    one.
    """
    dice = random.Random(4)
    cells = [
        (task, position) for task in range(N_TASKS) for position in range(N_CRITERIA)
    ]
    truth = {cell: float(dice.random() < 0.6) for cell in cells}
    decided = {}
    for grader, noise in NOISE.items():
        decided[grader] = {}
        for cell in cells[: SIZES.get(grader, 120)]:
            decided[grader][cell] = float(truth[cell] != (dice.random() < noise))
    return decided


def stored_rows(decisions: Decisions) -> Rows:
    """Return the rows, by table, of the decisions."""
    task_ids = [f"t{task:02d}" for task in range(N_TASKS)]
    tables = admitted(task_ids, n_criteria=N_CRITERIA)
    tables |= {
        "responses": list(map(response, task_ids)),
        "criteria": [],
        "verdicts": [],
    }
    for task, task_id in enumerate(task_ids):
        for position in range(N_CRITERIA):
            criterion_row = criterion(task_id, position, 5)
            tables["criteria"].append(criterion_row)
            for grader, values in decisions.items():
                if (task, position) in values:
                    verdict_row = verdict(
                        tables["responses"][task],
                        criterion_row,
                        values[task, position],
                        judge=grader,
                        source="judged" if grader == "judge" else "imported",
                    )
                    tables["verdicts"].append(verdict_row)
    return tables


@pytest.fixture(scope="module")
def rows(decisions: Decisions, published: Fill) -> dict[str, dict[str, Any]]:
    """The rows of the figure, by grader."""
    reader = published(stored_rows(decisions))
    counts = reader.rows(with_literals(sql.read("figures/people/people"), PARAMETERS))
    return {row["grader"]: row for row in against_people(counts)}


def decided_by(decisions: Decisions, *pairs: Pair) -> tuple[list[float], list[float]]:
    """Return the decisions of each side on the cells that both graders of a pair decided."""
    first_values = []
    second_values = []
    for first, second in pairs:
        for cell in decisions[first]:
            if cell in decisions[second]:
                first_values.append(decisions[first][cell])
                second_values.append(decisions[second][cell])
    return first_values, second_values


JUDGE_PAIRS = [("judge", person) for person in SIZES]
PEOPLE = "(people with each other)"


def test_all_decisions_of_a_judge_and_people_are_counted(rows):
    judge = rows["judge"]

    assert judge["n"] == 250  # all of `SIZES`
    assert judge["n_people"] == 4
    assert judge["n_pairs"] == 4
    assert judge["n_tasks"] == 60


def test_each_pair_of_people_is_counted_once(rows):
    people = rows[PEOPLE]

    assert people["n"] == 120 + 2 * 9 + 3 * 1
    assert people["n_people"] == 4
    assert people["n_pairs"] == 6


def test_the_decisions_of_a_judge_are_pooled(decisions, rows):
    values, people_values = decided_by(decisions, *JUDGE_PAIRS)

    judge = rows["judge"]

    agreements = [
        value == other for value, other in zip(values, people_values, strict=True)
    ]
    assert judge["kappa"] == pytest.approx(cohen_kappa_score(values, people_values))
    assert judge["macro_f1"] == pytest.approx(
        f1_score(values, people_values, average="macro")
    )
    assert judge["agreement"] == pytest.approx(fmean(agreements))


def test_the_mean_over_pairs_gives_a_single_decision_as_much_weight_as_many(
    decisions, rows
):
    scores = []
    for pair in JUDGE_PAIRS:
        scores.append(f1_score(*decided_by(decisions, pair), average="macro"))

    judge = rows["judge"]

    assert judge["macro_f1_pair_mean"] == pytest.approx(fmean(scores))
    assert abs(judge["macro_f1_pair_mean"] - judge["macro_f1"]) > 0.05


def test_each_pair_of_people_counts_in_both_orders(decisions, rows):
    first, second = decided_by(decisions, *combinations(SIZES, 2))

    people = rows[PEOPLE]

    assert people["macro_f1"] == pytest.approx(
        f1_score(first, second, average="macro")
    )
    assert people["kappa"] == pytest.approx(
        cohen_kappa_score(first + second, second + first)
    )
