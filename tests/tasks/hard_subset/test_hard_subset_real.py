"""The hard half of the real tasks that three models answered, against one that is chosen from the raw files."""

import json
from collections import defaultdict
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tasks.check import check
from tasks.hard_subset import select_hard
from tasks.imports import import_responses, import_verdicts
from tasks.ingest.ingest import ingest
from tasks.run.writing import StageReport
from tests.builders import SHARED_DATA, job_on
from tests.tasks.rules.panels_oracle import probabilities
from warehouse import Warehouse

TASKS, RESPONSES, VERDICTS = (
    SHARED_DATA / "prbench" / file
    for file in (
        "finance_hard.parquet",
        "responses_finance_hard_3models.jsonl",
        "verdicts_finance_hard_3models.jsonl",
    )
)
SIZE = 50
Means = dict[str, dict[str, Fraction]]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(file.is_file() for file in (TASKS, RESPONSES, VERDICTS)), reason="real data are not beside the checkout"
    ),
]


@pytest.fixture(scope="module")
def scores() -> Means:
    """Task -> model -> equation 1 in exact fractions, from the raw files."""
    weights: dict[tuple[str, str], Fraction] = {}
    positive: dict[str, Fraction] = defaultdict(Fraction)
    for row in pq.read_table(TASKS, columns=["task", "rubric"]).to_pylist():
        for item in row["rubric"]:
            notes = item["annotations"]
            weight = Fraction(notes[notes["weight_class"].replace(" ", "_") + "_weight"])
            weights[row["task"], item["id"]] = weight
            positive[row["task"]] += max(weight, Fraction(0))
    found: Means = defaultdict(lambda: defaultdict(Fraction))
    for each in map(json.loads, VERDICTS.read_text(encoding="utf-8").splitlines()):
        met = weights[each["task"], each["criterion"]] * each["criteria_met"]
        found[each["task"]][each["model"]] += met / positive[each["task"]]
    return found


@pytest.fixture(scope="module")
def selected(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, StageReport]:
    """The warehouse after the selection, and its report."""
    job = job_on(
        TASKS,
        tmp_path_factory.mktemp("real"),
        quality={"criteria_per_task": "warn"},
        hard_subset={"share": {"Finance": SIZE}, "min_coverage": 0.3},
    )
    ingest(job)
    import_responses(job, RESPONSES)
    import_verdicts(job, VERDICTS)
    check(job, ["ingest"])
    return job.warehouse, select_hard(job)


def chosen(scores: Means, models: list[str]) -> set[str]:
    means = {task: sum(of_task[model] for model in models) for task, of_task in scores.items()}
    return set(sorted(means, key=lambda task: (means[task], task))[:SIZE])


def models_of(scores: Means) -> list[str]:
    return sorted({model for of_task in scores.values() for model in of_task})


def read(selected: tuple[Path, StageReport], query: str) -> list[tuple[Any, ...]]:
    with Warehouse(selected[0]).reader() as reader:
        return reader.table(query)[1]


def test_the_hard_half_is_that_of_the_raw_files(scores: Means, selected: tuple[Path, StageReport]) -> None:
    hard = chosen(scores, models_of(scores))

    assert {(task,) for task in hard} == set(read(selected, "select task_id from hard_subset"))
    wanted = [(task, task in hard) for task in sorted(scores)]
    assert 100 == len(wanted)
    assert wanted == read(selected, "select task_id, is_selected from hard_stability order by all")


def test_the_overlap_without_each_model_is_that_of_the_raw_files(
    scores: Means, selected: tuple[Path, StageReport]
) -> None:
    models = models_of(scores)
    hard = chosen(scores, models)
    others = {model: chosen(scores, [each for each in models if each != model]) for model in models}

    query = "select kind, compared_with, n_shared, jaccard from hard_overlaps order by all"
    assert read(selected, query) == [
        (
            "leave_one_out",
            model,
            len(hard & others[model]),
            pytest.approx(len(hard & others[model]) / len(hard | others[model])),
        )
        for model in models
    ]


def test_the_probabilities_are_those_of_the_ways_to_draw_three_models(
    scores: Means, selected: tuple[Path, StageReport]
) -> None:
    exact = probabilities([[[scores[task][model]] for model in models_of(scores)] for task in sorted(scores)], SIZE)

    found = read(selected, "select inclusion_probability from hard_stability order by task_id")
    assert pytest.approx([float(each) for each in exact], abs=0.03) == [probability for (probability,) in found]


def test_tasks_that_are_all_official_are_not_compared_with_the_official_split(
    selected: tuple[Path, StageReport],
) -> None:
    (note,) = selected[1].notes

    assert note.startswith("Finance: 50 of 300 tasks are hard (chosen from 100), ")
    assert "official" not in note
