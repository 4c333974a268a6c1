"""Conditions as stored tables: what aggregate stores, and what makes a test stale."""

import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tasks.aggregate import aggregate
from tests.kit import aggregated, combined, job_on, rows_in, values_in
from tests.tasks.compare.comparisons import Rubric, judged, tasks_of

RUBRICS: dict[str, Rubric] = {
    f"t{i:02d}": [(10, "Accuracy"), (6, "Risk"), (-5, "Risk")] for i in range(24)
}
MODELS = ("plain", "search", "tools", "other")
CONDITIONS = {
    "gpt": {
        "baseline": "plain",
        "web search": "search",
        "search and code": "tools",
    }
}
TWO = {"gpt": {"baseline": "plain", "web": "search"}}
DIFFERENCES = "select * from condition_differences order by all"


def decided(seed: int) -> dict[str, list[float]]:
    """Random verdicts on every criterion."""
    dice = random.Random(seed)
    return {
        task: [float(dice.random() < 0.3 + 0.1 * seed) for _ in rubric]
        for task, rubric in RUBRICS.items()
    }


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four models with verdicts on all tasks, without conditions."""
    of_models = [judged(decided(seed), name, rubrics=RUBRICS) for seed, name in enumerate(MODELS)]
    return aggregated(
        tmp_path_factory.mktemp("conditions") / "warehouse", combined(tasks_of(RUBRICS), *of_models)
    ).root


@pytest.fixture
def root(published: Path, tmp_path: Path) -> Path:
    """A copy of that warehouse, which a test may change."""
    return Path(shutil.copytree(published, tmp_path / "warehouse"))


def stored(root: Path) -> list[tuple[Any, ...]]:
    columns = "shared_model, condition, model, is_baseline"
    return values_in(root, f"select {columns} from conditions order by shared_model, position")


def n_tested(root: Path, **settings: Any) -> int:
    """Return the number of differences that an aggregation tested."""
    return sum(
        map(
            int, re.findall(r"(\d+) difference", aggregate(job_on("sample", root, **settings)).line)
        )
    )


@pytest.mark.parametrize(("search", "plain"), [("web search", "baseline"), ("low", "high")])
def test_conditions_are_stored_with_the_baseline_first(root: Path, search: str, plain: str) -> None:
    aggregate(job_on("sample", root, conditions={"gpt": {search: "search", plain: "plain"}}))

    first, second = [(search, "search"), (plain, "plain")][:: -1 if plain == "baseline" else 1]
    assert [("gpt", *first, True), ("gpt", *second, False)] == stored(root)


def test_conditions_follow_the_configuration_and_stay_where_it_has_no_such_key(root: Path) -> None:
    aggregate(
        job_on("sample", root, conditions=CONDITIONS | {"gone": {"a": "plain", "b": "other"}})
    )
    aggregate(job_on("sample", root))
    assert {row[0] for row in stored(root)} == {"gpt", "gone"}

    aggregate(job_on("sample", root, conditions=CONDITIONS))
    assert {row[0] for row in stored(root)} == {"gpt"}
    assert {row["shared_model"] for row in rows_in(root, DIFFERENCES)} == {"gpt"}

    aggregate(job_on("sample", root, conditions={}))
    assert stored(root) == []
    assert rows_in(root, DIFFERENCES) == []


def test_a_finished_aggregation_tests_nothing_again_and_a_new_condition_only_itself(
    root: Path,
) -> None:
    n_figures = 2 * (1 + 2)  # two scores of the whole rubric and of two categories
    assert 2 * n_figures == n_tested(root, conditions=CONDITIONS)
    n_parts = len(list((root / "parts").rglob("*.parquet")))
    assert n_tested(root, conditions=CONDITIONS) == 0
    assert n_parts == len(list((root / "parts").rglob("*.parquet")))
    (root / "prbench.duckdb").unlink()
    assert n_tested(root, conditions=CONDITIONS) == 0

    more = {"gpt": {**CONDITIONS["gpt"], "more": "other"}}
    assert n_figures == n_tested(root, conditions=more)


def test_criteria_are_compared_by_the_mean_of_their_verdicts_in_complete_trials(
    tmp_path: Path,
) -> None:
    rubrics: dict[str, Rubric] = {
        "t": [(8, "Accuracy"), (-4, "Risk"), (2, "Risk")],
        "u": [(5, "Accuracy")],
    }
    of_t = {"plain": ([0, 0, 1], [0, 1, 1]), "search": ([1, 1, None], [1, 0, 1])}
    trials = [
        judged(
            {"t": values, "u": [1 if (model, trial) == ("plain", 1) else None]},
            model,
            rubrics=rubrics,
            trial=trial,
        )
        for model, of in of_t.items()
        for trial, values in enumerate(of, start=1)
    ]
    aggregated(tmp_path, combined(tasks_of(rubrics), *trials), conditions=TWO)

    columns = "criterion_id, baseline_value, value, points, is_changed, baseline_by_trial, by_trial"
    assert values_in(
        tmp_path, f"select {columns} from condition_criteria order by task_id, criterion_id"
    ) == [
        ("t-c0", 0.0, 1.0, 8.0, True, [0.0, 0.0], [1.0]),
        ("t-c1", 0.5, 0.0, 2.0, True, [0.0, 1.0], [0.0]),
        ("t-c2", 1.0, 1.0, 0.0, False, [1.0, 1.0], [1.0]),
    ]


def test_responses_are_measured_on_tasks_with_both_responses_and_failures_on_all(
    tmp_path: Path,
) -> None:
    rubrics: dict[str, Rubric] = {name: [(8, "Accuracy")] for name in "abc"}
    plain, search = (
        judged({t: [1] for t in "abc"}, model, rubrics=rubrics) for model in ("plain", "search")
    )
    facts = {
        ("a", "plain"): {
            "chars_alnum": 100,
            "completion_tokens": 10,
            "cost_usd": 1.0,
            "latency_s": 2.0,
        },
        ("a", "search"): {
            "chars_alnum": 300,
            "completion_tokens": None,
            "cost_usd": 4.0,
            "latency_s": 6.0,
        },
        ("b", "plain"): {
            "chars_alnum": 200,
            "completion_tokens": 20,
            "cost_usd": None,
            "latency_s": 2.0,
        },
        ("b", "search"): {
            "chars_alnum": 500,
            "completion_tokens": 30,
            "cost_usd": 2.0,
            "latency_s": None,
        },
        ("c", "plain"): {
            "chars_alnum": 900,
            "completion_tokens": 90,
            "cost_usd": 9.0,
            "latency_s": 9.0,
        },
        ("c", "search"): {
            "status": "timeout",
            "text": None,
            "cost_usd": 5.0,
        },
    }
    for each in (*plain["responses"], *search["responses"]):
        each.update(facts[each["task_id"], each["model"]])
    search["verdicts"] = [each for each in search["verdicts"] if each["task_id"] != "c"]
    aggregated(tmp_path, combined(tasks_of(rubrics), plain, search), conditions=TWO)

    (row,) = rows_in(
        tmp_path, "from condition_differences where breakdown = 'all' and score_name = 'score'"
    )
    means = {
        "n_tasks": 2,
        "n_tasks_wanted": 3,
        "n_tasks_with_response": 2,
        "n_responses": 3,
        "baseline_n_responses": 3,
        "n_failed": 1,
        "baseline_n_failed": 0,
        "n_unpriced": 0,
        "baseline_n_unpriced": 1,
        "baseline_mean_chars_alnum": 150.0,
        "mean_chars_alnum": 400.0,
        "baseline_mean_completion_tokens": 20.0,
        "mean_completion_tokens": 30.0,
        "baseline_mean_cost_usd": 1.0,
        "mean_cost_usd": 4.0,
        "baseline_mean_latency_s": 2.0,
        "mean_latency_s": 6.0,
    }
    assert means == {name: row[name] for name in means}
    assert row["ci_low"] is None
    assert row["p_value"] is None
    assert row["difference"] == 0.0
