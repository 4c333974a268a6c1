"""Leaderboards by label, trial and severity, and correlations with length, against an independent
checker.
"""

import math
import warnings
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import product
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from scipy import stats

import sql
from tests.kit import Fill, Rows, differing, response
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
GRAVEST = {"critical": "critically important", "mistake": "critically detrimental"}
Table = dict[Any, dict[str, Any]]


@pytest.fixture(scope="module")
def rows(reader: Reader, figures: Figures) -> Table:
    """The rows of all leaderboards, by model run, task set, label and score."""
    return {figures.about(each): each for each in reader.rows(EVERY_ROW)}


def test_the_world_holds_every_case_that_the_comparison_is_about(
    world: Rows, rows: Table, figures: Figures
) -> None:
    means = [(about, each) for about, each in rows.items() if each["mean_score"] is not None]

    assert {label[0] for _, _, label, _ in rows} == BREAKDOWNS
    assert {0, 1, 2} <= {each["n_tasks"] for each in rows.values()}
    assert any(each["is_complete"] and each["n_tasks"] > 1 for _, each in means)
    assert any(
        0 < each["n_tasks_full"] < each["n_tasks"] == each["n_tasks_wanted"] for _, each in means
    )
    assert any(
        about[-1] == "score" and each["mean_score"] == 0 and each["n_tasks"] > 10
        for about, each in means
    )
    assert {each["ci_low"] is None for _, each in means} == {True, False}
    assert {each["trials_mean"] is None for _, each in means} == {True, False}
    assert {each["is_latest"] for _, each in means} == {True, False}
    assert {(1, 1), (1, 2)} <= {(each["rank_low"], each["rank_high"]) for _, each in means}
    assert any(each["rank"] != each["latest_rank"] for _, each in means if each["is_latest"])
    assert {0, 2} <= {len(task["decision_types"]) for task in world["task_rows"]}
    assert any(each["task_id"] == REFUSED for each in world["responses"])
    assert {("people", 1), ("judge-b", 3)} <= {
        (run[3], len(trials)) for run, (trials, *_) in figures.runs.items()
    }
    assert {("ternary", 1), ("ternary_as_binary", 1), ("binary", 3)} <= {
        run[6:] for run in figures.runs
    }


def test_every_row_and_figure_is_that_of_the_independent_checker(
    reader: Reader, figures: Figures, rows: Table
) -> None:
    assert len(rows) == reader.value(f"select count(*) {EVERY_ROW}")
    assert figures.all_rows() == rows.keys()
    assert [wrong for each in rows.values() for wrong in figures.compared(each)[1]] == []


def test_scores_are_equations_1_and_3_with_their_bounds(
    world: Rows, reader: Reader, figures: Figures
) -> None:
    there = {
        tuple(each[name] for name in ("task_id", "model", "trial", "vintage"))
        for each in world["responses"]
    }
    actual_rows = reader.rows(
        "from (select *, '' as category from scores union all by name from category_scores)"
    )
    names = (
        "judge",
        "grading",
        "judge_trial",
        "task_id",
        "model",
        "trial",
        "vintage",
        "score_name",
        "category",
    )
    actual = {tuple(row[name] for name in names): row for row in actual_rows}
    wanted = {
        (run[3], *run[6:], task, run[0], trial, run[2], score, label[1]): {
            "value": value,
            "value_lower": low,
            "value_upper": high,
            "n_decided": n_decided,
            "n_wanted": n_wanted,
            "coverage": n_decided / n_wanted,
            "is_complete": n_decided == n_wanted,
        }
        for run, task, label in figures.sums
        if label == ALL or label[0] == "category"
        for score in figures.scores
        for trial, known in (figures.responses(run, task, label, score) or {}).items()
        if (task, run[0], trial, run[2]) in there
        for value, low, high, n_decided, n_wanted in [known]
    }

    assert wanted.keys() == actual.keys()
    assert differing(wanted, actual, 1e-12) == []
    assert any(row["value"] is not None and row["value"] < 0 for row in actual_rows)
    assert any(row["value"] is None and row["n_decided"] for row in actual_rows)


def test_each_repetition_is_scored_alone_over_the_tasks_complete_in_it(
    reader: Reader, figures: Figures
) -> None:
    actual = {
        (*figures.about(each), each["trial"]): each for each in reader.rows("from trial_scores")
    }
    of_trials = ((about, figures.trial_scores(*about)) for about in figures.all_rows())
    wanted = {
        (*about, trial): dict(zip(("n_tasks", "mean_score"), of, strict=True))
        for about, trials in of_trials
        for trial, of in trials.items()
    }

    assert wanted.keys() == actual.keys()
    assert differing(wanted, actual) == []


# severities


def test_the_severity_leaderboard_pools_the_gravest_criteria(
    reader: Reader, figures: Figures, rows: Table
) -> None:
    actual = {
        figures.about({**each, "score_name": ""})[:2]: each
        for each in reader.rows("from severity_leaderboard")
    }
    wanted: dict[Any, Mapping[str, Any]] = {}
    for run, task_set in actual:
        n_mistakes = mistakes_at_risk(figures, run, task_set)
        wanted[run, task_set] = {
            "n_responses_at_risk": len(n_mistakes) or None,
            "n_trials": len(figures.runs[run][0]),
            "responses_with_mistake_share": (
                np.mean([n > 0 for n in n_mistakes]) if n_mistakes else None
            ),
        }
        for side, share, n_judged, n_tasks in (
            ("critical", "critical_met", "n_critical", "n_tasks_critical"),
            ("mistake", "mistake", "n_mistakes_possible", "n_tasks_mistakes"),
        ):
            shown = rows[run, task_set, ("severity", GRAVEST[side]), "min_normalized"]
            figure = figures.row(shown)
            wanted[run, task_set] |= {
                f"{share}_share": figure["met_share"],
                n_judged: figure["n_judged"],
                n_tasks: figure["n_tasks"],
                f"{share}_ci_low": shown["met_ci_low"],
                f"{share}_ci_high": shown["met_ci_high"],
                f"{side}_coverage": figure["coverage"],
            }

    assert {about[:2] for about in rows} == actual.keys()
    assert differing(wanted, actual) == []


def mistakes_at_risk(figures: Figures, run: Any, task_set: Any) -> list[int]:
    """The number of mistakes in each response that could have one, if all of its possible mistakes
    are decided.
    """
    label = ("severity", GRAVEST["mistake"])
    known = figures.known(run, task_set, label, "min_normalized").items()
    decided = [
        (task, trial)
        for task, trials in known
        for trial, (value, *_) in trials.items()
        if value is not None
    ]
    return [figures.sums[run, task, label][trial][2] for task, trial in decided]


# small cases


def test_models_with_equal_means_share_a_rank_whatever_tasks_give(published: Fill) -> None:
    rubrics = {task: [(1, "Risk")] * 10 for task in "abc"}
    n_met = {
        "x": (0, 0, 3),
        "y": (1, 1, 1),
        "z": (0, 1, 2),
    }
    decided = {
        m: {t: [1.0] * n + [0.0] * (10 - n) for t, n in zip("abc", of, strict=True)}
        for m, of in n_met.items()
    }
    reader = published(
        tasks_of(rubrics), *(judged(of, model, rubrics=rubrics) for model, of in decided.items())
    )
    assert reader.table("select distinct rank from leaderboard where is_primary")[1] == [(1,)]


def test_a_model_that_nobody_judged_is_on_the_leaderboard_and_such_a_vintage_replaces_none(
    published: Fill,
) -> None:
    rubrics = {"a": [(4, "Risk"), (-2, "Risk")], "b": [(4, "Risk"), (4, "Risk")]}
    later = response("a", "judged", vintage="later") | {"response_id": "later"}
    unjudged = {"responses": [response("a", "imported"), response("b", "imported", 2), later]}
    reader = published(
        tasks_of(rubrics), judged({"a": [1, 0], "b": [1, 0]}, "judged", rubrics=rubrics), unjudged
    )

    rows = {
        (row["model"], row["vintage"]): row
        for row in reader.rows("from leaderboard where is_primary")
    }
    assert rows.keys() == {("judged", "base"), ("imported", "base")}
    scored = rows["judged", "base"]
    imported = rows["imported", "base"]
    assert tuple(scored[name] for name in ("rank", "rank_high", "is_judged", "is_latest")) == (
        1,
        1,
        True,
        True,
    )
    names = (
        "n_tasks",
        "n_tasks_full",
        "n_tasks_wanted",
        "n_trials",
        "coverage",
        "is_judged",
        "is_complete",
    )
    assert tuple(imported[name] for name in names) == (0, 0, 2, 2, 0.0, False, False)
    assert imported["is_latest"]
    assert {
        imported[name] for name in ("mean_score", "ci_low", "raw_mean_score", "rank", "latest_rank")
    } == {None}
    # Every score is still possible: a from -0.5 to 1, b from 0 to 1; the lower end is clipped.
    assert imported["mean_lower"] == 0.0
    assert imported["mean_upper"] == 1.0
    assert reader.value("select count(*) from breakdown_leaderboard where model = 'imported'") == 0


def test_what_an_equation_takes_from_its_definition_is_read_in_one_place() -> None:
    texts = {path.stem: path.read_text() for path in sql.FOLDER.rglob("*.sql")}
    del texts["all_scores"]  # lists the definitions
    files = {
        "denominator_positive": "score_bounds",
        "clips_mean": "breakdown_sizes",
        "points + offset_points": "macros",
    }

    for factor, file in files.items():
        assert [name for name, text in texts.items() if factor in text] == [file]


_KEY = ("judge", "grading", "judge_trial", "vintage", "model", "score_name", "measure")
MEASURES = ("chars_alnum", "completion_tokens")
Key = tuple[Any, ...]
"""Task set, judge, vintage, model (None for the models of the task set), score, measure."""


def mean(values: Iterable[float]) -> float:
    """A mean, rounded so that ties are equal."""
    listed = list(values)
    return round(math.fsum(listed) / len(listed), 12)


@pytest.fixture(scope="module")
def correlations(reader: Reader) -> dict[Key, dict[str, Any]]:
    rows = reader.rows("from length_correlations")
    result = {
        ((each["split"], each["is_own_hard"]), *(each[name] for name in _KEY)): each
        for each in rows
    }
    assert len(rows) == len(result)
    assert [each for each in rows if (each["level"] == "models") != (each["model"] is None)] == []
    return result


@pytest.fixture(scope="module")
def wanted(world: Rows, figures: Figures) -> dict[Key, list[tuple[float, float]]]:
    """The (score, length) pairs to correlate: of a model's tasks, over the trials that count, and
    of models.
    """
    responses = {
        (each["task_id"], each["model"], each["vintage"], each["trial"]): each
        for each in world["responses"]
    }
    result: dict[Key, list[tuple[float, float]]] = defaultdict(list)
    for run, task_set, score, measure in product(
        figures.runs, figures.sets, figures.scores, MEASURES
    ):
        model, _, vintage, judge, _, _, *grading = run
        scores = []
        known = []
        for task, trials in figures.of_tasks(run, task_set, ALL, score)[0].items():
            lengths = [
                of
                for trial in trials
                if (of := responses[task, model, vintage, trial][measure]) is not None
            ]
            scores += [mean(trials.values())] if trials else []
            known += [(mean(trials.values()), mean(lengths))] if lengths else []
        if known:
            result[task_set, judge, *grading, vintage, model, score, measure] = known
            of_model = mean(scores), mean(length for _, length in known)
            result[task_set, judge, *grading, vintage, None, score, measure].append(of_model)
    return result


def spearman(pairs: list[tuple[float, float]]) -> float | None:
    """The rank correlation; the values are rounded, so ties are equal."""
    scores, lengths = zip(*pairs, strict=True)
    if len(set(scores)) == 1 or len(set(lengths)) == 1:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranks = [
            [sorted(set(values)).index(value) for value in values] for values in (scores, lengths)
        ]
        return float(stats.spearmanr(*ranks).statistic)


def test_the_correlation_is_that_of_scipy(
    wanted: dict[Key, list[tuple[float, float]]], correlations: dict[Key, dict[str, Any]]
) -> None:
    expected = {
        key: {"n": len(pairs), "rank_correlation": spearman(pairs)} for key, pairs in wanted.items()
    }

    assert expected.keys() == correlations.keys()
    assert differing(expected, correlations) == []


def test_a_correlation_has_fishers_interval_from_ten_on_none_below(
    correlations: dict[Key, dict[str, Any]],
) -> None:
    assert {result["ci_low"] is None for result in correlations.values()} == {True, False}
    for result in correlations.values():
        rho = result["rank_correlation"]
        n = result["n"]
        assert (n < 50) == result["is_small"]
        if rho is None or n < 10 or abs(rho) > 1 - 1e-9:
            assert result["ci_low"] is None
            assert result["ci_high"] is None
        else:
            half = NormalDist().inv_cdf(0.975) * math.sqrt((1 + rho**2 / 2) / (n - 3))
            ends = [math.tanh(math.atanh(rho) - half), math.tanh(math.atanh(rho) + half)]
            assert pytest.approx(ends, abs=1e-9) == [result["ci_low"], result["ci_high"]]
