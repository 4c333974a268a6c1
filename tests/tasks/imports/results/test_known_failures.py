"""What a log says of failed calls stays known: it becomes no decision, and what may hide failures is marked."""

import json
from pathlib import Path
from typing import Any

import pytest

from tasks.config.job import Job
from tasks.exports import export_inspect
from tasks.imports.results.importing import import_results
from tasks.imports.results.inspect_log import decisions_of
from tests.tasks.exports.inspected import documents_of
from tests.tasks.imports.results.conftest import LOGS, SideBySide, asked, notes_of
from tests.tasks.imports.results.made_files import published
from tests.tasks.imports.results.workload import UNREADABLE

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
    found = asked(job, "select distinct status, text, error from responses where task_id = 'sample-fin-2'")
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
    before = asked(job, query)
    assert 2 == len(before)

    said = notes_of(import_results(job, [_as_in_inspect(tmp_path / "q.json", tmp_path)], **place))
    assert before == asked(job, query)
    assert "1 decisions left out, since the call is known to have failed and they may hide that" in said


def test_a_board_does_not_know_what_its_verdicts_do_not_say(side_by_side: SideBySide) -> None:
    found = asked(side_by_side.job, "select distinct model, may_hide_failures from leaderboard where is_judged")

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
    marks = asked(job, "select distinct may_hide_failures from verdicts where model = 'again'")
    assert [{"may_hide_failures": True}] == marks
