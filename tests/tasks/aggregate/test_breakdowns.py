"""Leaderboards under labels, repetitions and severities, against exact fractions and against completions."""

import random
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pytest
from scipy import stats

from tests.kit import Rows, aggregated, answered, are_close, differing, rubric_of
from tests.tasks.aggregate.breakdowns_oracle import (
    BEST,
    EVERY_ROW,
    MODELS,
    REFUSED,
    TASK_SETS,
    WHOLE,
    WORST,
    Key,
    Oracle,
    breakdowns_world,
    completed,
    rows_of,
)
from warehouse import Reader

"""Resampled sums are 32-bit products, which some processors round otherwise in another place of the matrix."""
BREAKDOWNS = {
    "all", "category", "topic", "expert", "turns", "decision_type", "economic_pathway", "severity", "reference_texts",
    "subset",
}  # fmt: skip
GRAVEST = {"critical": "critically important", "mistake": "critically detrimental"}
Table = dict[Key, dict[str, Any]]


@pytest.fixture(scope="module")
def oracle() -> Oracle:
    return Oracle(breakdowns_world(seed=20260301))


@pytest.fixture(scope="module")
def reader(oracle: Oracle, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    with aggregated(tmp_path_factory.mktemp("breakdowns"), rows_of(oracle.world)).reader() as opened:
        yield opened


@pytest.fixture(scope="module")
def leaderboard_rows(reader: Reader) -> Table:
    """The rows of both leaderboards, the whole task set under breakdown `all`."""
    return by_key(reader, EVERY_ROW)


def by_key(reader: Reader, query: str) -> Table:
    rows = reader.rows(query)
    found = {
        (each["split"], each["model"], each["breakdown"], each["label"], each["score_name"]): each for each in rows
    }
    assert len(rows) == len(found)
    return found


def test_the_world_holds_every_case_that_the_comparison_is_about(oracle: Oracle) -> None:
    figures = {key: oracle.figure(key) for key in oracle.all_keys}
    means = [(key, figure) for key, figure in figures.items() if figure.mean_score is not None]

    assert {key[2] for key in figures} == BREAKDOWNS
    assert {0, 1, 2} <= {figure.n_tasks for figure in figures.values()}
    assert any(figure.is_complete and figure.n_tasks > 1 for _, figure in means)
    assert any(0 < figure.n_tasks_full < figure.n_tasks == figure.n_tasks_wanted for _, figure in means)
    assert any(key[-1] == "score" and figure.mean_score == 0 and figure.n_tasks > 10 for key, figure in means)
    assert any(len(task.decision_types) > 1 for task in oracle.world.tasks.values())
    assert any(not task.decision_types for task in oracle.world.tasks.values())
    assert any(cell[0] == REFUSED for cell in oracle.world.responses)


def test_every_label_has_a_row_for_every_model_that_answered_under_it_and_no_other(
    oracle: Oracle, leaderboard_rows: Table
) -> None:
    assert oracle.all_keys == sorted(leaderboard_rows)


def test_a_row_is_the_paper_s_equations_over_the_tasks_under_its_label(oracle: Oracle, leaderboard_rows: Table) -> None:
    assert [] == differing({key: vars(oracle.figure(key)) for key in oracle.all_keys}, leaderboard_rows)


def test_scores_are_equations_1_and_3_with_the_bounds_of_open_criteria(oracle: Oracle, reader: Reader) -> None:
    cells = [cell for cell in oracle.world.responses if cell[0] != REFUSED]
    wanted = {
        (*cell, name, category): {
            "value": known.value[name], "value_lower": known.lower[name], "value_upper": known.upper[name],
            "n_decided": known.n_decided, "n_wanted": known.n_wanted, "coverage": known.n_decided / known.n_wanted,
            "is_complete": known.n_decided == known.n_wanted,
        }
        for cell in cells
        for category in {"", *(each.category or "(none)" for each in oracle.world.tasks[cell[0]].rubric)}
        for known in [oracle.known(cell, ("category", category) if category else WHOLE)]
        for name in known.lower
    }  # fmt: skip
    rows = reader.rows("from (select *, '' as category from scores union all by name from category_scores)")
    actual = {tuple(row[name] for name in ("task_id", "model", "trial", "score_name", "category")): row for row in rows}

    assert wanted.keys() == actual.keys()
    assert [] == differing(wanted, actual, 1e-12)
    assert any(row["value"] is not None and row["value"] < 0 for row in rows)
    assert any(row["value"] is None and row["n_decided"] for row in rows)


def means_of(found: Oracle, keys: list[Key]) -> dict[Key, float]:
    return {key: float(found.figure(key).mean_score or 0) for key in keys}


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_whatever_the_undecided_comes_to_the_mean_lies_within_its_bounds(
    oracle: Oracle, leaderboard_rows: Table, seed: int
) -> None:
    means = means_of(Oracle(completed(oracle.world, random.Random(seed))), oracle.all_keys)

    assert [] == [
        (key, mean, leaderboard_rows[key]["mean_lower"], leaderboard_rows[key]["mean_upper"])
        for key, mean in means.items()
        if not leaderboard_rows[key]["mean_lower"] - 1e-12 <= mean <= leaderboard_rows[key]["mean_upper"] + 1e-12
    ]


@pytest.mark.parametrize(("bound", "fill"), [("mean_lower", WORST), ("mean_upper", BEST)])
def test_the_bounds_are_reached_by_what_can_still_happen(
    oracle: Oracle, leaderboard_rows: Table, bound: str, fill: dict[str, int]
) -> None:
    means = means_of(Oracle(completed(oracle.world, fill)), oracle.all_keys)

    assert [] == [(key, mean) for key, mean in means.items() if not are_close(mean, leaderboard_rows[key][bound])]


@pytest.mark.parametrize("figure", ["rank", "n_tasks_ranked"])
def test_ranks_under_a_label_compare_the_tasks_with_a_complete_trial_for_every_ranked_model(
    oracle: Oracle, leaderboard_rows: Table, figure: str
) -> None:
    wanted: dict[Key, dict[str, int | None]] = {}
    for task_set, _, *rest in oracle.all_keys:
        values = {model: oracle.task_values((task_set, model, *rest)) for model in MODELS}
        fullest = max(map(len, values.values()))
        ranked = {model: of_model for model, of_model in values.items() if of_model and 2 * len(of_model) >= fullest}
        shared = set.intersection(*map(set, ranked.values())) if ranked else set()
        means = {model: sum(of_model[task] for task in shared) for model, of_model in ranked.items() if shared}
        for model in MODELS:
            rank = 1 + sum(other > means[model] for other in means.values()) if model in means else None
            wanted[task_set, model, *rest] = {"rank": rank, "n_tasks_ranked": len(shared) if rank else None}

    assert [] == [
        (key, wanted[key][figure], row[figure])
        for key, row in leaderboard_rows.items()
        if wanted[key][figure] != row[figure]
    ]


# repetitions


def test_each_repetition_is_scored_alone_over_the_tasks_complete_in_it(oracle: Oracle, reader: Reader) -> None:
    columns = ("split", "model", "breakdown", "label", "score_name", "trial")
    actual = {tuple(each[name] for name in columns): each for each in reader.rows("from trial_scores")}
    wanted = {
        (*key, trial): {"n_tasks": n_tasks, "mean_score": score}
        for key in oracle.all_keys
        for trial, (n_tasks, score) in oracle.trial_scores(key).items()
    }

    assert wanted.keys() == actual.keys()
    assert [] == differing(wanted, actual)


def test_the_mean_over_repetitions_of_the_same_tasks_has_the_interval_of_students_t(
    oracle: Oracle, leaderboard_rows: Table
) -> None:
    wanted = {}
    for key in oracle.all_keys:
        scores = [float(score) for _, score in oracle.trial_scores(key).values()]
        found: list[float | None] = [None] * 3
        if scores and oracle.n_full(key) == len(oracle.trial_values(key)):
            centre, half = sum(scores) / len(scores), stats.t.ppf(0.975, len(scores) - 1) * stats.sem(scores)
            found = [centre, centre - half, centre + half]
        wanted[key] = dict(zip(("trials_mean", "trials_ci_low", "trials_ci_high"), found, strict=True))

    assert [] == differing(wanted, leaderboard_rows)
    assert 0 < sum(found["trials_mean"] is not None for found in wanted.values()) < len(oracle.all_keys) / 2


# severities


def test_the_severity_leaderboard_pools_the_gravest_criteria_and_counts_responses_with_a_mistake(
    oracle: Oracle, reader: Reader, leaderboard_rows: Table
) -> None:
    actual = {(each["split"], each["model"]): each for each in reader.rows("from severity_leaderboard")}
    wanted: dict[tuple[str, str], dict[str, Any]] = {}
    for task_set, model in product(TASK_SETS, MODELS):
        at_risk = responses_at_risk(oracle, task_set, model)
        wanted[task_set, model] = {
            "n_responses_at_risk": len(at_risk), "n_trials": len(MODELS[model]),
            "responses_with_mistake_share": sum(n > 0 for n in at_risk) / len(at_risk),
        }  # fmt: skip
        for side, share, n_judged, n_tasks in (
            ("critical", "critical_met", "n_critical", "n_tasks_critical"),
            ("mistake", "mistake", "n_mistakes_possible", "n_tasks_mistakes"),
        ):
            key = (task_set, model, "severity", GRAVEST[side], "min_normalized")
            figure, shown = oracle.figure(key), leaderboard_rows[key]
            wanted[task_set, model] |= {
                f"{share}_share": figure.met_share, f"{share}_ci_low": shown["met_ci_low"],
                f"{share}_ci_high": shown["met_ci_high"], n_judged: figure.n_judged, n_tasks: figure.n_tasks,
                f"{side}_coverage": figure.coverage,
            }  # fmt: skip

    assert wanted.keys() == actual.keys()
    assert [] == differing(wanted, actual)


def responses_at_risk(oracle: Oracle, task_set: str, model: str) -> list[int]:
    """The mistakes in each response that could have one and is decided on all of them."""
    label = ("severity", GRAVEST["mistake"])
    known = [
        oracle.known((task, model, trial), label)
        for task in oracle.tasks_on(task_set)
        if oracle.part(task, label)
        for trial in MODELS[model]
    ]
    return [each.n_met for each in known if each.n_decided == each.n_wanted]


# small cases


def test_models_with_equal_means_share_a_rank_whatever_tasks_give(published: Callable[[Rows], Reader]) -> None:
    tables = rubric_of({"a": [1] * 10, "b": [1] * 10, "c": [1] * 10})
    for model, met in {"x": (0, 0, 3), "y": (1, 1, 1), "z": (0, 1, 2)}.items():
        decisions = {task: [1.0] * n + [0.0] * (10 - n) for task, n in zip("abc", met, strict=True)}
        answered(tables, decisions, model=model)
    reader = published(tables)

    rows = reader.rows("select model, rank, mean_score from leaderboard where is_primary order by model")

    assert [1, 1, 1] == [each["rank"] for each in rows], rows
