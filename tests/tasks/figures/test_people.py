"""Agreement with people, pooled over their decisions, against figures from the raw pairs of
decisions.
"""

import random
from itertools import combinations
from statistics import fmean

import pytest
from sklearn.metrics import cohen_kappa_score, f1_score

import sql
from tasks.figures.scope import filled
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
GIVEN = {
    "benchmark": "prbench",
    "dataset_revision": REVISION,
    "breakdown": "all",
    "people": list(SIZES),
    "graders": [],
}


def decisions() -> dict[str, dict[Cell, float]]:
    """Return each grader's decisions; two people decide all 120 criteria, one nine, and one a
    single one.
    """
    dice = random.Random(4)
    cells = [(task, index) for task in range(N_TASKS) for index in range(N_CRITERIA)]
    truth = {cell: float(dice.random() < 0.6) for cell in cells}
    return {
        grader: {
            cell: float(truth[cell] != (dice.random() < noise))
            for cell in cells[: SIZES.get(grader, 120)]
        }
        for grader, noise in NOISE.items()
    }


def rows_of(decided: dict[str, dict[Cell, float]]) -> Rows:
    names = [f"t{task:02d}" for task in range(N_TASKS)]
    responses = [response(name) for name in names]
    rubrics = [[criterion(name, index, 5) for index in range(N_CRITERIA)] for name in names]
    tables = admitted(names, n_criteria=N_CRITERIA)
    tables |= {"responses": responses, "criteria": [each for rubric in rubrics for each in rubric]}
    tables["verdicts"] = [
        verdict(
            responses[task],
            rubrics[task][index],
            value,
            judge=grader,
            source="judged" if grader == "judge" else "imported",
        )
        for grader, of_grader in decided.items()
        for (task, index), value in of_grader.items()
    ]
    return tables


def of_pairs(*pairs: tuple[str, str]) -> list[list[tuple[float, float]]]:
    decided = decisions()
    return [
        [(decided[a][cell], decided[b][cell]) for cell in decided[a] if cell in decided[b]]
        for a, b in pairs
    ]


def test_decisions_are_pooled_so_that_one_of_a_single_criterion_hardly_counts(
    published: Fill,
) -> None:
    with_judge = of_pairs(*(("judge", person) for person in SIZES))
    among_people = of_pairs(*combinations(SIZES, 2))
    reader = published(rows_of(decisions()))
    actual = {
        row["grader"]: row
        for row in against_people(reader.rows(filled(sql.read("figures/people/people"), GIVEN)))
    }
    judge = actual["judge"]
    people = actual["(people with each other)"]

    assert tuple(judge[name] for name in ("n", "n_people", "n_pairs", "n_tasks")) == (250, 4, 4, 60)
    assert tuple(people[name] for name in ("n", "n_people", "n_pairs")) == (
        120 + 2 * 9 + 3 * 1,
        4,
        6,
    )
    for row, pairs in ((judge, with_judge), (people, among_people)):
        mine, theirs = zip(*(pair for of_one in pairs for pair in of_one), strict=True)
        assert pytest.approx(f1_score(mine, theirs, average="macro")) == row["macro_f1"]
    mine, theirs = zip(*(pair for pairs in with_judge for pair in pairs), strict=True)
    assert pytest.approx(cohen_kappa_score(mine, theirs)) == judge["kappa"]
    assert (
        pytest.approx(fmean(a == b for a, b in zip(mine, theirs, strict=True)))
        == judge["agreement"]
    )
    each = [f1_score(*zip(*pairs, strict=True), average="macro") for pairs in with_judge]
    assert pytest.approx(fmean(each)) == judge["macro_f1_pair_mean"]
    assert abs(judge["macro_f1_pair_mean"] - judge["macro_f1"]) > 0.05
    # Each pair of people counts once, in both orders.
    mine, theirs = zip(*(pair for pairs in among_people for pair in pairs), strict=True)
    assert pytest.approx(cohen_kappa_score(mine + theirs, theirs + mine)) == people["kappa"]
