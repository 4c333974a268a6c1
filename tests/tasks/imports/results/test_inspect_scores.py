"""Where scorers of Inspect store their decisions, and how an answer is cut off a transcript."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.config.job import Job
from tasks.imports.results.importing import import_results
from tasks.imports.results.inspect_log import decisions_of
from tasks.imports.results.making import after
from tasks.imports.results.sources import Archive
from tests.tasks.imports.results.conftest import LOGS, asked
from tests.tasks.imports.results.workload import rows, titles_of, true_score, weights_of

CUSTOMS: dict[str, tuple[dict[str, Any], list[tuple[str | None, float | None]], bool | None]] = {
    "a list of objects": (
        {"value": 0.5, "metadata": {"any_name": [
            {"id": "c1", "title": "One.", "criteria_met": True}, {"id": "c2", "title": "Two.", "criteria_met": False},
        ]}},
        [("c1", 1.0), ("c2", 0.0)], None,
    ),
    "a list with the criterion as an object": (
        {"value": 0.5, "metadata": {"results": [{"criterion": {"title": "One.", "points": 5}, "met": "no"}]}},
        [("One.", 0.0)], None,
    ),
    "a list in which a failure is a state": (
        {"value": None, "metadata": {"verdicts": [
            {"criterion_id": "c1", "value": None, "status": "timeout"},
            {"criterion_id": "c2", "value": 1, "status": "met"},
        ]}},
        [("c1", None), ("c2", 1.0)], False,
    ),
    "grades in the order of the rubric": (
        {"value": 0.5, "metadata": {"grades": ["true", "false"], "weights": [5, -2]}}, [(None, 1.0), (None, 0.0)], True,
    ),
    "a value by criterion": ({"value": {"c1": "C", "c2": "I"}, "metadata": {}}, [("c1", 1.0), ("c2", 0.0)], None),
    "a mapping in the metadata": (
        {"value": 0.5, "metadata": {"n": 2, "verdicts": {"c1": True, "c2": None}}}, [("c1", 1.0), ("c2", None)], False,
    ),
    "a mapping among others": (
        {"value": 0.5, "metadata": {"cached": {"c1": False}, "met": {"c1": True}, "weights": {"c1": 1}}},
        [("c1", 1.0)], None,
    ),
    "mappings of which none is named for decisions": (
        {"value": 0.5, "metadata": {"cached": {"c1": False}, "long": {"c1": True}}}, [], None,
    ),
    "a mapping of objects": (
        {"value": 0.5, "metadata": {"criteria": {"c1": {"met": "no"}, "c2": {"error": "HTTP 500"}}}},
        [("c1", 0.0), ("c2", None)], False,
    ),
    "the metadata itself": (
        {"value": 0.5, "metadata": {"c1": True, "c2": False, "judge": "x"}}, [("c1", 1.0), ("c2", 0.0)], None,
    ),
    "an explanation with marks": (
        {"value": 0.5, "explanation": "[✗] [-3] Two\n\nparagraphs.\n  Not said.\n\n[✓] [5] One.\n"
         "  Invalid grading response format: x"},
        [("Two\n\nparagraphs.", 0.0), ("One.", None)], True,
    ),
    "a score alone": ({"value": 0.5, "explanation": "Well done.", "metadata": {"points": 3}}, [], None),
}  # fmt: skip


@pytest.mark.parametrize("case", CUSTOMS)
def test_decisions_are_found_in_each_custom(case: str) -> None:
    score, decisions, may_hide = CUSTOMS[case]

    found = decisions_of(score, {})
    if not decisions:
        assert found is None
        return
    assert found is not None
    assert decisions == [(each.criterion, each.value) for each in found[0]]
    assert may_hide is found[1]


def test_grades_by_place_are_of_the_rubric_in_its_order_and_may_hide_failures(job: Job, tmp_path: Path) -> None:
    """As a scorer of another package stores them: grades and weights, and nothing that names a criterion."""
    document = json.loads((LOGS / "brief.json").read_text(encoding="utf-8"))
    for sample in document["samples"]:
        sample["metadata"] = {"task": sample["id"]}
        for score in sample["scores"].values():
            items = score["metadata"]["criteria"]
            score["metadata"] = {
                "grades": ["true" if item["criteria_met"] else "false" for item in items],
                "weights": [item["weight"] for item in items],
            }
    (tmp_path / "x.json").write_text(json.dumps(document), encoding="utf-8")
    import_results(job, [tmp_path / "x.json"])

    found = asked(job, "select distinct task_id, value from scores where score_name = 'score' and value is not null")
    scores = {row["task"]: true_score("brief", row) for row in rows()}
    true = {task: pytest.approx(score) for task, score in scores.items() if score is not None}
    assert true == {row["task_id"]: row["value"] for row in found}
    assert [{"hides": True}] == asked(job, "select distinct may_hide_failures as hides from verdicts")


def test_a_log_without_criteria_brings_responses_alone(job: Job, tmp_path: Path) -> None:
    document = json.loads((LOGS / "brief.json").read_text(encoding="utf-8"))
    for sample in document["samples"]:
        for score in sample["scores"].values():
            score["metadata"] = {}
    (tmp_path / "x.json").write_text(json.dumps(document), encoding="utf-8")

    (report, *_) = import_results(job, [tmp_path / "x.json"])
    assert "6 responses and 0 verdicts imported" in report.notes[0]


def test_a_log_of_a_run_that_did_not_end_is_read_and_says_so(job: Job, tmp_path: Path) -> None:
    with zipfile.ZipFile(LOGS / "brief.eval") as whole, zipfile.ZipFile(tmp_path / "x.eval", "w") as cut:
        archive = Archive(LOGS / "brief.eval", (LOGS / "brief.eval").read_bytes())
        header = archive.json("header.json")
        cut.writestr("_journal/start.json", json.dumps({"version": 2, "eval": header["eval"], "plan": {}}))
        for name in [name for name in whole.namelist() if name.startswith("samples/")][:2]:
            cut.writestr(name, json.dumps(_moved_to_attachments(archive.json(name))))

    (report, *others) = import_results(job, [tmp_path / "x.eval"])
    assert "2 responses" in report.notes[0]
    assert any("the log's status is started" in note for each in others for note in each.notes)


def _moved_to_attachments(sample: dict[str, Any]) -> dict[str, Any]:
    """A sample whose long texts stand among its attachments, as in logs of agents."""
    attachments = {}
    for place, message in enumerate(sample["input"]):
        attachments[str(place)] = message["content"]
        message["content"] = f"attachment://{place}"
    return {**sample, "attachments": attachments}


PIECES = st.sampled_from(["a", "b", "\n", " ", ":", "user: ", "assistant: "])
TEXTS = st.lists(PIECES, min_size=1, max_size=12).map("".join)


@given(st.lists(TEXTS, min_size=1, max_size=5), TEXTS)
def test_the_answer_is_what_the_harness_put_behind_the_conversation(turns: list[str], said: str) -> None:
    answer = said.strip()
    asked = turns if len(turns) % 2 else turns[1:]  # the last turn is the user's
    messages = [(("user", "assistant")[i % 2], text) for i, text in enumerate(asked)]
    transcript = "".join(f"{role}: {text}\n" for role, text in [*messages, ("assistant", answer)]).strip()

    assert answer == after(messages, transcript)


def test_the_workload_has_what_the_tests_are_about() -> None:
    assert any(weight < 0 for row in rows() for weight in weights_of(row))
    assert all(len(titles_of(row)) == len(set(titles_of(row))) for row in rows())
