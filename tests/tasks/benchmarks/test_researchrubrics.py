"""ResearchRubrics from rows to figures: three-step verdicts, both scores, other wordings, people beside them."""

import asyncio
import json
from collections import defaultdict
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
from tests.kit import copied, endpoint, job_on, judged, prepared, sampled, values_in, write_jsonl
from tests.tasks.benchmarks.research import WEIGHTS, research_row
from warehouse import Reader, Warehouse

pytestmark = pytest.mark.slow
TASKS, CRITERIA = 4, 20
WITH_EXAMPLES = CRITERIA // 2


def behaviour(request: Request, number: int) -> HttpResponse:
    """A judge of three steps or two, and a writer that fails on one criterion and says more about the others."""
    prompt = prompt_of(request)
    if "make a criterion of a grading rubric more explicit" not in prompt:
        return well_behaved(request, number)
    title = criterion_of(prompt)
    if title.startswith("Says 7 about subject 2"):
        return HttpResponse(json.dumps({"criterion": "Shorter."}))
    return HttpResponse(json.dumps({"criterion": f"{title} Which means that it is said in so many words."}))


class World:
    def __init__(self, server: FaultServer, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.source = write_jsonl(folder / "research.jsonl", [research_row(i) for i in range(TASKS)])

    def endpoint(self, label: str, **settings: Any) -> dict[str, Any]:
        return endpoint(label, self.server.api_base, **settings)

    def job(self, judges: list[dict[str, Any]]) -> Job:
        models, writer = [self.endpoint("reporter")], self.endpoint("writer")
        named = {"benchmark": "researchrubrics", "models": models, "judges": judges, "rubric_writer": writer}
        return job_on(self.source, self.folder / "w", **named)

    def does(self, *judges: dict[str, Any]) -> int:
        """The number of calls to judges that a run of all stages makes."""
        before = len(self.server.judge_requests)
        job = prepared(self.job(list(judges)))
        sampled(job)
        asyncio.run(derive(job))
        judged(job)
        return len(self.server.judge_requests) - before


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    """Judged in three steps, in two, and in other words."""
    with FaultServer(behaviour) as server:
        research_world = World(server, tmp_path_factory.mktemp("research"))
        three = research_world.endpoint("three")
        assert TASKS * CRITERIA == research_world.does(three)
        assert 0 == research_world.does(three)
        later = plan(
            research_world.job([research_world.endpoint("later", name="hosted_vllm/three", rubric="augmented")])
        )
        # Nothing is in other words yet: only the writer has calls that can be counted.
        assert [("derive", TASKS * CRITERIA), ("judge", 0)] == [
            (p.purpose, p.calls) for p in later if p.purpose != "sample"
        ]
        assert f"{TASKS * CRITERIA} criteria that are not rewritten yet" in later[-1].note
        two = research_world.endpoint("two", name="hosted_vllm/three", grading="binary")
        assert TASKS * CRITERIA == research_world.does(three, two)
        # A criterion without examples is the same in the other wording: its call was made.
        removed = research_world.endpoint("removed", name="hosted_vllm/three", rubric="examples_removed")
        assert TASKS * WITH_EXAMPLES == research_world.does(three, two, removed)
        augmented = research_world.endpoint("augmented", name="hosted_vllm/three", rubric="augmented")
        assert TASKS * CRITERIA - 1 == research_world.does(three, two, removed, augmented)
        job = research_world.job([three, two, removed, augmented])
        aggregate(job)
        yield research_world


@pytest.fixture
def reader(world: World) -> Iterator[Reader]:
    with Warehouse(world.folder / "w").reader() as opened:
        yield opened


def verdicts_of(reader: Reader, judge: str) -> dict[str, dict[int, float]]:
    """Return a judge's decisions, by task and position in the rubric, from the stored rows alone."""
    by_task: dict[str, dict[int, float]] = defaultdict(dict)
    query = "select task_id, position, value from verdicts join criteria using (task_id, criterion_id) where judge = ?"
    for row in reader.rows(query, [judge]):
        by_task[row["task_id"]][row["position"]] = row["value"]
    return by_task


def test_three_steps_are_read_as_two_without_a_call(reader: Reader) -> None:
    positive = sum(w for w in WEIGHTS if w > 0)
    expected = {
        task: sum(WEIGHTS[position] for position, value in values.items() if value == 1) / positive
        for task, values in verdicts_of(reader, "three").items()
    }
    rows = reader.rows(
        "select task_id, value from scores where judge = 'three' and grading = 'ternary_as_binary' "
        "and score_name = 'compliance'"
    )

    assert pytest.approx(expected) == {row["task_id"]: row["value"] for row in rows}
    assert {0.0, 0.5, 1.0} == {v for of_task in verdicts_of(reader, "three").values() for v in of_task.values()}
    assert 0 == reader.value("select count(*) from verdicts where grading = 'ternary_as_binary'")


def test_a_criterion_in_other_words_has_its_own_id_and_stands_for_the_original(reader: Reader) -> None:
    variants = reader.rows("from criterion_variants order by rubric, task_id")
    rewritten = [row for row in variants if row["status"] == "ok"]
    refused = [row for row in variants if row["status"] != "ok"]

    assert 2 * TASKS * CRITERIA == len(variants)
    assert [("augmented", "parse_error")] == [(row["rubric"], row["status"]) for row in refused]
    assert "no more than the original" in refused[0]["error"]
    assert all(row["criterion_id"] != row["original_id"] for row in rewritten)
    assert not any("e.g." in row["title"] for row in rewritten if row["rubric"] == "examples_removed")
    boards = reader.rows("select judge, coverage from leaderboard where score_name = 'compliance'")
    coverage = {row["judge"]: row["coverage"] for row in boards}
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
    names = ("task", "model", "criterion", "category", "verdict")

    assert [("r0", "gemini", "Says 0.", "Partially Satisfied")] == [
        tuple(row[name] for name in names if name != "category") for row in read(one)
    ]
    nothing = compiled | {"final_presence": json.dumps({"gemini_present": {"values": ["Error", "Unknown"]}})}
    assert [None] * 4 == [
        row["verdict"] for given in (failed, one | {"verdict": "Unknown"}, nothing) for row in read(given)
    ]
    assert [("r0", "gemini", "Says 0.", "A", "Satisfied"), ("r0", "gemini", "Says 0.", "B", "Not Satisfied")] == [
        tuple(row[name] for name in names) for row in read(compiled)
    ]
    assert {"people"} == {row["judge"] for row in read(compiled)}
    assert {"a-judge"} == {row["judge"] for row in read(compiled | {"judge": "a-judge"})}
    assert ["A", "B"] == [row["category"] for row in read(compiled)]
    assert [{"task": "r0", "value": 1}] == list(read({"task": "r0", "value": 1}))
    alone = {"sample_id": "r0", "rubric_title": "Says 0.", "verdict": "Satisfied", "success": True}
    assert [("binary", 1), ("binary", 2)] == [
        (row["grading"], row["occurrence"]) for _ in range(2) for row in read(alone)
    ]
    assert ["ternary"] == [row["grading"] for row in read(alone | {"grading": "ternary"})]


@pytest.mark.parametrize(("cells", "cause"), [
    ({"final_presence": '{"gemini_present": {"val'}, "`final_presence` is not JSON"),
    ({"final_presence": None}, "`final_presence` holds nothing"),
    ({"rubrics": "[]"}, "`rubrics` holds nothing"),
    ({"final_presence": json.dumps({"gemini_present": {"values": ["Satisfied"], "null_count": 1}})},
     "gemini_present has 1 values for 2 criteria, so they cannot be matched"),
])  # fmt: skip
def test_a_table_that_does_not_say_what_was_decided_on_what_is_refused(cells: dict[str, Any], cause: str) -> None:
    presence = {"gemini_present": {"values": ["Satisfied", "Not Satisfied"]}}
    whole = {"task_name": "r0", "rubrics": '[{"title": "a"}, {"title": "b"}]', "final_presence": json.dumps(presence)}

    with pytest.raises(RowError, match=cause):
        list(graded_rows()(whole | cells))


def test_yes_and_no_are_two_steps_and_words_and_numbers_the_benchmarks_own(world: World, tmp_path: Path) -> None:
    first, *others = (each["criterion"] for each in research_row(1)["rubrics"])
    decisions: list[dict[str, Any]] = [
        {"criteria_met": True}, {"criteria_met": "false"}, {"value": 1}, {"verdict": "partially satisfied"},
    ]  # fmt: skip
    rows = [
        {"task": "r1", "model": "reporter", "criterion": criterion, "judge": "another", **decision}
        for criterion, decision in zip([first, *others], decisions, strict=False)
    ]
    job = copied(world.job([]), tmp_path / "w")
    import_verdicts(job, write_jsonl(tmp_path / "labels.jsonl", rows))

    actual = values_in(job, "select grading, value from verdicts where judge = 'another' order by all")
    assert [("binary", 0.0), ("binary", 1.0), ("ternary", 0.5), ("ternary", 1.0)] == actual
