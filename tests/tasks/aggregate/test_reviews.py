"""Figures of reviews, each against plain Python: agreement, reviewers, and what checks predict."""

import itertools
import json
import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest
from sklearn.metrics import accuracy_score, cohen_kappa_score

from tests.kit import Fill, admitted, aggregated, at, criterion, differing, response, row, verdict
from warehouse import Reader

CHECKS = ("atomic", "objective")
Row = dict[str, Any]
Key = tuple[str, str]


def ratio(pairs: Iterable[tuple[float, float]]) -> float:
    """A weighted mean of (weight, value)."""
    listed = list(pairs)
    return sum(weight * value for weight, value in listed) / sum(weight for weight, _ in listed)


class Reviews:
    """Made-up reviews: by people on two samples with different probabilities, and by a model on all
    criteria, twice.
    """

    def __init__(self, seed: int, n_tasks: int = 60, n_criteria: int = 6) -> None:
        dice = random.Random(seed)
        tasks = [f"t{i}" for i in range(n_tasks)]
        categories = ["Practical Utility"] * 2 + ["Financial Accuracy"] * (n_criteria - 2)
        self.criteria = [
            criterion(t, i, 5.0, category) for t in tasks for i, category in enumerate(categories)
        ]
        self.by_key = {(each["task_id"], each["criterion_id"]): each for each in self.criteria}
        self.keys = [*self.by_key]
        self.category = {key: each["category"] for key, each in self.by_key.items()}
        first = dice.sample(self.keys, 90)
        second = dice.sample(self.keys, 30)
        # The second sample draws criteria of rare and of frequent categories with different
        # probabilities.
        self.samples: dict[str, dict[Key, float]] = {
            "s1": dict.fromkeys(first, 0.25),
            "s2": {key: 0.05 + 0.3 * (self.category[key] == "Practical Utility") for key in second},
        }
        reviewed = sorted({*first, *second})
        self.people = {
            name: {key: float(dice.random() < 0.8) for key in reviewed if dice.random() < 0.7}
            for name in ("eva", "ben")
        }
        cells = itertools.product((1, 2), CHECKS)
        self.checks = {
            cell: {key: float(dice.random() < 0.7) for key in self.keys} for cell in cells
        }
        self.verdicts = {
            name: {key: float(dice.random() < 0.6) for key in self.keys}
            for name in ("one", "other")
        }
        self.tasks = tasks

    def tables(self) -> Mapping[str, list[Row]]:
        responses = {task: response(task) for task in self.tasks}
        return {
            **admitted(self.tasks),
            "criteria": self.criteria,
            "responses": list(responses.values()),
            "verdicts": [
                verdict(responses[key[0]], self.by_key[key], value, judge=judge)
                for judge, values in self.verdicts.items()
                for key, value in values.items()
            ],
            "review_samples": [
                row(
                    "review_samples",
                    sample_id=sample,
                    task_id=key[0],
                    criterion_id=key[1],
                    population_id="p",
                    n_population=len(self.keys),
                    probability=probability,
                )
                for sample, members in self.samples.items()
                for key, probability in members.items()
            ],
            "expert_reviews": [
                row(
                    "expert_reviews",
                    review_id=f"{name}/{key}",
                    task_id=key[0],
                    criterion_id=key[1],
                    criterion_hash=self.by_key[key]["content_hash"],
                    reviewer=name,
                    value=value,
                    explanation="so",
                )
                for name, values in self.people.items()
                for key, value in values.items()
            ],
            "model_reviews": [
                row(
                    "model_reviews",
                    review_id=f"{key}/{trial}",
                    task_id=key[0],
                    criterion_id=key[1],
                    criterion_hash=self.by_key[key]["content_hash"],
                    reviewer="rev",
                    reviewer_config_hash="c",
                    review_trial=trial,
                    status="ok",
                    findings=json.dumps(
                        [
                            {
                                "name": check,
                                "passes": self.checks[trial, check][key] == 1.0,
                                "reason": "so",
                            }
                            for check in CHECKS
                        ]
                    ),
                )
                for trial in (1, 2)
                for key in self.keys
            ],
        }

    @property
    def agreeing(self) -> dict[Key, float]:
        """The share of people who agree with each reviewed criterion."""
        values: dict[Key, list[float]] = defaultdict(list)
        for of_person in self.people.values():
            for key, value in of_person.items():
                values[key].append(value)
        return {key: sum(actual) / len(actual) for key, actual in values.items()}

    def weights(self) -> dict[Key, float]:
        """The weight of each reviewed criterion of a sample."""
        weights: dict[Key, float] = defaultdict(float)
        for members in self.samples.values():
            reviewed = [key for key in members if key in self.agreeing]
            for key in reviewed:
                weights[key] += len(reviewed) / members[key]
        return weights


@pytest.fixture(scope="module")
def world() -> Reviews:
    return Reviews(seed=3)


@pytest.fixture(scope="module")
def reader(world: Reviews, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with aggregated(tmp_path_factory.mktemp("reviews"), world.tables()).reader() as opened:
        yield opened


def test_the_share_of_agreement_weighs_by_one_over_the_probability(
    reader: Reader, world: Reviews
) -> None:
    rows = reader.rows("select * from review_agreement")
    weights = world.weights()
    agreeing = world.agreeing
    actual = {(r["breakdown"], r["label"]): r for r in rows}

    categories = {("category", each) for each in world.category.values()}
    assert {("all", ""), ("severity", "(none)"), *categories} == set(actual)
    wanted = {}
    for breakdown, label in actual:
        keys = [key for key in weights if breakdown != "category" or world.category[key] == label]
        wanted[breakdown, label] = {
            "agreeing_share": ratio((weights[key], agreeing[key]) for key in keys),
            "unweighted_share": ratio((1.0, agreeing[key]) for key in keys),
            "n_criteria": len(keys),
            "n_reviews": sum(key in of for of in world.people.values() for key in keys),
            "n_tasks": len({task for task, _ in keys}),
        }
    assert differing(wanted, actual) == []
    assert all(
        figure["ci_low"] < figure["agreeing_share"] < figure["ci_high"]
        for figure in actual.values()
    )
    # The weights must matter here, or the test could not distinguish the two definitions.
    assert abs(actual["all", ""]["agreeing_share"] - actual["all", ""]["unweighted_share"]) > 0.002


def test_reviewers_of_the_same_criteria_are_compared_in_each_check(
    reader: Reader, world: Reviews
) -> None:
    rows = reader.rows("select * from reviewer_agreement where reviewer_b is not null")
    actual = {(r["review_check"], r["reviewer_a"], r["reviewer_b"]): r for r in rows}
    expected = {("agree", "ben", "eva"): (world.people["ben"], world.people["eva"])} | {
        (check, "rev", "rev#2"): (world.checks[1, check], world.checks[2, check])
        for check in CHECKS
    }

    wanted = {}
    for name, (a, b) in expected.items():
        sides = [*zip(*((a[key], b[key]) for key in a if key in b), strict=True)]
        kappa = cohen_kappa_score(*sides)
        wanted[name] = {
            "n": len(sides[0]),
            "agreement": accuracy_score(*sides),
            "kappa": kappa,
        }

    assert wanted.keys() == actual.keys()
    assert differing(wanted, actual) == []
    assert all(
        figure["kappa_ci_low"] < figure["kappa"] < figure["kappa_ci_high"]
        for figure in actual.values()
    )


def test_what_checks_predict_is_counted_over_criteria_that_fail_and_that_pass(
    reader: Reader, world: Reviews
) -> None:
    rows = reader.rows("select * from review_predictions")
    actual = {(r["outcome"], r["reviewer"], r["review_check"]): r for r in rows}
    a, b = world.verdicts.values()
    outcomes = {
        "graders": {key: float(a[key] != b[key]) for key in world.keys},
        "people": {key: 1 - value for key, value in world.agreeing.items()},
    }
    groups = {check: (check,) for check in CHECKS} | {"all checks": CHECKS}
    failing = {
        name: {
            key: (
                sum(1 - min(world.checks[trial, check][key] for check in of) for trial in (1, 2))
                / 2
            )
            for key in world.keys
        }
        for name, of in groups.items()
    }
    expected = {
        (outcome, "rev", check): failing[check] for outcome in outcomes for check in failing
    }
    expected["graders", "people", "agree"] = {
        key: 1 - value for key, value in world.agreeing.items()
    }

    wanted = {}
    for name, fails in expected.items():
        outcome = outcomes[name[0]]
        keys = [key for key in fails if key in outcome]
        rate_failing = ratio((fails[key], outcome[key]) for key in keys)
        rate_passing = ratio((1 - fails[key], outcome[key]) for key in keys)
        sensitivity = ratio((outcome[key], fails[key]) for key in keys)
        specificity = ratio((1 - outcome[key], 1 - fails[key]) for key in keys)
        wanted[name] = {
            "n_criteria": len(keys),
            "failing_rate": rate_failing,
            "passing_rate": rate_passing,
            "difference": rate_failing - rate_passing,
            "auc": (sensitivity + specificity) / 2,
            "odds_ratio": rate_failing / (1 - rate_failing) / (rate_passing / (1 - rate_passing)),
        }

    assert wanted.keys() == actual.keys()
    assert differing(wanted, actual) == []
    assert all(
        figure["auc_ci_low"] < figure["auc"] < figure["auc_ci_high"] for figure in actual.values()
    )


def test_an_older_configuration_of_a_reviewer_counts_no_more(
    published: Fill, world: Reviews
) -> None:
    tables = dict(world.tables())
    about = {"reviewer_config_hash": "old", "created_at": at(-1)}
    older = [
        each | about | {"review_id": f"old {each['review_id']}"} for each in tables["model_reviews"]
    ]
    tables["model_reviews"] = [*tables["model_reviews"], *older]
    reader = published(tables)
    counted = "from intermediate.current_reviews where source = 'reviewed'"

    assert reader.table(f"select distinct reviewer_config_hash {counted}")[1] == [("c",)]
    assert 8 * len(world.keys) == reader.value(
        "select count(*) from criterion_reviews where source = 'reviewed'"
    )
