"""HealthBench from rows to figures, against the formulas of its paper, and physicians' verdicts taken in."""

from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from tasks.aggregate import aggregate
from tasks.benchmarks.base import RowError
from tasks.benchmarks.healthbench import META_MODEL, parse_row
from tasks.config.job import Job
from tasks.imports.responses import import_responses
from tasks.imports.verdicts import import_verdicts
from tests.faults.server import FaultServer
from tests.kit import endpoint, job_on, judged, prepared, sampled, values_in, write_jsonl

pytestmark = pytest.mark.slow

THEMES = ("hedging", "emergency_referrals")
POINTS = ((5, 3, -8), (2, -10, -9), (7, 1, -2), (4, -6, 1))
TAGS = (["level:example", "axis:accuracy"], ["level:cluster", "axis:completeness", "cluster:c1"], ["axis:accuracy"])


def health_row(number: int, **changed: Any) -> dict[str, Any]:
    turns = ("user", f"What about ache {number}?"), ("assistant", "Since when?"), ("user", "Yesterday.")
    return {
        "prompt_id": f"h{number}", "prompt": [{"role": role, "content": content} for role, content in turns],
        "rubrics": [
            {"criterion": f"Says {index} of {number}.", "points": points, "tags": TAGS[index]}
            for index, points in enumerate(POINTS[number])
        ],
        "example_tags": [f"theme:{THEMES[number % 2]}", "physician_agreed_category:enough-context", "loose"],
        "ideal_completions_data": None, "canary": f"canary {number}", **changed,
    }  # fmt: skip


def meta_rows() -> list[dict[str, Any]]:
    """Two completions of a prompt and one of another, graded by two physicians each."""
    return [
        {
            "prompt_id": prompt, "prompt": health_row(number)["prompt"], "completion": f"Completion {completion}.",
            "completion_id": completion, "rubric": f"Says {index} of {number}.", "category": "cluster:c1",
            "binary_labels": [labels & 1 == 1, labels & 2 == 2], "anonymized_physician_ids": ["ada", "bo"],
        }
        for prompt, number, completion, index, labels in [
            ("h0", 0, "x", 0, 3), ("h0", 0, "y", 0, 1), ("h0", 0, "x", 1, 2), ("h1", 1, "z", 2, 0),
        ]
    ]  # fmt: skip


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    folder = tmp_path_factory.mktemp("health")
    with FaultServer() as server:
        source = write_jsonl(folder / "oss.jsonl", [health_row(i) for i in range(len(POINTS))])
        models, judges = ([endpoint(label, server.api_base)] for label in ("helper", "reader"))
        job = prepared(job_on(source, folder / "w", benchmark="healthbench", models=models, judges=judges))
        sampled(job)
        judged(job)
        assert sum(map(len, POINTS)) == len(server.judge_requests)
    meta = write_jsonl(folder / "meta.jsonl", meta_rows())
    assert (3, 8) == (import_responses(job, meta).rows, import_verdicts(job, meta).rows)
    assert (0, 0) == (import_responses(job, meta).rows, import_verdicts(job, meta).rows)
    aggregate(job)
    return job


def test_the_score_is_points_over_positive_points_and_its_mean_is_clipped(job: Job) -> None:
    by_reader = "select task_id, position, value from verdicts inner join criteria using (task_id, criterion_id) " \
                "where judge = 'reader'"  # fmt: skip
    decided = {(task, position): value for task, position, value in values_in(job, by_reader)}
    expected = {
        f"h{n}": sum(p for i, p in enumerate(points) if decided[f"h{n}", i] == 1) / sum(p for p in points if p > 0)
        for n, points in enumerate(POINTS)
    }
    by_theme = {theme: [expected[f"h{n}"] for n in range(4) if THEMES[n % 2] == theme] for theme in THEMES}
    board = values_in(job, "select label, mean_score from breakdown_leaderboard where judge = 'reader' "
                           "and breakdown = 'theme' and not is_own_hard")  # fmt: skip

    assert pytest.approx(expected) == dict(values_in(job, "select task_id, value from scores where judge = 'reader'"))
    assert pytest.approx({theme: max(0.0, fmean(values)) for theme, values in by_theme.items()}) == dict(board)


def test_physicians_verdicts_are_those_of_the_meta_evaluation(job: Job) -> None:
    rows = values_in(
        job, "select verdicts.task_id, trial, title, judge, value, explanation, text from verdicts "
             "inner join responses using (response_id, task_id, trial, model) "
             "inner join criteria using (task_id, criterion_id) where model = ?", META_MODEL,
    )  # fmt: skip

    assert 8 == len(rows)
    assert {
        ("h0", 1, "Says 0 of 0.", "physician 1", 1.0, "by ada", "Completion x."),
        ("h0", 2, "Says 0 of 0.", "physician 2", 0.0, "by bo", "Completion y."),
    } <= set(rows)
    assert {("h0", 1, "Completion x."), ("h0", 2, "Completion y."), ("h1", 1, "Completion z.")} == {
        (task, trial, text) for task, trial, *_, text in rows
    }


def test_a_repeated_criterion_has_an_id_of_its_own_which_does_not_depend_on_points_and_tags() -> None:
    item = health_row(0)["rubrics"][0]
    twice = parse_row(health_row(0, rubrics=[item, item])).criteria
    (again,) = parse_row(health_row(0, rubrics=[item | {"points": 2, "tags": ["axis:other"]}])).criteria

    assert again.criterion_id == twice[0].criterion_id != twice[1].criterion_id
    assert again.content_hash == twice[1].content_hash


@pytest.mark.parametrize(
    ("changed", "cause"),
    [({"prompt_id": " "}, "no prompt_id"), ({"prompt": [{"role": "tool", "content": "x"}]}, "role")],
)
def test_a_row_that_can_be_no_task_is_refused_with_its_cause(changed: dict[str, Any], cause: str) -> None:
    with pytest.raises(RowError, match=cause):
        parse_row(health_row(0, **changed))


def test_what_breaks_an_invariant_is_refused(tmp_path: Path) -> None:
    rows = [
        health_row(0),
        health_row(1, rubrics=[{"criterion": "Bad.", "points": -3, "tags": []}]),
        health_row(2, rubrics=[{"criterion": "Much.", "points": 11, "tags": []}]),
        health_row(3, prompt=[{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]),
    ]
    prepared(job_on(write_jsonl(tmp_path / "oss.jsonl", rows), tmp_path / "w", benchmark="healthbench"))

    refused = values_in(tmp_path / "w", "select task_id, check_name from quarantine order by all")
    assert [("h1", "positive_criterion"), ("h2", "weight_range"), ("h3", "turns_contiguous")] == refused
