"""Two real models as one model under two conditions, against figures that are counted from the raw files.

Nothing here asks a mart or a rule of the project but the interval's: scores are fractions, tests are counted by hand.
"""

import json
from collections import defaultdict
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from scipy import stats

from tasks.aggregate import aggregate
from tasks.check import check
from tasks.compare import ConditionsAnswer, conditions
from tasks.config.job import Job
from tasks.imports import import_responses, import_verdicts
from tasks.ingest.ingest import ingest
from tests.builders import SHARED_DATA, job_on
from warehouse import Warehouse

TASKS, RESPONSES, VERDICTS = (
    SHARED_DATA / "prbench" / file
    for file in (
        "finance_hard.parquet",
        "responses_finance_hard_3models.jsonl",
        "verdicts_finance_hard_3models.jsonl",
    )
)
BASELINE, SEARCH, TOOLS = "claude-haiku-4-5", "claude-opus-4-6", "claude-sonnet-4-6"
PRETENDED = {"pretended": {"baseline": BASELINE, "web search": SEARCH, "search and code": TOOLS}}
LABELS = {"web search": SEARCH, "search and code": TOOLS}
TOLERANCE = 1e-9
Cell = tuple[str, str]

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not all(file.is_file() for file in (TASKS, RESPONSES, VERDICTS)), reason="real data are not beside the checkout"
    ),
]


def lines_of(file: Path) -> Iterator[dict[str, Any]]:
    return map(json.loads, file.read_text(encoding="utf-8").splitlines())


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    """The real rows, checked and aggregated, with two models as conditions of a third."""
    job = job_on(
        TASKS, tmp_path_factory.mktemp("real"), quality={"criteria_per_task": "warn"}, conditions=PRETENDED
    )  # fmt: skip
    ingest(job)
    import_responses(job, RESPONSES)
    import_verdicts(job, VERDICTS)
    check(job, ["ingest"])
    aggregate(job)
    return job


@pytest.fixture(scope="module")
def found(job: Job) -> ConditionsAnswer:
    with Warehouse(job.warehouse).reader() as reader:
        return conditions(reader, job, score=None, is_hard=False, vintage=None, n_criteria=10_000)


@pytest.fixture(scope="module")
def rubrics() -> dict[str, dict[str, tuple[Fraction, str]]]:
    """Task -> criterion -> weight and category, from the raw rows."""
    return {
        row["task"]: {
            item["id"]: (
                Fraction(notes[notes["weight_class"].replace(" ", "_") + "_weight"]), notes["criteria_category"],
            )
            for item in row["rubric"]
            for notes in [item["annotations"]]
        }
        for row in pq.read_table(TASKS, columns=["task", "rubric"]).to_pylist()
    }  # fmt: skip


@pytest.fixture(scope="module")
def met() -> dict[str, dict[Cell, bool]]:
    """Model -> task and criterion -> the verdict."""
    of_model: dict[str, dict[Cell, bool]] = defaultdict(dict)
    for each in lines_of(VERDICTS):
        of_model[each["model"]][each["task"], each["criterion"]] = each["criteria_met"]
    return of_model


def changes(
    rubrics: dict[str, dict[str, tuple[Fraction, str]]],
    met: dict[str, dict[Cell, bool]],
    label: str,
    category: str | None = None,
) -> dict[str, Fraction]:
    """Task -> equation 1 (or 3 over a category) under the condition minus that under the baseline."""
    found = {}
    for task in {task for task, _ in met[label]}:
        part = {key: weight for key, (weight, of) in rubrics[task].items() if category in {None, of}}
        positive = sum(weight for weight in part.values() if weight > 0)
        negative = sum(weight for weight in part.values() if weight < 0)
        below = positive if category is None else positive - negative
        if below > 0:
            points = sum(weight * (met[label][task, key] - met[BASELINE][task, key]) for key, weight in part.items())
            found[task] = Fraction(points) / below
    return found


def test_differences_are_those_of_the_raw_verdicts(
    found: ConditionsAnswer, rubrics: dict[str, dict[str, tuple[Fraction, str]]], met: dict[str, dict[Cell, bool]]
) -> None:
    (table,) = found.tables
    assert table.key["split"] == "finance_hard"
    categories = {of for rubric in rubrics.values() for _, of in rubric.values()}
    assert {(row["condition"], row["label"]) for row in table.categories} == {
        (condition, category) for condition in LABELS for category in categories
    }
    assert [row["condition"] for row in table.whole] == [*LABELS]
    for row in (*table.whole, *table.categories):
        values = [*changes(rubrics, met, LABELS[row["condition"]], row["label"] or None).values()]
        assert row["n_tasks"] == len(values)
        assert row["difference"] == pytest.approx(float(sum(values) / len(values)), abs=TOLERANCE)
        common = max(values.count(value) for value in set(values))
        assert row["n_differing"] == len(values) - common
        # On each side at least as wide as Student's t with the degrees of freedom of the tasks that differ.
        sample = np.array([float(value) for value in values])
        reach = stats.t.ppf(0.975, len(values) - common - 1) * sample.std(ddof=1) / np.sqrt(len(values))
        assert row["ci_low"] <= sample.mean() - reach + TOLERANCE
        assert row["ci_high"] >= sample.mean() + reach - TOLERANCE
        assert row["ci_high"] - row["ci_low"] < 3 * reach
        assert (row["p_value"] <= 0.05) == (row["ci_low"] > 0 or row["ci_high"] < 0)
        needed = stats.t.ppf(0.975, len(values) - common - 1) + stats.t.ppf(0.8, len(values) - common - 1)
        assert row["smallest_detectable"] == pytest.approx(needed * sample.std(ddof=1) / np.sqrt(len(values)))


def test_p_values_are_corrected_within_the_whole_and_within_the_categories(found: ConditionsAnswer) -> None:
    (table,) = found.tables
    for family in (table.whole, table.categories):
        ordered = sorted(family, key=lambda row: row["p_value"])
        least = 0.0
        for rank, row in enumerate(ordered):
            least = max(least, min(1.0, row["p_value"] * (len(family) - rank)))
            assert row["p_holm"] == pytest.approx(least)
            assert row["n_comparisons"] == len(family)


def test_changed_criteria_are_the_flipped_verdicts(
    found: ConditionsAnswer, rubrics: dict[str, dict[str, tuple[Fraction, str]]], met: dict[str, dict[Cell, bool]]
) -> None:
    (table,) = found.tables
    for of_condition in table.changes:
        label = LABELS[of_condition.condition]
        points = {
            cell: rubrics[cell[0]][cell[1]][0] * (met[label][cell] - before) for cell, before in met[BASELINE].items()
        }
        gained = {(each["task_id"], each["criterion_id"]): each["points"] for each in of_condition.gained}
        lost = {(each["task_id"], each["criterion_id"]): each["points"] for each in of_condition.lost}
        assert gained == {cell: worth for cell, worth in points.items() if worth > 0}
        assert lost == {cell: worth for cell, worth in points.items() if worth < 0}
        assert [*lost.values()] == sorted(lost.values())
        for category in of_condition.categories:
            own = [worth for (task, key), worth in points.items() if rubrics[task][key][1] == category["category"]]
            assert category["n_compared"] == len(own)
            assert category["n_gained"] == sum(worth > 0 for worth in own)
            assert category["n_lost"] == sum(worth < 0 for worth in own)
            assert category["points_gained"] + category["points_lost"] == pytest.approx(float(sum(own)))


def test_lengths_are_those_of_the_raw_responses_and_unknown_costs_stay_unknown(found: ConditionsAnswer) -> None:
    characters: dict[str, dict[str, int]] = defaultdict(dict)
    for each in lines_of(RESPONSES):
        characters[each["model"]][each["task"]] = sum(character.isalnum() for character in each["response"])
    (table,) = found.tables
    for row in table.whole:
        means = [np.mean([*characters[label].values()]) for label in (BASELINE, LABELS[row["condition"]])]
        assert [row["baseline_mean_chars_alnum"], row["mean_chars_alnum"]] == pytest.approx(means, rel=1e-3)
        assert (row["mean_cost_usd"], row["mean_latency_s"], row["mean_completion_tokens"]) == (None, None, None)
        assert (row["n_answers"], row["n_unpriced"], row["n_failed"]) == (100, 100, 0)
