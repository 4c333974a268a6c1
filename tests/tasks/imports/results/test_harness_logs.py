"""Logs of several harnesses on the same workload, whose true scores are known."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tasks.config.job import Job
from tasks.imports.matching import Wording
from tasks.imports.results.importing import import_results, matched
from tasks.imports.results.records import Decision
from tasks.rules.identity import criterion_hash
from tests.kit import Row, rows_in, values_in, write_jsonl
from tests.tasks.imports.results.conftest import LOGS, SideBySide, brief_log, notes_of, unpacked
from tests.tasks.imports.results.harness_files import (
    example,
    m42,
    published,
    simple_evals,
    simple_evals_html,
)
from tests.tasks.imports.results.workload import MODELS, UNANSWERED, rows, true_score, weights_of

SCORES = "select model, task_id, trial, value from scores where score_name = 'score' order by all"


def test_logs_of_three_harnesses_stand_side_by_side_with_their_true_scores(
    side_by_side: SideBySide,
) -> None:
    actual = {tuple(cell): value for *cell, value in values_in(side_by_side.job, SCORES)}
    wanted = {}
    for model, row in [(model, row) for model in MODELS for row in rows()]:
        task = row["task"]
        true = true_score(model, row)
        has_response = (model, task) != UNANSWERED
        wanted[model, task, 1] = (
            true_score(model, row, hides_failures=True) if has_response else None
        )
        wanted |= {(f"openai-api/workload/{model}", task, epoch): true for epoch in (1, 2)}
        wanted |= {(f"evalscope {model}", task, 1): true} if has_response else {}

    assert {
        cell: None if value is None else pytest.approx(value) for cell, value in wanted.items()
    } == actual


def test_failed_calls_are_failures_with_their_cause_and_never_unmet(
    side_by_side: SideBySide,
) -> None:
    job = side_by_side.job
    inspected = "openai-api/workload"
    lost = rows_in(
        job, "select judge, status, error, may_hide_failures from verdicts where value is null"
    )
    failed = values_in(
        job, "select model, status, text, error from responses where status <> 'ok' order by 1"
    )

    judges = sorted((row["judge"], row["status"]) for row in lost)
    assert [(f"{inspected}/strict", "parse_error")] * 2 + [("strict", "parse_error")] == judges
    assert all(row["error"] and row["may_hide_failures"] is False for row in lost)
    failures = [
        ("brief", "provider_error", None),
        *[(f"{inspected}/brief", "provider_error", None)] * 2,
    ]
    assert failures == [row[:3] for row in failed]
    assert "N/A" in failed[0][3]
    assert failed[1][3].startswith("BadRequestError")
    assert "14 grades of failed responses left out" in side_by_side.notes["published"]
    assert rows_in(job, "from verdicts where task_id = ? and model = 'brief'", UNANSWERED[1]) == []


def test_what_hides_failures_is_marked_on_verdicts_and_boards(side_by_side: SideBySide) -> None:
    job = side_by_side.job
    notes = side_by_side.notes
    assert "may store a failed judge call as a decision" in notes["published"]
    assert "may store" not in notes["inspect"]
    marked = "select distinct model from verdict_details where may_hide_failures order by 1"
    assert values_in(job, marked) == [("brief",), ("thorough",)]
    # A leaderboard shows it as unknown if its verdicts do not say it.
    hiding = {
        "": True,
        "openai-api/workload/": None,
        "evalscope ": False,
    }
    of_boards = values_in(
        job, "select distinct model, may_hide_failures from leaderboard where is_judged"
    )
    assert {f"{tool}{model}": may for tool, may in hiding.items() for model in MODELS} == dict(
        of_boards
    )


def test_the_means_of_a_log_are_compared_and_differences_are_named_with_their_cause(
    side_by_side: SideBySide,
) -> None:
    notes = side_by_side.notes

    assert (
        "thorough: mean score 0.6923 in the log, 0.6923 here: equal on 3 tasks"
        in notes["published"]
    )
    assert (
        f"differs on {UNANSWERED[1]} trial 1 (0.0000 and no score: the response failed)"
        in notes["published"]
    )
    assert (
        "thorough: mean score 0.7551 in the log, 0.7551 here: equal on 2 tasks"
        in notes["evalscope"]
    )
    assert "brief has no prediction on sample-fin-3" in notes["evalscope"]
    assert (
        "openai-api/workload/brief: mean score 0.0133 in the log, 0.0133 here: equal"
        in notes["inspect"]
    )


def test_usage_and_time_of_calls_are_kept(side_by_side: SideBySide) -> None:
    columns = (
        "prompt_tokens, cached_tokens, completion_tokens, served_model, finish_reason,"
        " latency_s > 0"
    )
    cell = "task_id = 'sample-fin-2' and trial = 1 and model like '%_thorough'"
    of_responses = values_in(side_by_side.job, f"select {columns} from responses where {cell}")
    assert of_responses == [(176, 88, 17, "thorough-2026-11-01", "stop", True)] * 2
    query = (
        "select min(latency_s) > 0, min(completion_tokens) > 0 from verdicts where model like"
        " 'evalscope %'"
    )
    assert values_in(side_by_side.job, query) == [(True, True)]


@pytest.mark.slow
def test_a_log_in_either_form_of_inspect_is_the_same(job: Job) -> None:
    (first, *_) = import_results(job, [LOGS / "brief.eval"])
    (again, *_) = import_results(job, [LOGS / "brief.json"])

    assert first.rows == 52
    assert again.rows == 0
    assert "52 already present" in again.notes[0]


@pytest.mark.slow
def test_other_weights_and_scores_clipped_one_by_one_are_told_apart(
    job: Job, tmp_path: Path
) -> None:
    file = published(tmp_path / "p.json")
    document = json.loads(file.read_text())
    document["outputs"]["thorough"]["sample-fin-2"]["weights"][0] += 1
    document["points_clipped"]["thorough"][0] += 0.25
    document["points_clipped"]["brief"] = [
        max(value, 0) for value in document["points_clipped"]["brief"]
    ]
    file.write_text(json.dumps(document))
    below = [
        row["task"] for row in rows() if (true_score("brief", row, hides_failures=True) or 0) < 0
    ]

    notes = notes_of(import_results(job, [file]))
    assert "1 weights in the log differ from those of this revision" in notes
    assert "1 other weights)" in notes
    assert below
    assert all(f"{task} trial 1 (0.0000 and -" in notes for task in below)
    assert "clipped for each response there" in notes


@pytest.mark.slow
def test_the_other_adapter_of_evalscope_comes_in_with_its_scores(
    health: Job, tmp_path: Path
) -> None:
    notes = notes_of(import_results(health, [unpacked("evalhealth", tmp_path)]))

    assert notes.count("equal on 3 tasks") == 2
    actual = {(model, task): value for model, task, _, value in values_in(health, SCORES)}
    wanted = {(m, r["prompt_id"]): true_score(m, r) for m in MODELS for r in rows("healthbench")}
    assert pytest.approx(wanted) == actual


@pytest.mark.slow
@pytest.mark.parametrize("form", ["json", "jsonl", "html"])
def test_every_form_of_simple_evals_is_the_same(health: Job, tmp_path: Path, form: str) -> None:
    examples = [example("thorough", row) for row in rows("healthbench")]
    file = tmp_path / f"result.{form}"
    {
        "json": simple_evals,
        "html": simple_evals_html,
        "jsonl": write_jsonl,
    }[form](file, examples)
    notes = notes_of(import_results(health, [file], model="thorough", judge="grader"))

    assert "equal on 3 tasks" in notes
    actual = {task: value for _, task, _, value in values_in(health, SCORES)}
    assert (
        pytest.approx(
            {row["prompt_id"]: true_score("thorough", row) for row in rows("healthbench")}
        )
        == actual
    )
    assert (
        len(rows_in(health, "from responses where text like '%<b>text</b> & nothing else.'")) == 3
    )
    assert values_in(health, "select distinct judge from verdicts") == [("grader",)]


@pytest.mark.slow
def test_repeats_of_simple_evals_are_trials_and_a_refused_call_is_a_failure(
    health: Job, tmp_path: Path
) -> None:
    first = example("thorough", rows("healthbench")[0])
    refused = {
        **first,
        "completion": [{"content": "No response (bad request).", "role": "assistant"}],
    }
    import_results(health, [simple_evals(tmp_path / "r.json", [first, refused])], model="m")

    assert values_in(health, "select trial, status from responses order by trial") == [
        (1, "ok"),
        (2, "provider_error"),
    ]


@pytest.mark.slow
def test_a_guess_of_m42_is_a_failed_verdict(health: Job, tmp_path: Path) -> None:
    given = rows("healthbench")
    task = given[0]["prompt_id"]
    file = m42(tmp_path / "judge_responses.jsonl", "thorough", given, guessed=(task, 0))
    notes = notes_of(import_results(health, [file], model="thorough", judge="llama"))

    query = "select task_id, status, error like '%guessed%' from verdicts where value is null"
    assert [(task, "parse_error", True)] == values_in(health, query)
    assert f"{task} trial 1 (" in notes
    assert sum(len(weights_of(row)) for row in given) == len(rows_in(health, "from verdicts"))


def _edit(file: Path, edit: Callable[[Row], None]) -> None:
    """Edit the rows of a file."""
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        edit(row)
    write_jsonl(file, rows)


def _with_hard_part(folder: Path, text: str | None, met: bool | None) -> Path:
    """A log with a second subset that repeats every task; `text` replaces its responses, `met` its
    decisions.
    """

    def edit(row: Row) -> None:
        if text is not None and "model_output" in row:
            row["model_output"]["choices"][0]["message"]["content"] = text
        score = row.get("sample_score", {}).get("score", {})
        if text is not None and score:
            score["prediction"] = score["extracted_prediction"] = text
        for attempt in score.get("metadata", {}).get("judge_attempts", []):
            if met is not None and attempt["status"] == "success":
                attempt["parsed_value"]["criteria_met"] = met

    log = unpacked("evalscope", folder)
    for part in log.glob("*/*/prbench_finance.jsonl"):
        _edit(Path(shutil.copy(part, part.with_name("prbench_finance_hard.jsonl"))), edit)
    return log


@pytest.mark.parametrize(
    ("text", "met", "trials", "judge_trials"),
    [
        (None, None, [(1, 5)], [1]),
        ("Another text.", None, [(1, 5), (2, 5)], [1]),
        (None, True, [(1, 5)], [1, 2]),
    ],
)
def test_in_another_part_another_text_is_a_further_trial_and_another_decision_a_further_one_of_the_judge(
    job: Job,
    tmp_path: Path,
    text: str | None,
    met: bool | None,
    trials: list[Any],
    judge_trials: list[int],
) -> None:
    import_results(job, [_with_hard_part(tmp_path, text, met)])

    assert trials == values_in(
        job, "select trial, count(*) from responses group by trial order by trial"
    )
    assert {text} - {None} == {
        row[0] for row in values_in(job, "select text from responses where trial = 2")
    }
    assert [(n,) for n in judge_trials] == values_in(
        job, "select distinct judge_trial from verdicts order by 1"
    )
    assert {(1.0,), (None,)} >= set(
        values_in(job, "select value from verdicts where judge_trial = 2")
    )


def test_the_scores_of_several_judges_together_are_compared_with_the_mean_over_them(
    job: Job, tmp_path: Path
) -> None:
    """A second judge finds all criteria met, negative ones too; the log has the mean of both
    scores.
    """

    def edit(row: Row) -> None:
        score = row["sample_score"]["score"]
        attempts = score["metadata"]["judge_attempts"]
        rubric = row["sample_score"]["sample_metadata"]["rubrics"]
        if all(attempt["status"] == "success" for attempt in attempts):
            mild = sum(each["weight"] for each in rubric) / sum(
                max(each["weight"], 0) for each in rubric
            )
            score["value"] = {"clipped_score": (score["value"]["clipped_score"] + mild) / 2}
        mild_attempt = {
            "judge_id": "mild",
            "status": "success",
            "parsed_value": {"criteria_met": True},
        }
        score["metadata"]["judge_attempts"] += [attempt | mild_attempt for attempt in attempts]

    log = unpacked("evalscope", tmp_path)
    shutil.rmtree(log / "reports")
    for file in log.glob("reviews/*/*.jsonl"):
        _edit(file, edit)
    notes = notes_of(import_results(job, [log]))
    for model, mean in (("brief", "0.4000"), ("thorough", "0.8125")):
        assert f"{model}: mean score {mean} in the log, {mean} here: equal on 2 tasks" in notes
    assert len(rows_in(job, "select distinct judge from verdicts")) == 2


def _with_scores(path: Path, scored: Callable[[Row, Row], Row]) -> Path:
    """A log of Inspect whose scores are replaced; `scored` makes them of a sample and its score."""
    return brief_log(
        path,
        lambda sample: sample.update(
            scores={
                n: s
                for score in sample["scores"].values()
                for n, s in scored(sample, score).items()
            }
        ),
    )


def test_the_means_of_two_scorers_are_over_tasks_also_where_an_epoch_has_no_score(
    job: Job, tmp_path: Path
) -> None:
    """The first task has one score, the second two."""

    def scored(sample: Row, score: Row) -> Row:
        items = [dict(item) for item in score["metadata"]["criteria"]]
        if sample["id"] == "sample-fin-2" and sample["epoch"] == 2:
            items[0] |= {"criteria_met": None, "error": "HTTP 500"}
        lost = items[0]["criteria_met"] is None
        harsh = {
            **score,
            "value": None if lost else score["value"],
            "metadata": {"criteria": items},
        }
        return {
            "harsh": harsh,
            "mild": score,
            "length": {"value": 7, "metadata": {}},
        }

    log = _with_scores(tmp_path / "x.json", scored)
    notes = [
        line
        for line in notes_of(import_results(job, [log], model="m")).splitlines()
        if " in the log, " in line
    ]
    mean = "mean score 0.0133 in the log, 0.0133 here"
    for scorer, line in zip(("harsh", "mild"), notes, strict=True):
        assert line.startswith(f"m by openai-api/workload/strict ({scorer}): {mean}: ")


@pytest.mark.parametrize("is_named", [False, True])
def test_a_mean_is_compared_where_a_value_is_called_a_score(
    job: Job, tmp_path: Path, is_named: bool
) -> None:
    """As `healthbench` of inspect_evals stores it; Inspect itself counts values by criterion as
    0.
    """

    def scored(_: Row, score: Row) -> Row:
        if is_named:
            value = {"healthbench_score": score["value"], "criteria_met": 3}
            return {
                "_scorer": {
                    "value": value,
                    "metadata": {"detailed_results": score["metadata"]["criteria"]},
                }
            }
        value = {item["title"]: item["criteria_met"] for item in score["metadata"]["criteria"]}
        return {"rubric": {"value": value, "metadata": {}}}

    notes = notes_of(import_results(job, [_with_scores(tmp_path / "x.json", scored)], model="m"))
    assert "46 verdicts imported" in notes
    assert (
        is_named
        == ("m: mean score 0.0133 in the log, 0.0133 here" in notes)
        == ("in the log" in notes)
    )
    assert is_named == ("its verdicts are marked" in notes)


_HASH = criterion_hash("Same.")
_ALIKE = (("a", 5.0), ("b", 3.0), ("c", 3.0))
ALIKE = [Wording("t", name, "Same.", _HASH, None, weight, "original") for name, weight in _ALIKE]
"""Criteria with the same text, two of them with the same weight."""


def _met(*given: tuple[float, float], is_reordered: bool = True) -> list[str]:
    """The criteria that decisions (weight, value) are matched with, or the text of the refusal."""
    decisions = [
        Decision("Same.", value, weight=weight, is_reordered=is_reordered)
        for weight, value in given
    ]
    criteria: Any = SimpleNamespace(named=lambda *_: ALIKE)
    actual = list(matched(criteria, "x", "t", decisions))
    return [each[1].criterion_id if isinstance(each, tuple) else str(each) for each in actual]


def test_equal_texts_that_were_put_in_another_order_are_told_apart_by_their_weights() -> None:
    assert _met((3, 0), (3, 0), (5, 1)) == ["b", "c", "a"]
    assert _met((3, 0), (5, 0), (3, 1), is_reordered=False) == ["a", "b", "c"]
    refused, name, _ = _met((3, 0), (5, 0), (3, 1))
    assert name == "a"
    assert "several times, and the log does not say which decision is on which" in refused
