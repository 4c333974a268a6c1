"""Where scorers of Inspect AI store criteria, and failures in logs that are known to be such."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.config.job import Job
from tasks.exports.inspect_logs import export_inspect
from tasks.imports.results.importing import after, import_results
from tasks.imports.results.inspect_log import decisions_of
from tasks.imports.results.records import Archive
from tests.kit import rows_in
from tests.tasks.exports.inspected import documents_of
from tests.tasks.imports.results.conftest import LOGS, SideBySide, notes_of
from tests.tasks.imports.results.made_files import published
from tests.tasks.imports.results.workload import UNREADABLE, rows, titles_of, true_score, weights_of

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

    found = rows_in(job, "select distinct task_id, value from scores where score_name = 'score' and value is not null")
    scores = {row["task"]: true_score("brief", row) for row in rows()}
    true = {task: pytest.approx(score) for task, score in scores.items() if score is not None}
    assert true == {row["task_id"]: row["value"] for row in found}
    assert [{"hides": True}] == rows_in(job, "select distinct may_hide_failures as hides from verdicts")


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


UNREAD = "Could not parse grading response"
LOST = "Failed to parse judge response"
NO_DECISIONS: dict[str, tuple[dict[str, Any], str, str, bool | None]] = {
    "nothing under the first key, and points for it": (
        {"met": None, "score": 0, "error": "judge timed out"}, "timeout", "judge timed out", False,
    ),
    "a status that is none of ours": (
        {"status": "error", "value": 0}, "parse_error", "the log's status is error", False,
    ),
    "an error beside a decision": ({"met": False, "error": "overloaded"}, "provider_error", "overloaded", False),
    "an explanation that is none": (
        {"criteria_met": False, "explanation": f"{UNREAD}: x"}, "parse_error", f"{UNREAD}: x", True,
    ),
    "an unmet criterion without a reason": (
        {"met": False, "explanation": "No explanation provided"}, "parse_error", "No explanation provided", True,
    ),
    "an exception as the reason": (
        {"met": False, "explanation": f"{LOST}: Error code: 500 - {{'error': 'x'}}"}, "provider_error", LOST, True,
    ),
    "an exception about time": (
        {"met": False, "explanation": f"{LOST}: Request timed out."}, "timeout", LOST, True,
    ),
    "an HTTP error": ({"met": None, "error": "HTTP 429: slow down"}, "provider_error", "HTTP 429", False),
    "an HTTP error about length": (
        {"met": None, "error": "status_code=400 maximum context"}, "context_length", "status_code", False,
    ),
    "a reply that cannot be read": (
        {"met": None, "error": "Expecting value: line 1"}, "parse_error", "Expecting value", False,
    ),
    "an error alone": ({"error": "judge timed out"}, "timeout", "judge timed out", False),
    "a value between": (
        {"score": 0.7}, "parse_error", "the log has '0.7', which is neither met, partly met nor unmet", None,
    ),
    "a word that is unknown": ({"met": "perhaps"}, "parse_error", "the log has 'perhaps', which is neither", None),
}  # fmt: skip


@pytest.mark.parametrize("case", NO_DECISIONS)
def test_what_is_no_decision_is_a_failure_with_its_cause(case: str) -> None:
    item, status, cause, may_hide = NO_DECISIONS[case]
    items = [{"criterion": "One.", **item}, {"criterion": "Two.", "met": True}]

    found = decisions_of({"metadata": {"criteria": items}}, {})
    assert found is not None
    (lost, decided), hides = found
    assert (None, status, 1.0) == (lost.value, lost.status, decided.value)
    assert lost.error is not None
    assert lost.error.startswith(cause)
    assert may_hide is hides


def test_words_and_states_beside_a_decision_are_read() -> None:
    items = [
        {"criterion": "One.", "verdict": "NOT MET"}, {"criterion": "Two.", "verdict": "MET"},
        {"criterion": "Three.", "status": "ok", "score": 1}, {"criterion": "Four.", "verdict": "not_met"},
    ]  # fmt: skip

    found = decisions_of({"metadata": {"criteria": items}}, {})
    assert found is not None
    assert [0.0, 1.0, 1.0, 0.0] == [each.value for each in found[0]]
    assert found[1] is None


def test_a_met_criterion_without_a_reason_is_a_decision_of_a_tool_that_hides_failures() -> None:
    items = [{"criterion": "One.", "points": 5, "met": True, "explanation": "No explanation provided", "tags": []}]

    found = decisions_of({"metadata": {"detailed_results": items}}, {})
    assert found is not None
    assert ([1.0], True) == ([each.value for each in found[0]], found[1])


def _edited(path: Path, edit: Any) -> Path:
    document = json.loads((LOGS / "brief.json").read_text(encoding="utf-8"))
    for sample in document["samples"]:
        edit(sample)
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def _without_criteria(sample: dict[str, Any]) -> None:
    for score in sample["scores"].values():
        score["metadata"] = {}


def test_scores_without_criteria_are_counted(job: Job, tmp_path: Path) -> None:
    said = notes_of(import_results(job, [_edited(tmp_path / "x.json", _without_criteria)]))
    assert "4 answers have scores but no criteria that can be read; read are a list of objects" in said


def test_flags_that_name_no_criterion_are_no_criteria(job: Job, tmp_path: Path) -> None:
    def flagged(sample: dict[str, Any]) -> None:
        for score in sample["scores"].values():
            score["metadata"] = {"is_cached": True, "checks": {"is_long": False}}

    said = notes_of(import_results(job, [_edited(tmp_path / "x.json", flagged)]))
    assert "4 answers have scores but no criteria that can be read" in said
    assert "in the log" not in said


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "status"), [("token", "truncated"), ("time", "timeout"), ("cost", "provider_error")])
def test_an_answer_that_was_stopped_at_a_limit_is_a_failure(job: Job, tmp_path: Path, kind: str, status: str) -> None:
    def limited(sample: dict[str, Any]) -> None:
        if sample["id"] == "sample-fin-2":
            sample["limit"] = {"type": kind, "limit": 10.0, "reason": "Exceeded.\nBy 8."}

    import_results(job, [_edited(tmp_path / "x.json", limited)])
    found = rows_in(job, "select distinct status, text, error from responses where task_id = 'sample-fin-2'")
    assert [(status, None, f"stopped at the {kind} limit: Exceeded. By 8.")] == [tuple(row.values()) for row in found]


def _as_in_inspect(path: Path, folder: Path) -> Path:
    """The published harness's log of the answers that another log has, in the same place."""
    document = json.loads(published(folder / "p.json").read_text(encoding="utf-8"))
    document["outputs"].pop("brief")
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_a_known_failure_does_not_give_way_to_a_decision_that_may_hide_it(job: Job, tmp_path: Path) -> None:
    place = {"model": "thorough", "judge": "strict"}
    import_results(job, [LOGS / "thorough.eval"], **place)
    query = f"select trial, status, value from verdicts where task_id = '{UNREADABLE[1]}' and value is null order by 1"
    before = rows_in(job, query)
    assert 2 == len(before)

    said = notes_of(import_results(job, [_as_in_inspect(tmp_path / "q.json", tmp_path)], **place))
    assert before == rows_in(job, query)
    assert "1 decisions left out, since the call is known to have failed and they may hide that" in said


def test_a_board_does_not_know_what_its_verdicts_do_not_say(side_by_side: SideBySide) -> None:
    found = rows_in(side_by_side.job, "select distinct model, may_hide_failures from leaderboard where is_judged")

    assert {
        "thorough": True, "brief": True, "openai-api/workload/thorough": None, "openai-api/workload/brief": None,
        "evalscope thorough": False, "evalscope brief": False,
    } == {row["model"]: row["may_hide_failures"] for row in found}  # fmt: skip


@pytest.mark.slow
def test_the_mark_goes_out_in_a_log_of_inspect_right_after_the_import_and_comes_back(job: Job, tmp_path: Path) -> None:
    import_results(job, [published(tmp_path / "p.json")])
    export_inspect(job.model_copy(update={"named_models": ("thorough",)}), tmp_path / "logs")
    (log,) = (tmp_path / "logs").iterdir()
    assert documents_of(log)["header.json"]["eval"]["metadata"]["may_hide_failures"] is True

    said = notes_of(import_results(job, [log], model="again"))
    assert "may store a failed judge call as a decision" in said
    marks = rows_in(job, "select distinct may_hide_failures from verdicts where model = 'again'")
    assert [{"may_hide_failures": True}] == marks
