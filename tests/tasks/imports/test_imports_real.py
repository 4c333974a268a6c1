"""The real graded rows of three models, against means that are counted from the raw files in plain Python."""

import json
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tasks.aggregate import aggregate
from tasks.check import check
from tasks.imports.responses import import_responses
from tasks.imports.verdicts import import_verdicts
from tasks.ingest import ingest
from tests.kit import SHARED_DATA, job_on
from tests.kit import values_in as rows

FILES = {name: SHARED_DATA / "prbench" / file for name, file in {
    "tasks": "finance_hard.parquet",
    "responses": "responses_finance_hard_3models.jsonl",
    "verdicts": "verdicts_finance_hard_3models.jsonl",
}.items()}  # fmt: skip
POLICIES = {"default": {}, "lenient": {"criteria_per_task": "warn"}}
N_TASKS = {"default": 95, "lenient": 100}
REFUSED = {"default": [("criteria_per_task", 7)], "lenient": []}
TOLERANCE = 1e-9

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(file.is_file() for file in FILES.values()), reason="real data are not beside the checkout"
    ),
]


def lines_of(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def rubrics() -> dict[str, list[tuple[str, float, str]]]:
    """Task -> (criterion id, weight, category), from the raw Parquet."""
    return {
        row["task"]: [
            (item["id"], notes[notes["weight_class"].replace(" ", "_") + "_weight"], notes["criteria_category"])
            for item in row["rubric"]
            for notes in [item["annotations"]]
        ]
        for row in pq.read_table(FILES["tasks"], columns=["task", "rubric"]).to_pylist()
    }


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with the real tasks, responses and verdicts, not yet checked."""
    root = tmp_path_factory.mktemp("real")
    job = job_on(FILES["tasks"], root)
    ingest(job)
    import_responses(job, FILES["responses"])
    import_verdicts(job, FILES["verdicts"])
    return root


@pytest.fixture(scope="module", params=POLICIES)
def board(request: pytest.FixtureRequest, imported: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The policy, and the warehouse checked and aggregated under it."""
    root = Path(shutil.copytree(imported, tmp_path_factory.mktemp(request.param) / "warehouse"))
    job = job_on(FILES["tasks"], root, quality=POLICIES[request.param])
    check(job, ["ingest"])
    aggregate(job)
    return request.param, root


Figures = dict[tuple[str, ...], float]


def expected(rubrics: dict[str, list[tuple[str, float, str]]], policy: str) -> tuple[Figures, Figures]:
    """Means by model and score, and by model, score and category."""
    verdicts = lines_of(FILES["verdicts"])
    met = {(each["task"], each["model"], each["criterion"]): each["criteria_met"] for each in verdicts}
    overall: dict[tuple[str, ...], list[float]] = defaultdict(list)
    by_category: dict[tuple[str, ...], list[float]] = defaultdict(list)
    for task, model in sorted({(task, model) for task, model, _ in met}):
        rubric = rubrics[task]
        if policy == "default" and not 10 <= len(rubric) <= 30:
            continue
        weighed = [(weight, met[task, model, criterion], category) for criterion, weight, category in rubric]
        overall[model, "score"].append(ratios(weighed)["score"])
        overall[model, "min_normalized"].append(ratios(weighed)["min_normalized"])
        for category in {category for _, _, category in weighed}:
            of_category = [each for each in weighed if each[2] == category]
            by_category[model, "min_normalized", category].append(ratios(of_category)["min_normalized"])
    clipped = {key: max(0.0, mean) if key[1] == "score" else mean for key, mean in means(overall).items()}
    return clipped, means(by_category)


def ratios(weighed: list[tuple[float, bool, str]]) -> dict[str, float]:
    points = sum(weight for weight, is_met, _ in weighed if is_met)
    positive = sum(weight for weight, _, _ in weighed if weight > 0)
    negative = sum(weight for weight, _, _ in weighed if weight < 0)
    return {
        "score": points / positive if positive else float("nan"),
        "min_normalized": (points - negative) / (positive - negative),
    }


def means(values: dict[tuple[str, ...], list[float]]) -> Figures:
    return {key: sum(of_key) / len(of_key) for key, of_key in values.items()}


def test_boards_have_the_means_of_the_files(
    board: tuple[str, Path], rubrics: dict[str, list[tuple[str, float, str]]]
) -> None:
    policy, root = board
    overall, by_category = expected(rubrics, policy)
    actual = {tuple(key): mean for *key, mean in rows(root, "select model, score_name, mean_score from leaderboard")}
    query = "select model, score_name, category, avg(value) from category_scores where score_name = 'min_normalized'"
    of_category = {tuple(key): mean for *key, mean in rows(root, query + " group by all")}
    ranked = rows(root, """
        select model, score_name, label, mean_score from breakdown_leaderboard
        where breakdown = 'category' and score_name = 'min_normalized' and not is_own_hard
    """)  # fmt: skip

    assert 6 == len(actual)
    assert pytest.approx(overall, abs=TOLERANCE) == actual
    assert pytest.approx(by_category, abs=TOLERANCE) == of_category
    assert of_category == pytest.approx({tuple(key): mean for *key, mean in ranked}, abs=TOLERANCE)


def test_figures_rest_on_the_tasks_that_the_policy_admits_and_have_intervals_and_ranks(board: tuple[str, Path]) -> None:
    policy, root = board
    intervals = rows(root, "select ci_low, mean_score, ci_high from leaderboard")

    assert [(N_TASKS[policy],) * 2] == rows(root, "select distinct n_tasks, n_tasks_ranked from leaderboard")
    assert REFUSED[policy] == rows(root, "select check_name, count(*) from quarantine group by all")
    assert [sorted(interval) for interval in intervals] == [list(interval) for interval in intervals]
    assert [3] * 6 == [len(set(interval)) for interval in intervals]
    assert [(1,), (2,), (3,)] == rows(root, "select rank from leaderboard where is_primary order by mean_score desc")


def test_all_graded_rows_are_stored_and_importing_the_same_files_again_stores_nothing(imported: Path) -> None:
    job = job_on(FILES["tasks"], imported)
    before = sorted((imported / "parts").rglob("*.parquet"))

    assert [(300, 4734)] == rows(imported, "select (select count(*) from responses), (select count(*) from verdicts)")
    assert [0, 0] == [import_responses(job, FILES["responses"]).rows, import_verdicts(job, FILES["verdicts"]).rows]
    assert before == sorted((imported / "parts").rglob("*.parquet"))
