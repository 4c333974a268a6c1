"""Logs of several harnesses on the same workload, whose true scores are known."""

import json
import re
import shutil
from collections.abc import Callable
from copy import deepcopy
from itertools import product
from pathlib import Path
from statistics import fmean
from types import SimpleNamespace

import pytest

from tasks.config.job import Job
from tasks.imports.files import NotInDataSet
from tasks.imports.matching import Wording
from tasks.imports.results.importing import import_results, match_all
from tasks.imports.results.records import Decision
from tasks.rules.identity import criterion_hash
from tests.kit import Row, rows_in, values_in, write_jsonl
from tests.tasks.imports.results.conftest import LOGS, brief_log, notes_of, unpacked
from tests.tasks.imports.results.harness_files import (
    example,
    m42,
    published,
    simple_evals,
    simple_evals_html,
)
from tests.tasks.imports.results.workload import (
    MODELS,
    UNANSWERED,
    rows,
    true_score,
    weights_of,
)

SCORES = "select model, task_id, trial, value from scores where score_name = 'score' order by all"


def scores_in(job: Job) -> dict[tuple[str, str, int], float | None]:
    """Return the scores by model, task and trial."""
    return {
        (model, task, trial): value
        for model, task, trial, value in values_in(job, SCORES)
    }


def test_logs_of_three_harnesses_stand_side_by_side_with_their_true_scores(
    side_by_side,
):
    expected = {}
    for model, row in product(MODELS, rows()):
        task = row["task"]
        score = true_score(model, row)
        for epoch in (1, 2):
            expected[f"openai-api/workload/{model}", task, epoch] = score
        if (model, task) == UNANSWERED:
            expected[model, task, 1] = None
        else:
            expected[model, task, 1] = true_score(model, row, hides_failures=True)
            expected[f"evalscope {model}", task, 1] = score

    assert scores_in(side_by_side.job) == pytest.approx(expected)


def test_failed_judge_calls_are_failures_with_their_cause_and_never_unmet(
    side_by_side,
):
    verdicts = rows_in(
        side_by_side.job,
        "select judge, status, error, may_hide_failures from verdicts where value is null",
    )

    judge = "openai-api/workload/strict"
    assert sorted(verdict["judge"] for verdict in verdicts) == [
        judge,
        judge,
        "strict",
    ]
    for verdict in verdicts:
        assert verdict["status"] == "parse_error"
        assert verdict["error"]
        assert verdict["may_hide_failures"] is False


def test_failed_responses_are_failures_with_their_cause_and_have_no_verdicts(
    side_by_side,
):
    job = side_by_side.job
    responses = rows_in(
        job,
        "select model, status, text, error from responses where status <> 'ok' order by 1",
    )

    model = "openai-api/workload/brief"
    assert [response["model"] for response in responses] == ["brief", model, model]
    for response in responses:
        assert response["status"] == "provider_error"
        assert response["text"] is None
    assert "N/A" in responses[0]["error"]
    assert responses[1]["error"].startswith("BadRequestError")
    assert "14 grades of failed responses left out" in side_by_side.notes["published"]
    query = "from verdicts where task_id = ? and model = 'brief'"
    assert rows_in(job, query, UNANSWERED[1]) == []


def test_what_hides_failures_is_marked_on_verdicts_and_boards(side_by_side):
    job = side_by_side.job
    notes = side_by_side.notes

    assert "may store a failed judge call as a decision" in notes["published"]
    assert "may store" not in notes["inspect"]
    query = """
        select distinct model
        from verdict_details
        where may_hide_failures
        order by all
    """
    assert values_in(job, query) == [("brief",), ("thorough",)]
    query = (
        "select distinct model, may_hide_failures from leaderboard where is_judged"
    )
    # A leaderboard shows it as unknown if its verdicts do not state it.
    assert dict(values_in(job, query)) == {
        "brief": True,
        "thorough": True,
        "openai-api/workload/brief": None,
        "openai-api/workload/thorough": None,
        "evalscope brief": False,
        "evalscope thorough": False,
    }


def test_the_means_of_a_log_are_compared_and_differences_are_named_with_their_cause(
    side_by_side,
):
    published_notes = side_by_side.notes["published"]
    evalscope_notes = side_by_side.notes["evalscope"]
    inspect_notes = side_by_side.notes["inspect"]

    mean = "mean score 0.6923 in the log, 0.6923 here"
    assert f"thorough: {mean}: equal on 3 tasks" in published_notes
    values = "0.0000 and no score: the response failed"
    assert f"differs on {UNANSWERED[1]} trial 1 ({values})" in published_notes
    mean = "mean score 0.7551 in the log, 0.7551 here"
    assert f"thorough: {mean}: equal on 2 tasks" in evalscope_notes
    assert "brief has no prediction on sample-fin-3" in evalscope_notes
    mean = "mean score 0.0133 in the log, 0.0133 here"
    assert f"openai-api/workload/brief: {mean}: equal" in inspect_notes


def test_usage_and_time_of_calls_are_kept(side_by_side):
    columns = (
        "prompt_tokens, cached_tokens, completion_tokens, served_model, finish_reason,"
        " latency_s > 0"
    )
    cell = "task_id = 'sample-fin-2' and trial = 1 and model like '%_thorough'"

    calls = values_in(
        side_by_side.job, f"select {columns} from responses where {cell}"
    )

    assert calls == [(176, 88, 17, "thorough-2026-11-01", "stop", True)] * 2
    query = """
        select min(latency_s), min(completion_tokens)
        from verdicts
        where model like 'evalscope %'
    """
    [[shortest_s, fewest_tokens]] = values_in(side_by_side.job, query)
    assert shortest_s > 0
    assert fewest_tokens > 0


@pytest.mark.slow
def test_a_log_in_either_form_of_inspect_is_the_same(job):
    report = import_results(job, [LOGS / "brief.eval"])[0]
    repeated = import_results(job, [LOGS / "brief.json"])[0]

    assert report.rows == 52
    assert repeated.rows == 0
    assert "52 already present" in repeated.notes[0]


@pytest.mark.slow
def test_other_weights_and_scores_clipped_one_by_one_are_told_apart(job, tmp_path):
    file = published(tmp_path / "p.json")
    document = json.loads(file.read_text())
    document["outputs"]["thorough"]["sample-fin-2"]["weights"][0] += 1
    document["points_clipped"]["thorough"][0] += 0.25
    points = document["points_clipped"]["brief"]
    document["points_clipped"]["brief"] = [max(value, 0) for value in points]
    file.write_text(json.dumps(document))

    notes = notes_of(import_results(job, [file]))

    assert "1 weights in the log differ from those of this revision" in notes
    assert "1 other weights)" in notes
    values = r"0.0000 and -[0-9.]+: clipped for each response there"
    assert re.search(rf"sample-leg-2 trial 1 \({values}\)", notes)


@pytest.mark.slow
def test_the_other_adapter_of_evalscope_comes_in_with_its_scores(health, tmp_path):
    notes = notes_of(import_results(health, [unpacked("evalhealth", tmp_path)]))

    assert notes.count("equal on 3 tasks") == 2
    assert scores_in(health) == pytest.approx(health_scores(*MODELS))


def health_scores(*models: str) -> dict[tuple[str, str, int], float | None]:
    """Return the true scores on HealthBench's sample, by model, task and trial."""
    return {
        (model, row["prompt_id"], 1): true_score(model, row)
        for model, row in product(models, rows("healthbench"))
    }


@pytest.mark.slow
@pytest.mark.parametrize("write", [simple_evals, write_jsonl, simple_evals_html])
def test_every_form_of_simple_evals_is_the_same(health, tmp_path, write):
    examples = [example("thorough", row) for row in rows("healthbench")]
    file = write(tmp_path / "result", examples)

    reports = import_results(health, [file], model="thorough", judge="grader")

    notes = notes_of(reports)

    assert "equal on 3 tasks" in notes
    assert scores_in(health) == pytest.approx(health_scores("thorough"))
    query = "from responses where text like '%<b>text</b> & nothing else.'"
    assert len(rows_in(health, query)) == 3
    assert values_in(health, "select distinct judge from verdicts") == [("grader",)]


@pytest.mark.slow
def test_repeats_of_simple_evals_are_trials_and_a_refused_call_is_a_failure(
    health, tmp_path
):
    completed = example("thorough", rows("healthbench")[0])
    message = {"content": "No response (bad request).", "role": "assistant"}
    refused = completed | {"completion": [message]}

    file = simple_evals(tmp_path / "r.json", [completed, refused])

    import_results(health, [file], model="m")

    assert values_in(
        health, "select trial, status from responses order by trial"
    ) == [(1, "ok"), (2, "provider_error")]


@pytest.mark.slow
def test_a_guess_of_m42_is_a_failed_verdict(health, tmp_path):
    health_rows = rows("healthbench")
    task = health_rows[0]["prompt_id"]
    file = m42(tmp_path / "judge_responses.jsonl", health_rows, guess=(task, 0))

    reports = import_results(health, [file], model="thorough", judge="llama")

    notes = notes_of(reports)
    query = "select task_id, status, error like '%guessed%' from verdicts where value is null"
    assert values_in(health, query) == [(task, "parse_error", True)]
    assert f"{task} trial 1 (" in notes
    n_criteria = sum(len(weights_of(row)) for row in health_rows)
    assert len(rows_in(health, "from verdicts")) == n_criteria


def _edit(file: Path, edit: Callable[[Row], None]):
    """Edit the rows of a file."""
    lines = file.read_text().splitlines()
    file_rows = [json.loads(line) for line in lines]
    for row in file_rows:
        edit(row)
    write_jsonl(file, file_rows)


def _with_hard_part(folder: Path, text: str | None, met: bool | None) -> Path:
    """A log with a second subset that repeats every task; `text` replaces its responses, `met` its
    decisions.
    """

    def edit(row):
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
        copy = shutil.copy(part, part.with_name("prbench_finance_hard.jsonl"))
        _edit(Path(copy), edit)
    return log


@pytest.mark.parametrize(
    ("text", "met", "trials", "judge_trials"),
    [
        (None, None, [(1, 5)], [(1,)]),
        ("Another text.", None, [(1, 5), (2, 5)], [(1,)]),
        (None, True, [(1, 5)], [(1,), (2,)]),
    ],
)
def test_in_another_part_another_text_is_a_trial_and_another_decision_one_of_the_judge(
    job, tmp_path, text, met, trials, judge_trials
):
    import_results(job, [_with_hard_part(tmp_path, text, met)])

    query = "select trial, count(*) from responses group by trial order by trial"
    assert values_in(job, query) == trials
    query = "select distinct judge_trial from verdicts order by 1"
    assert values_in(job, query) == judge_trials
    query = "select distinct text from responses where trial = 2"
    assert values_in(job, query) == ([(text,)] if text else [])
    query = "select distinct value from verdicts where judge_trial = 2 order by 1"
    assert values_in(job, query) == ([(1.0,), (None,)] if met else [])


def test_the_scores_of_several_judges_together_are_compared_with_the_mean_over_them(
    job, tmp_path
):
    """A second judge finds all criteria met, negative ones too; the log has the mean of both
    scores.
    """

    def edit(row):
        score = row["sample_score"]["score"]
        attempts = score["metadata"]["judge_attempts"]
        rubric = row["sample_score"]["sample_metadata"]["rubrics"]
        if all(attempt["status"] == "success" for attempt in attempts):
            weights = [item["weight"] for item in rubric]
            mild_score = sum(weights) / sum(
                weight for weight in weights if weight > 0
            )
            score["value"] = {
                "clipped_score": fmean([score["value"]["clipped_score"], mild_score])
            }
        mild_attempt = {
            "judge_id": "mild",
            "status": "success",
            "parsed_value": {"criteria_met": True},
        }
        score["metadata"]["judge_attempts"] += [
            attempt | mild_attempt for attempt in attempts
        ]

    log = unpacked("evalscope", tmp_path)
    shutil.rmtree(log / "reports")
    for file in log.glob("reviews/*/*.jsonl"):
        _edit(file, edit)

    notes = notes_of(import_results(job, [log]))

    mean = "mean score 0.4000 in the log, 0.4000 here"
    assert f"brief: {mean}: equal on 2 tasks" in notes
    mean = "mean score 0.8125 in the log, 0.8125 here"
    assert f"thorough: {mean}: equal on 2 tasks" in notes
    assert len(rows_in(job, "select distinct judge from verdicts")) == 2


def test_a_tool_message_before_the_last_user_turn_is_no_part_of_the_conversation(
    job, tmp_path
):
    def edit(row):
        row["messages"].insert(0, {"role": "tool", "content": "Found."})

    log = unpacked("evalscope", tmp_path)
    for file in log.glob("*/*/*.jsonl"):
        _edit(file, edit)

    notes = notes_of(import_results(job, [log]))

    mean = "mean score 0.7551 in the log, 0.7551 here"
    assert f"thorough: {mean}: equal on 2 tasks" in notes


def _with_scores(folder: Path, scores_for: Callable[[Row, Row], Row]) -> Path:
    """A log of Inspect whose scores are replaced by those for a sample and its score."""

    def edit(sample):
        for score in sample["scores"].values():  # one, or none
            sample["scores"] = scores_for(sample, score)

    return brief_log(folder, edit)


def test_the_means_of_two_scorers_are_over_tasks_also_where_an_epoch_has_no_score(
    job, tmp_path
):
    """The first task has one score, the second two."""

    def two_scores(sample, score):
        harsh_score = deepcopy(score)
        if sample["id"] == "sample-fin-2" and sample["epoch"] == 2:
            harsh_score["value"] = None
            harsh_score["metadata"]["criteria"][0] |= {
                "criteria_met": None,
                "error": "HTTP 500",
            }
        length = {"value": 7, "metadata": {}}
        return {"harsh": harsh_score, "mild": score, "length": length}

    log = _with_scores(tmp_path, two_scores)

    notes = notes_of(import_results(job, [log], model="m"))

    judge = "m by openai-api/workload/strict"
    mean = "mean score 0.0133 in the log, 0.0133 here"
    assert f"{judge} (harsh): {mean}: " in notes
    assert f"{judge} (mild): {mean}: " in notes
    assert notes.count(" in the log, ") == 2


def test_a_mean_is_compared_if_a_value_is_called_a_score(job, tmp_path):
    """As `healthbench` of inspect_evals stores it."""

    def named_score(_, score):
        value = {"healthbench_score": score["value"], "criteria_met": 3}
        details = {"detailed_results": score["metadata"]["criteria"]}
        return {"_scorer": {"value": value, "metadata": details}}

    log = _with_scores(tmp_path, named_score)

    notes = notes_of(import_results(job, [log], model="m"))

    assert "46 verdicts imported" in notes
    assert "m: mean score 0.0133 in the log, 0.0133 here" in notes
    assert "its verdicts are marked" in notes


def test_no_mean_is_compared_if_the_value_has_only_decisions(job, tmp_path):
    """Inspect itself counts values by criterion as 0."""

    def decisions(_, score):
        items = score["metadata"]["criteria"]
        value = {item["title"]: item["criteria_met"] for item in items}
        return {"rubric": {"value": value, "metadata": {}}}

    log = _with_scores(tmp_path, decisions)

    notes = notes_of(import_results(job, [log], model="m"))

    assert "46 verdicts imported" in notes
    assert "in the log" not in notes
    assert "its verdicts are marked" not in notes


def matched(
    *decisions: tuple[float, float], is_reordered: bool = True
) -> tuple[list[tuple[Decision, Wording]], list[NotInDataSet]]:
    """Match decisions (weight, value) with three criteria of one text: `a` of weight 5, `b` and `c`
    of weight 3.
    """
    content_hash = criterion_hash("Same.")
    wordings = [
        Wording("t", name, "Same.", content_hash, None, weight, "original")
        for name, weight in (("a", 5.0), ("b", 3.0), ("c", 3.0))
    ]
    criteria = SimpleNamespace(find=lambda *_: wordings)
    logged = [
        Decision("Same.", value, weight=weight, is_reordered=is_reordered)
        for weight, value in decisions
    ]
    return match_all(criteria, "x", "t", logged)


@pytest.mark.parametrize(
    ("decisions", "is_reordered", "criterion_ids"),
    [
        ([(3, 0), (3, 0), (5, 1)], True, ["b", "c", "a"]),
        ([(3, 0), (5, 0), (3, 1)], False, ["a", "b", "c"]),
    ],
)
def test_criteria_with_equal_texts_are_distinguished_by_order_or_by_weight(
    decisions, is_reordered, criterion_ids
):
    matches, _ = matched(*decisions, is_reordered=is_reordered)

    assert [wording.criterion_id for _, wording in matches] == criterion_ids


def test_decisions_that_equal_texts_and_weights_do_not_distinguish_are_refused():
    [match], [refusal, _] = matched((3, 0), (5, 0), (3, 1))

    reason = "several times, and the log does not say which decision is on which"
    assert reason in str(refusal)
    assert match[1].criterion_id == "a"
