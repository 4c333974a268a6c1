"""ResearchRubrics from rows to figures: three-step verdicts, both scores, other wordings, people beside them."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tasks.aggregate import aggregate
from tasks.benchmarks.base import RowError
from tasks.benchmarks.researchrubrics import graded_rows
from tasks.config.job import Job
from tasks.imports.verdicts import import_verdicts
from tasks.judge.rubric_variants import derive
from tasks.plan.plan import plan
from tests.faults.behaviours import HttpResponse, Request, criterion_of, prompt_of, well_behaved
from tests.faults.server import FaultServer
from tests.kit import copied, endpoint, job_on, judged, prepared, rows_in, sampled, values_in, write_jsonl
from tests.tasks.benchmarks.research import research_row

pytestmark = pytest.mark.slow
TASKS, CRITERIA = 4, 20


def behaviour(request: Request, number: int) -> HttpResponse:
    """A judge of three steps or two, and a writer that fails on one criterion and says more about the others."""
    prompt = prompt_of(request)
    if "make a criterion of a grading rubric more explicit" not in prompt:
        return well_behaved(request, number)
    title = criterion_of(prompt)
    if title.startswith("Says 7 about subject 2"):
        return HttpResponse(json.dumps({"criterion": "Shorter."}))
    return HttpResponse(json.dumps({"criterion": f"{title} Which means that it is said in so many words."}))


JUDGES = {
    "three": {}, "two": {"grading": "binary"}, "removed": {"rubric": "examples_removed"},
    "augmented": {"rubric": "augmented"},
}  # fmt: skip


class World:
    def __init__(self, server: FaultServer, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.source = write_jsonl(folder / "research.jsonl", [research_row(i) for i in range(TASKS)])

    def job(self, *judges: str) -> Job:
        """A job with judges that are one model, asked in several ways."""
        named = [
            endpoint(each, self.server.api_base, **{"name": "hosted_vllm/three"} | JUDGES[each]) for each in judges
        ]
        models, writer = [endpoint("reporter", self.server.api_base)], endpoint("writer", self.server.api_base)
        settings = {"benchmark": "researchrubrics", "models": models, "judges": named, "rubric_writer": writer}
        return job_on(self.source, self.folder / "w", **settings)

    def does(self, *judges: str) -> int:
        """The number of calls to judges that a run of all stages makes."""
        before = len(self.server.judge_requests)
        job = prepared(self.job(*judges))
        sampled(job)
        asyncio.run(derive(job))
        judged(job)
        return len(self.server.judge_requests) - before


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Judged in three steps, in two, and in other words."""
    with FaultServer(behaviour) as server:
        research_world = World(server, tmp_path_factory.mktemp("research"))
        assert [TASKS * CRITERIA, 0] == [research_world.does("three"), research_world.does("three")]
        # Nothing is in other words yet: only the writer has calls that can be counted.
        _, derived, judging = plan(research_world.job("augmented"))
        assert [("derive", TASKS * CRITERIA), ("judge", 0)] == [(p.purpose, p.calls) for p in (derived, judging)]
        assert f"{TASKS * CRITERIA} criteria that are not rewritten yet" in judging.note
        assert TASKS * CRITERIA == research_world.does("three", "two")
        # A criterion without examples is the same in the other wording: its call was made.
        assert TASKS * CRITERIA // 2 == research_world.does("three", "two", "removed")
        assert TASKS * CRITERIA - 1 == research_world.does(*JUDGES)
        aggregate(research_world.job(*JUDGES))
        yield research_world


def test_three_steps_are_read_as_two_without_a_call(world: World) -> None:
    query = "select distinct value, grading from verdicts where judge = 'three' order by value"
    assert [(value, "ternary") for value in (0.0, 0.5, 1.0)] == values_in(world.job(), query)
    query = "select count(*) from scores where grading = 'ternary_as_binary' and judge = 'three' and value is not null"
    assert [(2 * TASKS,)] == values_in(world.job(), query)


def test_a_criterion_in_other_words_has_its_own_id_and_stands_for_the_original(world: World) -> None:
    variants = rows_in(world.job(), "from criterion_variants")
    rewritten = [row for row in variants if row["status"] == "ok"]
    (refused,) = [row for row in variants if row["status"] != "ok"]

    assert 2 * TASKS * CRITERIA == len(variants)
    assert ("augmented", "parse_error") == (refused["rubric"], refused["status"])
    assert "no more than the original" in refused["error"]
    assert all(row["criterion_id"] != row["original_id"] for row in rewritten)
    assert not any("e.g." in row["title"] for row in rewritten if row["rubric"] == "examples_removed")
    coverage = dict(values_in(world.job(), "select judge, coverage from leaderboard where score_name = 'compliance'"))
    assert {"three": 1, "removed": 1, "augmented": 1 - 1 / (TASKS * CRITERIA)}.items() <= coverage.items()


def test_what_the_published_code_writes_is_read_as_verdicts() -> None:
    read = graded_rows()
    one = {"task_name": "r0", "pdf": "gemini", "rubric_title": "Says 0.", "verdict": "Partially Satisfied",
           "score": 0.5, "reasoning": "half", "success": True}  # fmt: skip
    failed = one | {"verdict": "Error", "success": False}
    compiled = {
        "task_name": "r0",
        "rubrics": json.dumps([{"title": "Says 0.", "category": "A"}, {"title": "Says 0.", "category": "B"}]),
        "final_presence": json.dumps({"gemini_present": {"values": ["Satisfied", "Not Satisfied"], "null_count": 0}}),
    }
    names = ("task", "model", "criterion", "category", "verdict", "judge")

    def cells(given: dict[str, Any], *names: str) -> list[tuple[Any, ...]]:
        return [tuple(row.get(name) for name in names) for row in read(given)]

    assert [("r0", "gemini", "Says 0.", None, "Partially Satisfied")] == cells(one, *names[:-1])
    nothing = compiled | {"final_presence": json.dumps({"gemini_present": {"values": ["Error", "Unknown"]}})}
    for given in (failed, one | {"verdict": "Unknown"}, nothing):
        assert {(None,)} == set(cells(given, "verdict"))
    both = [("A", "Satisfied"), ("B", "Not Satisfied")]
    assert [("r0", "gemini", "Says 0.", *each, "people") for each in both] == cells(compiled, *names)
    assert [("a-judge",)] * 2 == cells(compiled | {"judge": "a-judge"}, "judge")
    assert [{"task": "r0", "value": 1}] == list(read({"task": "r0", "value": 1}))
    alone = {"sample_id": "r0", "rubric_title": "Says 0.", "verdict": "Satisfied", "success": True}
    twice = [cells(alone, "grading", "occurrence") for _ in range(2)]
    assert [[("binary", 1)], [("binary", 2)]] == twice
    assert [("ternary",)] == cells(alone | {"grading": "ternary"}, "grading")


@pytest.mark.parametrize(("cells", "cause"), [
    ({"final_presence": '{"gemini_present": {"val'}, "`final_presence` is not JSON"),
    ({"final_presence": None}, "`final_presence` holds nothing"),
    ({"rubrics": "[]"}, "`rubrics` holds nothing"),
    ({"final_presence": json.dumps({"gemini_present": {"values": ["Satisfied"], "null_count": 1}})},
     "gemini_present has 1 values for 2 criteria, so it is not known on which"),
])  # fmt: skip
def test_a_table_that_does_not_say_what_was_decided_on_what_is_refused(cells: dict[str, Any], cause: str) -> None:
    presence = {"gemini_present": {"values": ["Satisfied", "Not Satisfied"]}}
    whole = {"task_name": "r0", "rubrics": '[{"title": "a"}, {"title": "b"}]', "final_presence": json.dumps(presence)}

    with pytest.raises(RowError, match=cause):
        list(graded_rows()(whole | cells))


def test_yes_and_no_are_two_steps_and_words_and_numbers_the_benchmarks_own(world: World, tmp_path: Path) -> None:
    decisions: list[dict[str, Any]] = [
        {"criteria_met": True}, {"criteria_met": "false"}, {"value": 1}, {"verdict": "partially satisfied"},
    ]  # fmt: skip
    rows = [
        {"task": "r1", "model": "reporter", "criterion": each["criterion"], "judge": "another", **decision}
        for each, decision in zip(research_row(1)["rubrics"], decisions, strict=False)
    ]
    job = copied(world.job(), tmp_path / "w")
    import_verdicts(job, write_jsonl(tmp_path / "labels.jsonl", rows))

    actual = values_in(job, "select grading, value from verdicts where judge = 'another' order by all")
    assert [("binary", 0.0), ("binary", 1.0), ("ternary", 0.5), ("ternary", 1.0)] == actual
