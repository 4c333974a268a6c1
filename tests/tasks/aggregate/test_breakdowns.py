"""Leaderboards by label, trial and severity, and correlations with length, against an independent
checker.
"""

import math
import warnings
from collections import defaultdict
from collections.abc import Iterable
from itertools import product
from operator import itemgetter
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
import pytest
from scipy import stats

from tests.kit import Fill, Row, Rows, differing, response
from tests.tasks.aggregate.world import EVERY_ROW, REFUSED
from tests.tasks.certify.checker import ALL, Figures
from tests.tasks.compare.comparisons import judged, tasks_of
from warehouse import Reader

pytestmark = pytest.mark.slow
BREAKDOWNS = {
    "all",
    "category",
    "topic",
    "expert",
    "turns",
    "decision_type",
    "economic_pathway",
    "severity",
    "reference_texts",
    "subset",
}
CRITICAL = ("severity", "critically important")
MISTAKE = ("severity", "critically detrimental")
Table = dict[Any, Row]


@pytest.fixture(scope="module")
def rows(reader: Reader, figures: Figures) -> Table:
    """The rows of all leaderboards, by model run, task set, label and score."""
    return {figures.about(row): row for row in reader.rows(EVERY_ROW)}


@pytest.fixture(scope="module")
def scored_rows(rows: Table) -> list[Row]:
    return [row for row in rows.values() if row["mean_score"] is not None]


def test_the_world_has_rows_of_every_breakdown_and_size(rows, world):
    assert {breakdown for _, _, (breakdown, _), _ in rows} == BREAKDOWNS
    assert {row["n_tasks"] for row in rows.values()} > {0, 1, 2}
    assert {len(task["decision_types"]) for task in world["task_rows"]} > {0, 2}
    assert REFUSED in {sampled_row["task_id"] for sampled_row in world["responses"]}


def test_the_world_has_runs_of_every_kind(figures):
    n_trials_by_judge = {
        (run.judge, len(state.trials)) for run, state in figures.runs.items()
    }
    gradings = {(run.grading, run.judge_trial) for run in figures.runs}

    assert n_trials_by_judge > {("people", 1), ("judge-b", 3)}
    assert gradings > {("ternary", 1), ("ternary_as_binary", 1), ("binary", 3)}


@pytest.mark.parametrize("column", ["ci_low", "trials_mean"])
def test_the_world_has_scores_with_and_without_an_interval(scored_rows, column):
    assert {row[column] is None for row in scored_rows} == {True, False}


def test_the_world_has_complete_incomplete_and_clipped_scores(scored_rows):
    complete_sizes = [row["n_tasks"] for row in scored_rows if row["is_complete"]]
    partly_repeated = [
        row
        for row in scored_rows
        if 0 < row["n_tasks_full"] < row["n_tasks"] == row["n_tasks_wanted"]
    ]
    clipped = [
        row
        for row in scored_rows
        if row["score_name"] == "score"
        and row["mean_score"] == 0
        and row["n_tasks"] > 10
    ]

    assert max(complete_sizes) > 1
    assert partly_repeated
    assert clipped


def test_the_world_has_certain_and_uncertain_ranks(scored_rows):
    ranges = {(row["rank_low"], row["rank_high"]) for row in scored_rows}
    latest_rows = [row for row in scored_rows if row["is_latest"]]

    assert ranges > {(1, 1), (1, 2)}
    assert len(latest_rows) < len(scored_rows)
    assert any(row["rank"] != row["latest_rank"] for row in latest_rows)


def test_every_row_and_figure_is_that_of_the_independent_checker(
    reader, figures, rows
):
    differences = []
    for row in rows.values():
        differences += figures.compared(row)[1]

    assert len(rows) == reader.value(f"select count(*) {EVERY_ROW}")
    assert rows.keys() == figures.all_rows()
    assert differences == []


class ScoreKey(NamedTuple):
    judge: str
    grading: str
    judge_trial: int
    task_id: str
    model: str
    trial: int
    vintage: str
    score_name: str
    category: str


def test_scores_are_equations_1_and_3_with_their_bounds(world, reader, figures):
    cell_of = itemgetter("task_id", "model", "trial", "vintage")
    sampled_cells = set(map(cell_of, world["responses"]))
    expected = {}
    for (run, task_id, label), score in product(figures.decisions, figures.scores):
        if label != ALL and label[0] != "category":
            continue
        responses = figures.responses(run, task_id, label, score) or {}
        for trial, figure in responses.items():
            if (task_id, run.model, trial, run.vintage) not in sampled_cells:
                continue
            key = ScoreKey(
                judge=run.judge,
                grading=run.grading,
                judge_trial=run.judge_trial,
                task_id=task_id,
                model=run.model,
                trial=trial,
                vintage=run.vintage,
                score_name=score,
                category=label[1],
            )
            expected[key] = {
                "value": figure.value,
                "value_lower": figure.lower,
                "value_upper": figure.upper,
                "n_decided": figure.n_decided,
                "n_wanted": figure.n_criteria,
                "coverage": figure.n_decided / figure.n_criteria,
                "is_complete": figure.n_decided == figure.n_criteria,
            }

    rows = reader.rows(
        "from (select *, '' as category from scores union all by name from category_scores)"
    )

    actual = {}
    for row in rows:
        actual[ScoreKey(*(row[name] for name in ScoreKey._fields))] = row
    assert actual.keys() == expected.keys()
    assert differing(expected, actual, 1e-12) == []
    assert any(row["value"] is not None and row["value"] < 0 for row in rows)
    assert any(row["value"] is None and row["n_decided"] for row in rows)


def test_each_repetition_is_scored_alone_over_the_tasks_complete_in_it(
    reader, figures
):
    expected = {}
    for key in figures.all_rows():
        for trial, (n_tasks, mean_score) in figures.trial_scores(*key).items():
            expected[*key, trial] = {"n_tasks": n_tasks, "mean_score": mean_score}

    rows = reader.rows("from trial_scores")

    actual = {(*figures.about(row), row["trial"]): row for row in rows}
    assert actual.keys() == expected.keys()
    assert differing(expected, actual) == []


# severities


def test_the_severity_leaderboard_pools_the_gravest_criteria(reader, figures, rows):
    actual = {
        figures.about(row | {"score_name": ""})[:2]: row
        for row in reader.rows("from severity_leaderboard")
    }
    expected = {}
    for run, task_set in actual:
        n_mistakes = mistakes_at_risk(figures, run, task_set)
        has_mistake = [n > 0 for n in n_mistakes]
        critical_row = rows[run, task_set, CRITICAL, "min_normalized"]
        critical = figures.row(critical_row)
        mistake_row = rows[run, task_set, MISTAKE, "min_normalized"]
        mistake = figures.row(mistake_row)
        expected[run, task_set] = {
            "n_responses_at_risk": len(n_mistakes) or None,
            "n_trials": len(figures.runs[run].trials),
            "responses_with_mistake_share": np.mean(has_mistake)
            if n_mistakes
            else None,
            "critical_met_share": critical["met_share"],
            "n_critical": critical["n_judged"],
            "n_tasks_critical": critical["n_tasks"],
            "critical_met_ci_low": critical_row["met_ci_low"],
            "critical_met_ci_high": critical_row["met_ci_high"],
            "critical_coverage": critical["coverage"],
            "mistake_share": mistake["met_share"],
            "n_mistakes_possible": mistake["n_judged"],
            "n_tasks_mistakes": mistake["n_tasks"],
            "mistake_ci_low": mistake_row["met_ci_low"],
            "mistake_ci_high": mistake_row["met_ci_high"],
            "mistake_coverage": mistake["coverage"],
        }

    assert actual.keys() == {key[:2] for key in rows}
    assert differing(expected, actual) == []


def mistakes_at_risk(figures: Figures, run: Any, task_set: Any) -> list[int]:
    """The number of mistakes in each response that could have one, if all of its possible mistakes
    are decided.
    """
    n_mistakes = []
    for task_id, trials in figures.known(
        run, task_set, MISTAKE, "min_normalized"
    ).items():
        for trial, (value, *_) in trials.items():
            if value is not None:
                n_mistakes.append(figures.decisions[run, task_id, MISTAKE][trial].met)
    return n_mistakes


# small cases


def test_models_with_equal_means_share_a_rank_whatever_tasks_give(published):
    rubrics = {task_id: [(1, "Risk")] * 10 for task_id in "abc"}
    boards = []
    for model, n_met in {"x": (0, 0, 3), "y": (1, 1, 1), "z": (0, 1, 2)}.items():
        decisions = {
            task_id: [1.0] * n + [0.0] * (10 - n)
            for task_id, n in zip(rubrics, n_met, strict=True)
        }
        boards.append(judged(decisions, model, rubrics=rubrics))

    reader = published(tasks_of(rubrics), *boards)

    ranks = reader.rows("select distinct rank from leaderboard where is_primary")
    assert ranks == [{"rank": 1}]


@pytest.fixture
def partly_judged(published: Fill) -> Reader:
    """Leaderboards of a judged model, which has a later vintage without verdicts, and of one that
    nobody judged.
    """
    rubrics = {"a": [(4, "Risk"), (-2, "Risk")], "b": [(4, "Risk"), (4, "Risk")]}
    later = response("a", "judged", vintage="later") | {"response_id": "later"}
    unjudged = [response("a", "imported"), response("b", "imported", 2), later]
    verdicts = judged({"a": [1, 0], "b": [1, 0]}, "judged", rubrics=rubrics)
    return published(tasks_of(rubrics), verdicts, {"responses": unjudged})


def test_a_vintage_that_nobody_judged_replaces_none(partly_judged):
    _, boards = partly_judged.table(
        "select model, vintage, is_judged, is_latest, rank, rank_high from leaderboard"
        " where is_primary order by all"
    )

    assert boards == [
        ("imported", "base", False, True, None, None),
        ("judged", "base", True, True, 1, 1),
    ]


def test_a_model_that_nobody_judged_is_on_the_leaderboard_without_a_score(
    partly_judged,
):
    (row,) = partly_judged.select("leaderboard", model="imported", is_primary=True)

    expected = {
        "n_tasks": 0,
        "n_tasks_full": 0,
        "n_tasks_wanted": 2,
        "n_trials": 2,
        "coverage": 0.0,
        "is_complete": False,
        "mean_score": None,
        "ci_low": None,
        "raw_mean_score": None,
        "latest_rank": None,
        # Every score is still possible: a from -0.5 to 1, b from 0 to 1; the lower end is clipped.
        "mean_lower": 0.0,
        "mean_upper": 1.0,
    }
    assert {name: row[name] for name in expected} == expected
    assert partly_judged.select("breakdown_leaderboard", model="imported") == []


class CorrelationKey(NamedTuple):
    """`model` is None for the models of the task set."""

    task_set: tuple[str, bool]
    judge: str
    grading: str
    judge_trial: int
    vintage: str
    model: str | None
    score: str
    measure: str


Lengths = dict[CorrelationKey, list[tuple[float, float]]]
"""Pairs of a score and a length."""


def rounded_mean(values: Iterable[float]) -> float:
    """A mean, rounded so that ties are equal."""
    numbers = list(values)
    return round(math.fsum(numbers) / len(numbers), 12)


@pytest.fixture(scope="module")
def correlations(reader: Reader) -> dict[CorrelationKey, Row]:
    rows = reader.rows("from length_correlations")
    names = (
        "judge",
        "grading",
        "judge_trial",
        "vintage",
        "model",
        "score_name",
        "measure",
    )
    by_key = {}
    for row in rows:
        task_set = (row["split"], row["is_own_hard"])
        by_key[CorrelationKey(task_set, *(row[name] for name in names))] = row
        assert (row["level"] == "models") == (row["model"] is None)
    assert len(by_key) == len(rows)
    return by_key


@pytest.fixture(scope="module")
def score_lengths(world: Rows, figures: Figures) -> Lengths:
    """The scores and lengths to correlate: of a model's tasks, over the trials that count, and of
    models.
    """
    cell_of = itemgetter("task_id", "model", "vintage", "trial")
    responses = {
        cell_of(sampled_row): sampled_row for sampled_row in world["responses"]
    }
    pairs = defaultdict(list)
    for run, task_set, score, measure in product(
        figures.runs,
        figures.sets,
        figures.scores,
        ("chars_alnum", "completion_tokens"),
    ):
        scores = []
        score_pairs = []
        for task_id, trials in figures.of_tasks(run, task_set, ALL, score).items():
            lengths = [
                responses[task_id, run.model, run.vintage, trial][measure]
                for trial in trials
            ]
            reported_lengths = [length for length in lengths if length is not None]
            if trials:
                scores.append(rounded_mean(trials.values()))
            if reported_lengths:
                score_pairs.append((scores[-1], rounded_mean(reported_lengths)))
        if score_pairs:
            judge_config = (run.judge, run.grading, run.judge_trial, run.vintage)
            key = CorrelationKey(task_set, *judge_config, run.model, score, measure)
            pairs[key] = score_pairs
            model_length = rounded_mean(length for _, length in score_pairs)
            key_of_models = key._replace(model=None)
            pairs[key_of_models].append((rounded_mean(scores), model_length))
    return pairs


def rank_correlation(pairs: list[tuple[float, float]]) -> float | None:
    """The rank correlation; the values are rounded, so ties are equal."""
    scores, lengths = zip(*pairs, strict=True)
    if len(set(scores)) == 1 or len(set(lengths)) == 1:
        return None
    with warnings.catch_warnings(action="ignore"):
        return float(stats.spearmanr(scores, lengths).statistic)


def test_the_correlation_is_that_of_scipy(score_lengths, correlations):
    expected = {}
    for key, pairs in score_lengths.items():
        expected[key] = {"n": len(pairs), "rank_correlation": rank_correlation(pairs)}

    assert correlations.keys() == expected.keys()
    assert differing(expected, correlations) == []


def test_a_correlation_has_fishers_interval_from_ten_on_none_below(correlations):
    expected = {}
    for key, row in correlations.items():
        correlation = row["rank_correlation"]
        expected[key] = {"is_small": row["n"] < 50, "ci_low": None, "ci_high": None}
        if (
            correlation is not None
            and row["n"] >= 10
            and abs(correlation) <= 1 - 1e-9
        ):
            centre = math.atanh(correlation)
            error = math.sqrt((1 + correlation**2 / 2) / (row["n"] - 3))
            half = NormalDist().inv_cdf(0.975) * error
            expected[key]["ci_low"] = math.tanh(centre - half)
            expected[key]["ci_high"] = math.tanh(centre + half)

    assert differing(expected, correlations) == []
    assert {row["ci_low"] is None for row in correlations.values()} == {True, False}
    assert {row["is_small"] for row in correlations.values()} == {True, False}
