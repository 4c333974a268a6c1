"""HealthBench and ResearchRubrics from rows to figures, and the verdicts that were published on
them.

HealthBench: the formulas of its paper, and verdicts of physicians. ResearchRubrics: ternary
verdicts, rewritten criteria, and people compared with judges.
"""

import asyncio
import json
from collections.abc import Iterator
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
from tests.faults.behaviours import HttpResponse, Request, criterion_of, prompt_of, well_behaved
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
            "prompt_id": prompt,
            "prompt": health_row(number)["prompt"],
            "completion": f"Completion {completion}.",
            "completion_id": completion,
            "rubric": f"Says {index} of {number}.",
            "category": "cluster:c1",
            "binary_labels": [labels & 1 == 1, labels & 2 == 2],
            "anonymized_physician_ids": ["ada", "bo"],
        }
        for prompt, number, completion, index, labels in [
            ("h0", 0, "x", 0, 3),
            ("h0", 0, "y", 0, 1),
            ("h0", 0, "x", 1, 2),
            ("h1", 1, "z", 2, 0),
        ]
    ]


@pytest.fixture(scope="module")
def job(tmp_path_factory: pytest.TempPathFactory) -> Job:
    folder = tmp_path_factory.mktemp("health")
    with FaultServer() as server:
        source = write_jsonl(folder / "oss.jsonl", [health_row(i) for i in range(len(POINTS))])
        models, judges = ([endpoint(label, server.api_base)] for label in ("helper", "reader"))
        job = prepared(
            job_on(
                source,
                folder / "w",
                benchmark="healthbench",
                models=models,
                judges=judges,
            )
        )
        sampled(job)
        judged(job)
        assert sum(map(len, POINTS)) == len(server.judge_requests)
    meta = write_jsonl(folder / "meta.jsonl", meta_rows())
    assert import_responses(job, meta).rows == 3
    assert import_verdicts(job, meta).rows == 8
    assert import_responses(job, meta).rows == 0
    assert import_verdicts(job, meta).rows == 0
    aggregate(job)
    return job


def test_the_score_is_points_over_positive_points_and_its_mean_is_clipped(job: Job) -> None:
    joined = "verdicts inner join criteria using (task_id, criterion_id)"
    by_reader = values_in(
        job, f"select task_id, position, value from {joined} where judge = 'reader'"
    )
    decided = {(task, position): value for task, position, value in by_reader}
    expected = {
        f"h{n}": (
            sum(p for i, p in enumerate(points) if decided[f"h{n}", i] == 1)
            / sum(p for p in points if p > 0)
        )
        for n, points in enumerate(POINTS)
    }
    by_theme = {
        theme: [expected[f"h{n}"] for n in range(4) if THEMES[n % 2] == theme] for theme in THEMES
    }
    board = values_in(
        job,
        "select label, mean_score from breakdown_leaderboard where judge = 'reader' "
        "and breakdown = 'theme' and not is_own_hard",
    )

    assert pytest.approx(expected) == dict(
        values_in(job, "select task_id, value from scores where judge = 'reader'")
    )
    assert pytest.approx(
        {theme: max(0.0, fmean(values)) for theme, values in by_theme.items()}
    ) == dict(board)


def test_physicians_verdicts_are_those_of_the_meta_evaluation(job: Job) -> None:
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


def test_a_repeated_criterion_has_an_id_of_its_own_which_does_not_depend_on_points_and_tags() -> (
    None
):
    item = health_row(0)["rubrics"][0]
    twice = parse_row(health_row(0, rubrics=[item, item])).criteria
    (again,) = parse_row(
        health_row(0, rubrics=[item | {"points": 2, "tags": ["axis:other"]}])
    ).criteria

    assert again.criterion_id == twice[0].criterion_id != twice[1].criterion_id
    assert again.content_hash == twice[1].content_hash


@pytest.mark.parametrize(
    ("changed", "cause"),
    [
        ({"prompt_id": " "}, "no task id"),
        ({"prompt": [{"role": "tool", "content": "x"}]}, "role"),
    ],
)
def test_a_row_that_can_be_no_task_is_refused_with_its_cause(
    changed: dict[str, Any], cause: str
) -> None:
    with pytest.raises(RowError, match=cause):
        parse_row(health_row(0, **changed))


def test_what_breaks_an_invariant_is_refused(tmp_path: Path) -> None:
    bad, too_much = (
        [
            {
                "criterion": "A.",
                "points": points,
                "tags": [],
            }
        ]
        for points in (-3, 11)
    )
    unanswered = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]
    changes = ({}, {"rubrics": bad}, {"rubrics": too_much}, {"prompt": unanswered})
    rows = [health_row(number, **changed) for number, changed in enumerate(changes)]
    prepared(
        job_on(write_jsonl(tmp_path / "oss.jsonl", rows), tmp_path / "w", benchmark="healthbench")
    )

    refused = values_in(tmp_path / "w", "select task_id, check_name from quarantine order by all")
    assert refused == [
        ("h1", "positive_criterion"),
        ("h2", "weight_range"),
        ("h3", "turns_contiguous"),
    ]


# ResearchRubrics


TASKS = 2
CRITERIA = 20


def behaviour(request: Request, number: int) -> HttpResponse:
    """A ternary or binary judge, and a writer that fails on one criterion and makes the others
    longer.
    """
    prompt = prompt_of(request)
    if "make a criterion of a grading rubric more explicit" not in prompt:
        return well_behaved(request, number)
    title = criterion_of(prompt)
    if title.startswith("Says 7 about subject 1"):
        return HttpResponse(json.dumps({"criterion": "Shorter."}))
    return HttpResponse(
        json.dumps({"criterion": f"{title} Which means that it is said in so many words."})
    )


JUDGES = {
    "three": {},
    "two": {"grading": "binary"},
    "removed": {"rubric": "examples_removed"},
    "augmented": {"rubric": "augmented"},
}


class World:
    def __init__(self, server: FaultServer, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.source = write_jsonl(
            folder / "research.jsonl", [research_row(i) for i in range(TASKS)]
        )

    def job(self, *judges: str) -> Job:
        """A job with judges that are the same model with different settings."""
        at = self.server.api_base
        named = [
            endpoint(each, at, **{"name": "hosted_vllm/three"} | JUDGES[each]) for each in judges
        ]
        models = [endpoint("reporter", self.server.api_base)]
        writer = endpoint("writer", self.server.api_base)
        settings = {
            "benchmark": "researchrubrics",
            "models": models,
            "judges": named,
            "rubric_writer": writer,
        }
        return job_on(self.source, self.folder / "w", **settings)

    def does(self, *judges: str) -> int:
        """Run all stages, and return the number of calls to judges."""
        before = len(self.server.judge_requests)
        job = prepared(self.job(*judges))
        sampled(job)
        asyncio.run(derive(job))
        judged(job)
        return len(self.server.judge_requests) - before


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """A world judged in ternary, in binary, and with rewritten criteria."""
    with FaultServer(behaviour) as server, pytest.MonkeyPatch.context() as patched:
        kit.publish_few(patched)
        research_world = World(server, tmp_path_factory.mktemp("research"))
        assert [research_world.does("three"), research_world.does("three")] == [TASKS * CRITERIA, 0]
        # No criterion is rewritten yet, so only the writer's calls can be counted.
        _, derived, of_judge = plan(research_world.job("augmented"))
        assert [(p.purpose, p.calls) for p in (derived, of_judge)] == [
            ("derive", TASKS * CRITERIA),
            ("judge", 0),
        ]
        assert f"{TASKS * CRITERIA} criteria that are not rewritten yet" in of_judge.note
        assert research_world.does("three", "two") == TASKS * CRITERIA
        # Without examples the rewritten criterion is equal, and its call was made already.
        assert research_world.does("three", "two", "removed") == TASKS * CRITERIA // 2
        assert research_world.does(*JUDGES) == TASKS * CRITERIA - 1
        patched.undo()
        Warehouse(research_world.job().warehouse).database.unlink()
        aggregate(research_world.job(*JUDGES))
        yield research_world


def test_a_failed_rewrite_in_forty_is_below_the_bar_only_if_the_coverage_is(tmp_path: Path) -> None:
    with FaultServer(behaviour) as server:
        job = prepared(World(server, tmp_path).job("augmented"))
        strict = asyncio.run(derive(job))
        lenient = asyncio.run(derive(job.with_settings(coverage=Coverage(min=0.97))))

    # The second run tries only the failed one again.
    assert 1 == sum(strict.failures.values()) == sum(lenient.failures.values())
    assert strict.is_below_bar
    assert not lenient.is_below_bar


def test_three_steps_are_read_as_two_without_a_call(world: World) -> None:
    query = "select distinct value, grading from verdicts where judge = 'three' order by value"
    assert [(value, "ternary") for value in (0.0, 0.5, 1.0)] == values_in(world.job(), query)
    query = (
        "select count(*) from scores where grading = 'ternary_as_binary' and judge = 'three' and"
        " value is not null"
    )
    assert values_in(world.job(), query) == [(2 * TASKS,)]


def test_a_criterion_in_other_words_has_its_own_id_and_stands_for_the_original(
    world: World,
) -> None:
    variants = rows_in(world.job(), "from criterion_variants")
    rewritten = [row for row in variants if row["status"] == "ok"]
    (refused,) = [row for row in variants if row["status"] != "ok"]

    assert len(variants) == 2 * TASKS * CRITERIA
    assert refused["rubric"] == "augmented"
    assert refused["status"] == "parse_error"
    assert "no more than the original" in refused["error"]
    assert all(row["criterion_id"] != row["original_id"] for row in rewritten)
    assert not any(
        "e.g." in row["title"] for row in rewritten if row["rubric"] == "examples_removed"
    )
    coverage = dict(
        values_in(
            world.job(), "select judge, coverage from leaderboard where score_name = 'compliance'"
        )
    )
    assert {
        "three": 1,
        "removed": 1,
        "augmented": 1 - 1 / (TASKS * CRITERIA),
    }.items() <= coverage.items()


def test_what_the_published_code_writes_is_read_as_verdicts() -> None:
    read = graded_rows()
    one = {
        "task_name": "r0",
        "pdf": "gemini",
        "rubric_title": "Says 0.",
        "verdict": "Partially Satisfied",
        "score": 0.5,
        "reasoning": "half",
        "success": True,
    }
    failed = one | {"verdict": "Error", "success": False}
    compiled = {
        "task_name": "r0",
        "rubrics": json.dumps(
            [{"title": "Says 0.", "category": "A"}, {"title": "Says 0.", "category": "B"}]
        ),
        "final_presence": json.dumps(
            {"gemini_present": {"values": ["Satisfied", "Not Satisfied"], "null_count": 0}}
        ),
    }
    names = ("task", "model", "criterion", "category", "verdict", "judge")

    def cells(given: dict[str, Any], *names: str) -> list[tuple[Any, ...]]:
        return [tuple(row.get(name) for name in names) for row in read(given)]

    assert cells(one, *names[:-1]) == [("r0", "gemini", "Says 0.", None, "Partially Satisfied")]
    nothing = compiled | {
        "final_presence": json.dumps({"gemini_present": {"values": ["Error", "Unknown"]}})
    }
    for given in (failed, one | {"verdict": "Unknown"}, nothing):
        assert set(cells(given, "verdict")) == {(None,)}
    both = [("A", "Satisfied"), ("B", "Not Satisfied")]
    assert [("r0", "gemini", "Says 0.", *each, "people") for each in both] == cells(
        compiled, *names
    )
    assert cells(compiled | {"judge": "a-judge"}, "judge") == [("a-judge",)] * 2
    assert list(read({"task": "r0", "value": 1})) == [{"task": "r0", "value": 1}]
    alone = {
        "sample_id": "r0",
        "rubric_title": "Says 0.",
        "verdict": "Satisfied",
        "success": True,
    }
    twice = [cells(alone, "grading", "occurrence") for _ in range(2)]
    assert twice == [[("binary", 1)], [("binary", 2)]]
    assert cells(alone | {"grading": "ternary"}, "grading") == [("ternary",)]


@pytest.mark.parametrize(
    ("cells", "cause"),
    [
        ({"final_presence": '{"gemini_present": {"val'}, "`final_presence` is not JSON"),
        ({"final_presence": None}, "`final_presence` holds nothing"),
        ({"rubrics": "[]"}, "`rubrics` holds nothing"),
        (
            {
                "final_presence": json.dumps(
                    {"gemini_present": {"values": ["Satisfied"], "null_count": 1}}
                )
            },
            "gemini_present has 1 values for 2 criteria, so they cannot be matched",
        ),
    ],
)
def test_a_table_that_does_not_say_what_was_decided_on_what_is_refused(
    cells: dict[str, Any], cause: str
) -> None:
    presence = {"gemini_present": {"values": ["Satisfied", "Not Satisfied"]}}
    whole = {
        "task_name": "r0",
        "rubrics": '[{"title": "a"}, {"title": "b"}]',
        "final_presence": json.dumps(presence),
    }

    with pytest.raises(RowError, match=cause):
        list(graded_rows()(whole | cells))


def test_yes_and_no_are_two_steps_and_words_and_numbers_the_benchmarks_own(
    world: World, tmp_path: Path
) -> None:
    decisions: list[dict[str, Any]] = [
        {"criteria_met": True},
        {"criteria_met": "false"},
        {"value": 1},
        {"verdict": "partially satisfied"},
    ]
    about = {
        "task": "r1",
        "model": "reporter",
        "judge": "another",
    }
    rubric = research_row(1)["rubrics"]
    rows = [
        about | {"criterion": rubric[i]["criterion"]} | decision
        for i, decision in enumerate(decisions)
    ]
    job = copied(world.job(), tmp_path / "w")
    import_verdicts(job, write_jsonl(tmp_path / "labels.jsonl", rows))

    actual = values_in(
        job, "select grading, value from verdicts where judge = 'another' order by all"
    )
    assert actual == [("binary", 0.0), ("binary", 1.0), ("ternary", 0.5), ("ternary", 1.0)]
