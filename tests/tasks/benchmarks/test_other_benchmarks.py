"""HealthBench and ResearchRubrics from rows to figures, and the verdicts that were published on
them.

HealthBench: the formulas of its paper, and verdicts of physicians. ResearchRubrics: ternary
verdicts, rewritten criteria, and people compared with judges.
"""

import asyncio
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from tasks.aggregate import aggregate
from tasks.benchmarks.base import RowError
from tasks.benchmarks.healthbench import META_MODEL, parse_row
from tasks.benchmarks.researchrubrics import graded_rows
from tasks.config.job import Job
from tasks.config.settings import Coverage
from tasks.imports.responses import import_responses
from tasks.imports.verdicts import import_verdicts
from tasks.judge.rubric_variants import derive
from tasks.plan.plan import plan
from tests import kit
from tests.faults.behaviours import (
    HttpResponse,
    criterion_of,
    prompt_of,
    well_behaved,
)
from tests.faults.server import FaultServer
from tests.kit import (
    copied,
    endpoint,
    job_on,
    judged,
    prepared,
    rows_in,
    sampled,
    values_in,
    write_jsonl,
)
from tests.tasks.benchmarks.research import research_row
from warehouse import Warehouse

pytestmark = pytest.mark.slow

THEMES = ("hedging", "emergency_referrals")
POINTS = ((5, 3, -8), (2, -10, -9), (7, 1, -2), (4, -6, 1))
TAGS = (
    ["level:example", "axis:accuracy"],
    ["level:cluster", "axis:completeness", "cluster:c1"],
    ["axis:accuracy"],
)


def health_row(number: int, **changed: Any) -> dict[str, Any]:
    turns = (
        ("user", f"What about ache {number}?"),
        ("assistant", "Since when?"),
        ("user", "Yesterday."),
    )
    return {
        "prompt_id": f"h{number}",
        "prompt": [{"role": role, "content": content} for role, content in turns],
        "rubrics": [
            {
                "criterion": f"Says {index} of {number}.",
                "points": points,
                "tags": TAGS[index],
            }
            for index, points in enumerate(POINTS[number])
        ],
        "example_tags": [
            f"theme:{THEMES[number % 2]}",
            "physician_agreed_category:enough-context",
            "loose",
        ],
        "ideal_completions_data": None,
        "canary": f"canary {number}",
        **changed,
    }


def meta_rows() -> list[dict[str, Any]]:
    """Two completions of one prompt and one of another prompt, each graded by two physicians."""
    return [
        {
            "prompt_id": f"h{number}",
            "prompt": health_row(number)["prompt"],
            "completion": f"Completion {completion}.",
            "completion_id": completion,
            "rubric": f"Says {index} of {number}.",
            "category": "cluster:c1",
            "binary_labels": labels,
            "anonymized_physician_ids": ["ada", "bo"],
        }
        for number, completion, index, labels in [
            (0, "x", 0, "[true, true]"),  # as in a CSV file
            (0, "y", 0, [True, False]),
            (0, "x", 1, [False, True]),
            (1, "z", 2, [False, False]),
        ]
    ]


@pytest.fixture(scope="module")
def job(tmp_path_factory) -> Job:
    folder = tmp_path_factory.mktemp("health")
    with kit.few_published(), FaultServer() as server:
        job = prepared(
            job_on(
                write_jsonl(
                    folder / "oss.jsonl", map(health_row, range(len(POINTS)))
                ),
                folder / "w",
                benchmark="healthbench",
                models=[endpoint("helper", server.api_base)],
                judges=[endpoint("reader", server.api_base)],
            )
        )
        sampled(job)
        judged(job)
        assert len(server.judge_requests) == 12
        meta = write_jsonl(folder / "meta.jsonl", meta_rows())
        assert import_responses(job, meta).rows == 3
        assert import_verdicts(job, meta).rows == 8
        assert import_responses(job, meta).rows == 0
        assert import_verdicts(job, meta).rows == 0
    Warehouse(job.warehouse).database.unlink()
    aggregate(job)
    return job


@pytest.fixture(scope="module")
def scores(job: Job) -> list[float]:
    """The scores of the tasks, by the paper's formula from the reader's decisions."""
    points = [0.0] * len(POINTS)
    decisions = values_in(
        job,
        "select task_id, position, value from verdicts"
        " inner join criteria using (task_id, criterion_id) where judge = 'reader'",
    )
    for task_id, position, value in decisions:
        number = int(task_id.removeprefix("h"))
        points[number] += value * POINTS[number][position]
    positive_points = (8, 2, 8, 5)
    return [
        value / highest
        for value, highest in zip(points, positive_points, strict=True)
    ]


def test_the_score_is_points_over_positive_points(job, scores):
    query = "select value from scores where judge = 'reader' order by task_id"

    assert [value for (value,) in values_in(job, query)] == pytest.approx(scores)


def test_the_mean_score_of_a_theme_is_clipped(job, scores):
    board = values_in(
        job,
        "select label, mean_score from breakdown_leaderboard where judge = 'reader' "
        "and breakdown = 'theme' and not is_own_hard",
    )

    assert dict(board) == pytest.approx(
        {
            "hedging": max(0.0, fmean(scores[::2])),
            "emergency_referrals": max(0.0, fmean(scores[1::2])),
        }
    )


def test_physicians_verdicts_are_those_of_the_meta_evaluation(job):
    rows = values_in(
        job,
        "select verdicts.task_id, trial, title, judge, value, explanation, text from verdicts "
        "inner join responses using (response_id, task_id, trial, model) "
        "inner join criteria using (task_id, criterion_id) where model = ?",
        META_MODEL,
    )

    assert len(rows) == 8
    assert {
        ("h0", 1, "Says 0 of 0.", "physician 1", 1.0, "by ada", "Completion x."),
        ("h0", 2, "Says 0 of 0.", "physician 2", 0.0, "by bo", "Completion y."),
    } <= set(rows)
    assert {(task, trial, text) for task, trial, *_, text in rows} == {
        ("h0", 1, "Completion x."),
        ("h0", 2, "Completion y."),
        ("h1", 1, "Completion z."),
    }


def test_a_repeated_criterion_has_an_id_of_its_own():
    item = health_row(0)["rubrics"][0]

    criterion, repeated = parse_row(health_row(0, rubrics=[item, item])).criteria

    assert repeated.criterion_id != criterion.criterion_id
    assert repeated.content_hash == criterion.content_hash


def test_the_id_of_a_criterion_does_not_depend_on_points_and_tags():
    item = health_row(0)["rubrics"][0]
    changed_item = item | {"points": 2, "tags": ["axis:other"]}

    [criterion] = parse_row(health_row(0, rubrics=[item])).criteria
    [changed] = parse_row(health_row(0, rubrics=[changed_item])).criteria

    assert changed.criterion_id == criterion.criterion_id
    assert changed.content_hash == criterion.content_hash


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({"prompt_id": " "}, "no task id"),
        ({"prompt": [{"role": "tool", "content": "x"}]}, "role"),
    ],
)
def test_a_row_that_can_be_no_task_is_refused_with_its_cause(changed, cause):
    with pytest.raises(RowError, match=cause):
        parse_row(health_row(0, **changed))


@pytest.mark.usefixtures("without_scores")
def test_what_breaks_an_invariant_is_refused(tmp_path):
    criterion = {"criterion": "A.", "tags": []}
    messages = [
        {"role": "user", "content": "x"},
        {"role": "assistant", "content": "y"},
    ]
    rows = [
        health_row(0),
        health_row(1, rubrics=[criterion | {"points": -3}]),
        health_row(2, rubrics=[criterion | {"points": 11}]),
        health_row(3, prompt=messages),
    ]
    source = write_jsonl(tmp_path / "oss.jsonl", rows)

    prepared(job_on(source, tmp_path / "w", benchmark="healthbench"))

    query = "select task_id, check_name from quarantine order by all"
    assert values_in(tmp_path / "w", query) == [
        ("h1", "positive_criterion"),
        ("h2", "weight_range"),
        ("h3", "turns_contiguous"),
    ]


# ResearchRubrics


TASKS = 2
CRITERIA = 20


def behaviour(request, number: int) -> HttpResponse:
    """A ternary or binary judge, and a writer that makes all criteria but one longer, as it must."""
    prompt = prompt_of(request)
    if "make a criterion of a grading rubric more explicit" not in prompt:
        return well_behaved(request, number)
    title = criterion_of(prompt)
    if title.startswith("Says 7 about subject 1"):
        return HttpResponse(json.dumps({"criterion": "Shorter."}))
    longer_title = f"{title} Which means that it is said in so many words."
    return HttpResponse(json.dumps({"criterion": longer_title}))


JUDGES = {
    "three": {},
    "two": {"grading": "binary"},
    "removed": {"rubric": "examples_removed"},
    "augmented": {"rubric": "augmented"},
}


class World:
    """A provider, and a warehouse in a folder for jobs with several judges."""

    def __init__(self, server: FaultServer, folder: Path):
        self.server = server
        self.folder = folder
        rows = map(research_row, range(TASKS))
        self.source = write_jsonl(folder / "research.jsonl", rows)

    def job(self, *judges: str) -> Job:
        """A job with judges that are the same model with different settings."""
        address = self.server.api_base
        judge_settings = []
        for judge in judges:
            settings = {"name": "hosted_vllm/three", **JUDGES[judge]}
            judge_settings.append(endpoint(judge, address, **settings))
        return job_on(
            self.source,
            self.folder / "w",
            benchmark="researchrubrics",
            models=[endpoint("reporter", address)],
            judges=judge_settings,
            rubric_writer=endpoint("writer", address),
        )

    def run_stages(self, *judges: str) -> int:
        """Run all stages, and return the number of calls to judges."""
        n_calls = len(self.server.judge_requests)
        job = prepared(self.job(*judges))
        sampled(job)
        asyncio.run(derive(job))
        judged(job)
        return len(self.server.judge_requests) - n_calls


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Iterator[World]:
    """A world judged in ternary, in binary, and with rewritten criteria."""
    with FaultServer(behaviour) as server:
        research_world = World(server, tmp_path_factory.mktemp("research"))
        with kit.few_published():
            assert research_world.run_stages("three") == TASKS * CRITERIA
            assert research_world.run_stages("three") == 0
            # No criterion is rewritten yet, so only the writer's calls can be counted.
            _, derive_plan, judge_plan = plan(research_world.job("augmented"))
            assert derive_plan.purpose == "derive"
            assert derive_plan.calls == TASKS * CRITERIA
            assert judge_plan.purpose == "judge"
            assert judge_plan.calls == 0
            assert "40 criteria that are not rewritten yet" in judge_plan.note
            assert research_world.run_stages("three", "two") == TASKS * CRITERIA
            # Without examples the rewritten criterion is equal, and its call was made already.
            assert (
                research_world.run_stages("three", "two", "removed")
                == TASKS * CRITERIA // 2
            )
            assert research_world.run_stages(*JUDGES) == TASKS * CRITERIA - 1
        Warehouse(research_world.job().warehouse).database.unlink()
        aggregate(research_world.job(*JUDGES))
        yield research_world


@pytest.mark.usefixtures("without_scores")
def test_a_failed_rewrite_in_forty_is_below_the_bar_only_if_the_coverage_is(tmp_path):
    with FaultServer(behaviour) as server:
        job = prepared(World(server, tmp_path).job("augmented"))
        strict = asyncio.run(derive(job))
        lenient = asyncio.run(derive(job.with_settings(coverage=Coverage(min=0.97))))

    assert strict.failures.total() == 1
    # The second run tries only the failed one again.
    assert lenient.failures.total() == 1
    assert strict.is_below_bar
    assert not lenient.is_below_bar


def test_three_steps_are_read_as_two_without_a_call(world):
    query = "select distinct value, grading from verdicts where judge = 'three' order by value"
    assert values_in(world.job(), query) == [
        (0.0, "ternary"),
        (0.5, "ternary"),
        (1.0, "ternary"),
    ]
    scores = "from scores where judge = 'three' and value is not null"
    query = f"select count(*) {scores} and grading = 'ternary_as_binary'"
    assert values_in(world.job(), query) == [(2 * TASKS,)]


def test_a_rewritten_criterion_has_its_own_id(world):
    variants = rows_in(world.job(), "from criterion_variants where status = 'ok'")

    assert len(variants) == 2 * TASKS * CRITERIA - 1
    for variant in variants:
        assert variant["criterion_id"] != variant["original_id"]
        if variant["rubric"] == "examples_removed":
            assert "e.g." not in variant["title"]


def test_a_criterion_that_is_not_made_longer_is_a_failed_rewrite(world):
    [variant] = rows_in(world.job(), "from criterion_variants where status <> 'ok'")

    assert variant["rubric"] == "augmented"
    assert variant["status"] == "parse_error"
    assert "no more than the original" in variant["error"]


def test_rewritten_criteria_count_for_the_coverage_of_the_original_ones(world):
    query = "select judge, coverage from leaderboard where score_name = 'compliance'"

    coverage = dict(values_in(world.job(), query))

    assert coverage["three"] == 1
    assert coverage["removed"] == 1
    assert coverage["augmented"] == 1 - 1 / (TASKS * CRITERIA)


EVALUATION = {
    "task_name": "r0",
    "pdf": "gemini",
    "rubric_title": "Says 0.",
    "verdict": "Partially Satisfied",
    "score": 0.5,
    "reasoning": "half",
    "success": True,
}
COMPILED = {
    "task_name": "r0",
    "rubrics": '[{"title": "Says 0.", "category": "A"}, {"title": "Says 0.", "category": "B"}]',
    "final_presence": '{"gemini_present": {"values": ["Satisfied", "Not Satisfied"]}}',
}
FAILED_CALLS = '{"gemini_present": {"values": ["Error", "Unknown"]}}'
SINGLE = {
    "sample_id": "r0",
    "rubric_title": "Says 0.",
    "verdict": "Satisfied",
    "success": True,
}


def read(row: dict[str, Any]) -> list[Mapping[str, Any]]:
    return list(graded_rows()(row))


def test_an_evaluation_of_the_published_code_is_read_as_a_verdict():
    [row] = read(EVALUATION)

    assert row["task"] == "r0"
    assert row["model"] == "gemini"
    assert row["criterion"] == "Says 0."
    assert row["explanation"] == "half"
    assert row["verdict"] == "Partially Satisfied"
    assert row["grading"] is None


def test_a_table_of_the_published_code_is_read_as_verdicts_of_people():
    verdict = {
        "task": "r0",
        "model": "gemini",
        "criterion": "Says 0.",
        "judge": "people",
        "grading": None,
    }

    assert read(COMPILED) == [
        verdict
        | {
            "category": "A",
            "occurrence": 1,
            "verdict": "Satisfied",
        },
        verdict
        | {
            "category": "B",
            "occurrence": 2,
            "verdict": "Not Satisfied",
        },
    ]


def test_a_table_may_name_its_judge():
    rows = read(COMPILED | {"judge": "a-judge"})

    assert [row["judge"] for row in rows] == ["a-judge", "a-judge"]


@pytest.mark.parametrize("success", [True, "True", "TRUE", 1, "1"])
def test_a_call_succeeded_in_every_way_of_writing_it(success):
    [row] = read(EVALUATION | {"success": success})

    assert row["verdict"] == EVALUATION["verdict"]


@pytest.mark.parametrize(
    "row",
    [
        EVALUATION | {"verdict": "Error", "success": False},
        EVALUATION | {"verdict": "Unknown"},
        COMPILED | {"final_presence": FAILED_CALLS},
    ],
)
def test_a_failed_call_of_the_published_code_is_no_verdict(row):
    assert {graded_row["verdict"] for graded_row in read(row)} == {None}


def test_evaluations_of_a_single_report_are_binary_and_repeated_ones_are_numbered():
    reader = graded_rows()

    rows = [
        *reader(SINGLE),
        *reader(SINGLE),
        *reader(SINGLE | {"grading": "ternary"}),
    ]

    assert [(row["grading"], row["occurrence"]) for row in rows] == [
        ("binary", 1),
        ("binary", 2),
        ("ternary", 1),
    ]


def test_other_rows_are_passed_on():
    assert read({"task": "r0", "value": 1}) == [{"task": "r0", "value": 1}]


@pytest.mark.parametrize(
    ("cells", "cause"),
    [
        (
            {"final_presence": '{"gemini_present": {"val'},
            "`final_presence` is not JSON",
        ),
        ({"final_presence": None}, "`final_presence` holds nothing"),
        ({"rubrics": "[]"}, "`rubrics` holds nothing"),
        (
            {
                "final_presence": '{"gemini_present": {"values": ["Satisfied"], "null_count": 1}}'
            },
            "gemini_present has 1 values for 2 criteria, so they cannot be matched",
        ),
    ],
)
def test_a_table_that_does_not_say_what_was_decided_on_what_is_refused(cells, cause):
    with pytest.raises(RowError, match=cause):
        read(COMPILED | cells)


@pytest.mark.usefixtures("without_scores")
def test_yes_and_no_are_two_steps_and_words_and_numbers_the_benchmarks_own(
    world, tmp_path
):
    decisions = [
        {"criteria_met": True},
        {"criteria_met": "false"},
        {"value": 1},
        {"verdict": "partially satisfied"},
    ]
    rows = []
    for criterion, decision in zip(
        research_row(1)["rubrics"], decisions, strict=False
    ):
        cell = {
            "task": "r1",
            "model": "reporter",
            "criterion": criterion["criterion"],
        }
        rows.append(cell | {"judge": "another"} | decision)
    job = copied(world.job(), tmp_path / "w")

    import_verdicts(job, write_jsonl(tmp_path / "labels.jsonl", rows))

    query = "select grading, value from verdicts where judge = 'another' order by all"
    assert values_in(job, query) == [
        ("binary", 0.0),
        ("binary", 1.0),
        ("ternary", 0.5),
        ("ternary", 1.0),
    ]
