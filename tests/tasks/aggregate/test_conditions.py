"""Conditions as stored tables: what aggregate stores, and what makes a test stale."""

import random
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tasks.aggregate import aggregate
from tests.kit import aggregated, combined, job_on, response, rows_in, values_in
from tests.tasks.compare.comparisons import Rubric, judged, tasks_of

RUBRICS: dict[str, Rubric] = {
    f"t{i:02d}": [(10, "Accuracy"), (6, "Risk"), (-5, "Risk")] for i in range(24)
}
MODELS = ("plain", "search", "tools", "other")
CONDITIONS = {
    "gpt": {"baseline": "plain", "web search": "search", "search and code": "tools"}
}
TWO = {"gpt": {"baseline": "plain", "web": "search"}}
DIFFERENCES = "select * from condition_differences order by all"


def decided(seed: int) -> dict[str, list[float]]:
    """Random verdicts on every criterion."""
    dice = random.Random(seed)
    decisions = {}
    for task_id, rubric in RUBRICS.items():
        decisions[task_id] = [float(dice.random() < 0.3 + 0.1 * seed) for _ in rubric]
    return decisions


@pytest.fixture(scope="module")
def measured_root(tmp_path_factory) -> Path:
    """Four models with verdicts on all tasks, without conditions."""
    boards = [
        judged(decided(seed), name, rubrics=RUBRICS)
        for seed, name in enumerate(MODELS)
    ]
    return aggregated(
        tmp_path_factory.mktemp("conditions") / "warehouse",
        combined(tasks_of(RUBRICS), *boards),
    ).root


@pytest.fixture
def root(measured_root: Path, tmp_path) -> Path:
    """A copy of that warehouse, which a test may change."""
    return Path(shutil.copytree(measured_root, tmp_path / "warehouse"))


def stored(root: Path) -> list[tuple[Any, ...]]:
    columns = "shared_model, condition, model, is_baseline"
    return values_in(
        root, f"select {columns} from conditions order by shared_model, position"
    )


def n_tested(root: Path, **settings: Any) -> int:
    """Return the number of differences that an aggregation tested."""
    line = aggregate(job_on("sample", root, **settings)).line
    return sum(map(int, re.findall(r"(\d+) difference", line)))


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        (
            {"web search": "search", "baseline": "plain"},
            [
                ("gpt", "baseline", "plain", True),
                ("gpt", "web search", "search", False),
            ],
        ),
        (
            {"low": "search", "high": "plain"},
            [("gpt", "low", "search", True), ("gpt", "high", "plain", False)],
        ),
    ],
)
def test_conditions_are_stored_with_the_baseline_first(root, conditions, expected):
    aggregate(job_on("sample", root, conditions={"gpt": conditions}))

    assert stored(root) == expected


def test_conditions_follow_the_configuration_and_stay_where_it_has_no_such_key(root):
    aggregate(
        job_on(
            "sample",
            root,
            conditions=CONDITIONS | {"gone": {"a": "plain", "b": "other"}},
        )
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
    root,
):
    n_figures = 2 * (1 + 2)  # two scores of the whole rubric and of two categories
    assert n_tested(root, conditions=CONDITIONS) == 2 * n_figures

    parts = sorted((root / "parts").rglob("*.parquet"))
    assert n_tested(root, conditions=CONDITIONS) == 0
    assert sorted((root / "parts").rglob("*.parquet")) == parts

    (root / "prbench.duckdb").unlink()
    assert n_tested(root, conditions=CONDITIONS) == 0

    wider = {"gpt": {**CONDITIONS["gpt"], "more": "other"}}
    assert n_tested(root, conditions=wider) == n_figures


def test_criteria_are_compared_by_the_mean_of_their_verdicts_in_complete_trials(
    tmp_path,
):
    rubrics = {
        "t": [(8, "Accuracy"), (-4, "Risk"), (2, "Risk")],
        "u": [(5, "Accuracy")],
    }
    trials = [
        judged({"t": [0, 0, 1], "u": [1]}, "plain", rubrics=rubrics, trial=1),
        judged({"t": [0, 1, 1], "u": [None]}, "plain", rubrics=rubrics, trial=2),
        judged({"t": [1, 1, None], "u": [None]}, "search", rubrics=rubrics, trial=1),
        judged({"t": [1, 0, 1], "u": [None]}, "search", rubrics=rubrics, trial=2),
    ]

    aggregated(tmp_path, combined(tasks_of(rubrics), *trials), conditions=TWO)

    columns = "criterion_id, baseline_value, value, points, is_changed, baseline_by_trial, by_trial"
    query = f"select {columns} from condition_criteria order by task_id, criterion_id"
    assert values_in(tmp_path, query) == [
        ("t-c0", 0.0, 1.0, 8.0, True, [0.0, 0.0], [1.0]),
        ("t-c1", 0.5, 0.0, 2.0, True, [0.0, 1.0], [0.0]),
        ("t-c2", 1.0, 1.0, 0.0, False, [1.0, 1.0], [1.0]),
    ]


def test_responses_are_measured_on_tasks_with_both_responses_and_failures_on_all(
    tmp_path,
):
    rubrics = {name: [(8, "Accuracy")] for name in "abc"}
    plain = judged({"a": [1], "b": [1], "c": [1]}, "plain", rubrics=rubrics)
    search = judged({"a": [1], "b": [1]}, "search", rubrics=rubrics)
    measured = ("chars_alnum", "completion_tokens", "cost_usd", "latency_s")
    responses = [*plain["responses"], *search["responses"]]
    values = [
        (100, 10, 1.0, 2.0),
        (200, 20, None, 2.0),
        (900, 90, 9.0, 9.0),
        (300, None, 4.0, 6.0),
        (500, 30, 2.0, None),
    ]
    for sampled, measures in zip(responses, values, strict=True):
        sampled.update(zip(measured, measures, strict=True))
    search["responses"].append(
        response("c", "search", status="timeout", cost_usd=5.0)
    )

    aggregated(tmp_path, combined(tasks_of(rubrics), plain, search), conditions=TWO)

    (row,) = rows_in(
        tmp_path,
        "from condition_differences where breakdown = 'all' and score_name = 'score'",
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
    assert {name: row[name] for name in means} == means
    assert row["ci_low"] is None
    assert row["p_value"] is None
    assert row["difference"] == 0.0
