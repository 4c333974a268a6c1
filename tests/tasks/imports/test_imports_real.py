"""The real graded rows of three models, against means that are counted from the raw files in plain Python."""

import json
from collections import defaultdict
from pathlib import Path

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

IS_THERE = all(file.is_file() for file in FILES.values())
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not IS_THERE, reason="real data are not beside the checkout")]


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with the real tasks, responses and verdicts, checked and measured."""
    root = tmp_path_factory.mktemp("real")
    job = job_on(FILES["tasks"], root)
    ingest(job)
    import_responses(job, FILES["responses"])
    import_verdicts(job, FILES["verdicts"])
    check(job, ["ingest"])
    aggregate(job)
    return root


def expected() -> dict[tuple[str, str], float]:
    """Means by model and score over the tasks that are admitted, counted from the raw files."""
    rubrics = {
        row["task"]: {
            item["id"]: item["annotations"][item["annotations"]["weight_class"].replace(" ", "_") + "_weight"]
            for item in row["rubric"]
        }
        for row in pq.read_table(FILES["tasks"], columns=["task", "rubric"]).to_pylist()
    }
    points: dict[tuple[str, str], float] = defaultdict(float)
    for each in map(json.loads, FILES["verdicts"].read_text(encoding="utf-8").splitlines()):
        points[each["model"], each["task"]] += each["criteria_met"] * rubrics[each["task"]][each["criterion"]]
    means: dict[tuple[str, str], list[float]] = defaultdict(list)
    for (model, task), earned in points.items():
        weights = list(rubrics[task].values())
        positive, negative = sum(w for w in weights if w > 0), sum(w for w in weights if w < 0)
        if 10 <= len(weights) <= 30:
            means[model, "score"].append(earned / positive)
            means[model, "min_normalized"].append((earned - negative) / (positive - negative))
    mean_of = {key: sum(values) / len(values) for key, values in means.items()}
    return {key: max(0.0, mean) if key[1] == "score" else mean for key, mean in mean_of.items()}


def test_boards_have_the_means_of_the_files_over_the_tasks_that_are_admitted(imported: Path) -> None:
    board = rows(imported, "select model, score_name, mean_score from leaderboard")
    intervals = rows(imported, "select ci_low, mean_score, ci_high from leaderboard")

    assert 6 == len(board)
    assert pytest.approx(expected(), abs=1e-9) == {(model, name): mean for model, name, mean in board}
    assert [(95, 95)] == rows(imported, "select distinct n_tasks, n_tasks_ranked from leaderboard")
    assert [("criteria_per_task", 7)] == rows(imported, "select check_name, count(*) from quarantine group by all")
    assert [sorted(interval) for interval in intervals] == [list(interval) for interval in intervals]
    by_mean = rows(imported, "select rank from leaderboard where is_primary order by mean_score desc")
    assert [(1,), (2,), (3,)] == by_mean
    assert [(300, 4734)] == rows(imported, "select (select count(*) from responses), (select count(*) from verdicts)")
