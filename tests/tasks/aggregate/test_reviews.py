"""Figures of reviews, each against plain Python: agreement, reviewers, and what checks predict."""

import itertools
import json
import random
import statistics
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pytest
from sklearn.metrics import accuracy_score, cohen_kappa_score

from tests.kit import (
    Row,
    Rows,
    admitted,
    aggregated,
    at,
    criterion,
    differing,
    response,
    row,
    verdict,
)
from warehouse import Reader

CHECKS = ("atomic", "objective")
TRIALS = (1, 2)
TASKS = tuple(f"t{number}" for number in range(60))
CATEGORIES = ("Practical Utility",) * 2 + ("Financial Accuracy",) * 4
Key = tuple[str, str]
"""(task id, criterion id)"""
Values = dict[Key, float]


def weighted_mean(pairs: Iterable[tuple[float, float]]) -> float:
    """The mean of values from pairs of a weight and a value."""
    total = 0.0
    total_weight = 0.0
    for weight, value in pairs:
        total += weight * value
        total_weight += weight
    return total / total_weight


class Reviews:
    """Made-up reviews: by people on two samples with different probabilities, and by a model on all
    criteria, twice.
    """

    def __init__(self, seed: int):
        dice = random.Random(seed)
        self.criteria: dict[Key, Row] = {}
        cells = itertools.product(TASKS, enumerate(CATEGORIES))
        for task_id, (position, category) in cells:
            line = criterion(task_id, position, 5.0, category)
            self.criteria[task_id, line["criterion_id"]] = line
        keys = list(self.criteria)
        first_sample = dice.sample(keys, 90)
        second_sample = dice.sample(keys, 30)
        # The second sample draws criteria of rare and of frequent categories with different
        # probabilities.
        self.samples: dict[str, Values] = {
            "s1": dict.fromkeys(first_sample, 0.25),
            "s2": {},
        }
        for key in second_sample:
            is_rare = self.criteria[key]["category"] == "Practical Utility"
            self.samples["s2"][key] = 0.35 if is_rare else 0.05
        reviewed_keys = sorted({*first_sample, *second_sample})
        self.people: dict[str, Values] = {}
        for name in ("eva", "ben"):
            self.people[name] = {}
            for key in reviewed_keys:
                if dice.random() < 0.7:
                    self.people[name][key] = float(dice.random() < 0.8)
        self.checks: dict[tuple[int, str], Values] = {}
        for cell in itertools.product(TRIALS, CHECKS):
            self.checks[cell] = {key: float(dice.random() < 0.7) for key in keys}
        self.verdicts: dict[str, Values] = {}
        for judge in ("one", "other"):
            self.verdicts[judge] = {key: float(dice.random() < 0.6) for key in keys}

    def tables(self) -> Rows:
        rows = {**admitted(TASKS), "criteria": list(self.criteria.values())}
        rows["responses"] = [response(task_id) for task_id in TASKS]
        rows["verdicts"] = [
            verdict(response(key[0]), self.criteria[key], value, judge=judge)
            for judge, values in self.verdicts.items()
            for key, value in values.items()
        ]
        rows["review_samples"] = [
            row(
                "review_samples",
                sample_id=sample_id,
                task_id=task_id,
                criterion_id=criterion_id,
                population_id="p",
                n_population=len(self.criteria),
                probability=probability,
            )
            for sample_id, probabilities in self.samples.items()
            for (task_id, criterion_id), probability in probabilities.items()
        ]
        rows["expert_reviews"] = [
            row(
                "expert_reviews",
                review_id=f"{name}/{key}",
                **self.identity(key),
                reviewer=name,
                value=value,
                explanation="so",
            )
            for name, values in self.people.items()
            for key, value in values.items()
        ]
        rows["model_reviews"] = [
            row(
                "model_reviews",
                review_id=f"{key}/{trial}",
                **self.identity(key),
                reviewer="rev",
                reviewer_config_hash="c",
                review_trial=trial,
                status="ok",
                findings=self.findings(trial, key),
            )
            for trial in TRIALS
            for key in self.criteria
        ]
        return rows

    def identity(self, key: Key) -> dict[str, str]:
        """The columns that say which criterion a review is of."""
        task_id, criterion_id = key
        return {
            "task_id": task_id,
            "criterion_id": criterion_id,
            "criterion_hash": self.criteria[key]["content_hash"],
        }

    def findings(self, trial: int, key: Key) -> str:
        findings = []
        for check in CHECKS:
            passes = self.checks[trial, check][key] == 1.0
            findings.append({"name": check, "passes": passes, "reason": "so"})
        return json.dumps(findings)

    def agreeing_shares(self) -> Values:
        """The share of people who agree with each reviewed criterion."""
        values = defaultdict(list)
        for votes in self.people.values():
            for key, value in votes.items():
                values[key].append(value)
        return {key: statistics.fmean(votes) for key, votes in values.items()}

    def weights(self) -> Values:
        """The weight of each reviewed criterion: in each sample 1 / its probability (Horvitz and
        Thompson), times the number of the sample's reviewed criteria, so that larger samples
        count for more.
        """
        weights = defaultdict(float)
        agreeing = self.agreeing_shares()
        for probabilities in self.samples.values():
            reviewed_keys = [key for key in probabilities if key in agreeing]
            for key in reviewed_keys:
                weights[key] += len(reviewed_keys) / probabilities[key]
        return weights


@pytest.fixture(scope="module")
def reviews() -> Reviews:
    return Reviews(seed=3)


@pytest.fixture(scope="module")
def reader(reviews: Reviews, tmp_path_factory) -> Iterator[Reader]:
    folder = tmp_path_factory.mktemp("reviews")
    with aggregated(folder, reviews.tables()).reader() as opened:
        yield opened


def assert_within_interval(figures: Iterable[Row], name: str):
    for figure in figures:
        assert figure[f"{name}_ci_low"] < figure[name]
        assert figure[name] < figure[f"{name}_ci_high"]


def test_the_share_of_agreement_weighs_by_one_over_the_probability(reader, reviews):
    rows = reader.rows("from review_agreement")
    actual = {(figure["breakdown"], figure["label"]): figure for figure in rows}

    labels = [("all", ""), ("severity", "(none)")]
    labels += [("category", category) for category in set(CATEGORIES)]
    weights = reviews.weights()
    agreeing = reviews.agreeing_shares()
    expected = {}
    for breakdown, label in labels:
        keys = [
            key
            for key in weights
            if breakdown != "category" or reviews.criteria[key]["category"] == label
        ]
        expected[breakdown, label] = {
            "agreeing_share": weighted_mean(
                (weights[key], agreeing[key]) for key in keys
            ),
            "unweighted_share": weighted_mean((1.0, agreeing[key]) for key in keys),
            "n_criteria": len(keys),
            "n_reviews": sum(
                len(votes.keys() & keys) for votes in reviews.people.values()
            ),
            "n_tasks": len({task_id for task_id, _ in keys}),
        }
    assert actual.keys() == expected.keys()
    assert differing(expected, actual) == []
    for figure in rows:
        assert figure["ci_low"] < figure["agreeing_share"] < figure["ci_high"]
    # The weights must matter here, or the test could not distinguish the two definitions.
    all_criteria = actual["all", ""]
    effect = all_criteria["agreeing_share"] - all_criteria["unweighted_share"]
    assert abs(effect) > 0.002


def test_reviewers_of_the_same_criteria_are_compared_in_each_check(reader, reviews):
    # Rows without a second reviewer are about all reviewers together.
    rows = reader.rows("from reviewer_agreement where reviewer_b is not null")
    actual = {
        (figure["review_check"], figure["reviewer_a"], figure["reviewer_b"]): figure
        for figure in rows
    }

    reviewers = {
        ("agree", "ben", "eva"): (reviews.people["ben"], reviews.people["eva"])
    }
    for check in CHECKS:  # "rev#2" are the second reviews by "rev"
        trials = (reviews.checks[1, check], reviews.checks[2, check])
        reviewers[check, "rev", "rev#2"] = trials
    expected = {}
    for name, (values, other_values) in reviewers.items():
        keys = sorted(values.keys() & other_values.keys())
        sides = ([values[key] for key in keys], [other_values[key] for key in keys])
        expected[name] = {
            "n": len(keys),
            "agreement": accuracy_score(*sides),
            "kappa": cohen_kappa_score(*sides),
        }
    assert actual.keys() == expected.keys()
    assert differing(expected, actual) == []
    assert_within_interval(rows, "kappa")


def failing_shares(reviews: Reviews, checks: tuple[str, ...]) -> Values:
    """The share of the model's reviews in which a criterion fails one of the checks."""
    shares = {}
    for key in reviews.criteria:
        n_failing = 0.0
        for trial in TRIALS:
            n_failing += 1 - min(
                reviews.checks[trial, check][key] for check in checks
            )
        shares[key] = n_failing / len(TRIALS)
    return shares


def prediction(
    failing: Mapping[Key, float], outcomes: Mapping[Key, float]
) -> dict[str, Any]:
    """The figures of a check that predicts an outcome.

    Both are shares of a criterion, so each is once the weight and once the value of a mean: the
    failing rate is the mean outcome of failing criteria, the sensitivity the mean share of failing
    among criteria with the outcome.
    """
    keys = sorted(failing.keys() & outcomes.keys())
    failing_rate = weighted_mean((failing[key], outcomes[key]) for key in keys)
    passing_rate = weighted_mean((1 - failing[key], outcomes[key]) for key in keys)
    sensitivity = weighted_mean((outcomes[key], failing[key]) for key in keys)
    specificity = weighted_mean((1 - outcomes[key], 1 - failing[key]) for key in keys)
    failing_odds = failing_rate / (1 - failing_rate)
    return {
        "n_criteria": len(keys),
        "failing_rate": failing_rate,
        "passing_rate": passing_rate,
        "difference": failing_rate - passing_rate,
        "auc": (sensitivity + specificity) / 2,
        "odds_ratio": failing_odds * (1 - passing_rate) / passing_rate,
    }


def test_what_checks_predict_is_counted_over_criteria_that_fail_and_that_pass(
    reader, reviews
):
    rows = reader.rows("from review_predictions")
    actual = {
        (figure["outcome"], figure["reviewer"], figure["review_check"]): figure
        for figure in rows
    }

    verdicts_of_one, verdicts_of_other = reviews.verdicts.values()
    disagreeing = {
        key: float(verdicts_of_one[key] != verdicts_of_other[key])
        for key in reviews.criteria
    }
    objecting = {key: 1 - share for key, share in reviews.agreeing_shares().items()}
    failing = {check: failing_shares(reviews, (check,)) for check in CHECKS}
    failing["all checks"] = failing_shares(reviews, CHECKS)
    expected = {("graders", "people", "agree"): prediction(objecting, disagreeing)}
    for check, shares in failing.items():
        expected["graders", "rev", check] = prediction(shares, disagreeing)
        expected["people", "rev", check] = prediction(shares, objecting)
    assert actual.keys() == expected.keys()
    assert differing(expected, actual) == []
    assert_within_interval(rows, "auc")


def test_an_older_configuration_of_a_reviewer_counts_no_more(published, reviews):
    tables = reviews.tables()
    older = {"reviewer_config_hash": "older", "created_at": at(-1)}
    tables["model_reviews"] += [
        review | older | {"review_id": f"older {review['review_id']}"}
        for review in tables["model_reviews"]
    ]

    reader = published(tables)

    current = reader.rows(
        "select distinct reviewer_config_hash from intermediate.current_reviews"
        " where source = 'reviewed'"
    )
    assert current == [{"reviewer_config_hash": "c"}]
    # The table of all reviews keeps those of both configurations.
    n_rows = reader.value(
        "select count(*) from criterion_reviews where source = 'reviewed'"
    )
    assert n_rows == 2 * len(TRIALS) * len(CHECKS) * len(reviews.criteria)
