"""Logs with several parts, judges or scorers, and criteria that say the same."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.config.job import Job
from tasks.imports.criteria import Wording
from tasks.imports.files import NotHere
from tasks.imports.results.evalscope import read_evalscope
from tasks.imports.results.importing import import_results, matched
from tasks.imports.results.records import Decision, Source, marked
from tasks.rules.errors import UsageError
from tasks.rules.identity import criterion_hash
from tests.kit import rows_in
from tests.tasks.imports.results.conftest import LOGS, notes_of, unpacked
from tests.tasks.imports.results.made_files import published

Row = dict[str, Any]


def _lines(file: Path, edit: Callable[[Row], Row | None]) -> None:
    """Edit the rows of a file; those that become None are left out."""
    edited = [edit(json.loads(line)) for line in file.read_text(encoding="utf-8").splitlines()]
    file.write_text("".join(json.dumps(row) + "\n" for row in edited if row is not None), encoding="utf-8")


def _with_hard_part(folder: Path, text: str | None = None, met: bool | None = None) -> Path:
    """A log with a second subset that repeats every task; `text` is its answers', `met` all of its decisions."""

    def edit(row: Row) -> Row:
        if text is not None and "model_output" in row:
            row["model_output"]["choices"][0]["message"]["content"] = text
        score = row.get("sample_score", {}).get("score", {})
        if text is not None and score:
            score["prediction"] = score["extracted_prediction"] = text
        for attempt in score.get("metadata", {}).get("judge_attempts", []):
            if met is not None and attempt["status"] == "success":
                attempt["parsed_value"]["criteria_met"] = met
        return row

    log = unpacked("evalscope", folder)
    for part in log.glob("*/*/prbench_finance.jsonl"):
        hard = part.with_name("prbench_finance_hard.jsonl")
        shutil.copy(part, hard)
        _lines(hard, edit)
    return log


def test_the_same_answer_in_another_part_is_one_response(job: Job, tmp_path: Path) -> None:
    (report, *_) = import_results(job, [_with_hard_part(tmp_path)])
    assert "5 responses" in report.notes[0]
    assert [{"trial": 1}] == rows_in(job, "select distinct trial from responses")


def test_another_answer_to_a_task_in_another_part_is_a_further_trial(job: Job, tmp_path: Path) -> None:
    import_results(job, [_with_hard_part(tmp_path, text="Another answer.")])

    found = rows_in(job, "select trial, count(*) as n, count(*) filter (text = 'Another answer.') as n_other "
                       "from responses group by trial order by trial")  # fmt: skip
    assert [(1, 5, 0), (2, 5, 5)] == [tuple(row.values()) for row in found]


def test_an_answer_that_another_part_judged_otherwise_was_judged_twice(job: Job, tmp_path: Path) -> None:
    import_results(job, [_with_hard_part(tmp_path, met=True)])

    assert 5 == len(rows_in(job, "select * from responses"))
    found = rows_in(job, "select distinct judge_trial from verdicts order by 1")
    assert [1, 2] == [row["judge_trial"] for row in found]
    again = rows_in(job, "select distinct value from verdicts where judge_trial = 2 and value is not null")
    assert [{"value": 1.0}] == again


def test_the_scores_of_several_judges_together_are_compared_with_the_mean_over_them(job: Job, tmp_path: Path) -> None:
    """A second judge finds all met, whose score is 1 less what negative criteria take; the log has the mean of both."""

    def edit(row: Row) -> Row:
        score = row["sample_score"]["score"]
        attempts = score["metadata"]["judge_attempts"]
        rubric = row["sample_score"]["sample_metadata"]["rubrics"]
        if all(attempt["status"] == "success" for attempt in attempts):
            weights = [item["weight"] for item in rubric]
            mild = sum(weights) / sum(weight for weight in weights if weight > 0)
            score["value"] = {"clipped_score": (score["value"]["clipped_score"] + mild) / 2}
        score["metadata"]["judge_attempts"] += [
            {**attempt, "judge_id": "mild", "status": "success", "parsed_value": {"criteria_met": True}}
            for attempt in attempts
        ]
        return row

    log = unpacked("evalscope", tmp_path)
    shutil.rmtree(log / "reports")
    for file in log.glob("reviews/*/*.jsonl"):
        _lines(file, edit)
    said = notes_of(import_results(job, [log]))
    assert "brief: mean score 0.4000 in the log, 0.4000 here: equal on 2 tasks" in said
    assert "thorough: mean score 0.8125 in the log, 0.8125 here: equal on 2 tasks" in said
    assert 2 == len(rows_in(job, "select distinct judge from verdicts"))


def test_the_scores_of_two_scorers_are_compared_each_with_its_own(job: Job, tmp_path: Path) -> None:
    document = json.loads((LOGS / "brief.json").read_text(encoding="utf-8"))
    for sample in document["samples"]:
        for name, score in list(sample["scores"].items()):
            items = [{**item, "criteria_met": True} for item in score["metadata"]["criteria"]]
            sample["scores"]["mild"] = {**score, "value": 0.25, "metadata": {**score["metadata"], "criteria": items}}
            sample["scores"]["strict"] = sample["scores"].pop(name)
    (tmp_path / "x.json").write_text(json.dumps(document), encoding="utf-8")

    said = notes_of(import_results(job, [tmp_path / "x.json"], model="m")).splitlines()
    (strict,) = [line for line in said if "(strict)" in line]
    (mild,) = [line for line in said if "(mild)" in line]
    assert strict.endswith("equal on 2 tasks")
    assert "0.2500 in the log" in mild
    assert "sample-fin-2 trial 1 (0.2500 and" in mild
    assert "sample-fin-2 trial 2 (0.2500 and" in mild


def _with_scores(path: Path, scored: Callable[[Row, Row], Row]) -> Path:
    """A log of Inspect in which each sample has other scores, made of the sample and of its score."""
    document = json.loads((LOGS / "brief.json").read_text(encoding="utf-8"))
    for sample in document["samples"]:
        for score in list(sample["scores"].values()):
            sample["scores"] = scored(sample, score)
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_the_means_of_two_scorers_are_over_tasks_also_where_an_epoch_has_no_score(job: Job, tmp_path: Path) -> None:
    """The first task has one score, the second two."""

    def scored(sample: Row, score: Row) -> Row:
        items = [dict(item) for item in score["metadata"]["criteria"]]
        if sample["id"] == "sample-fin-2" and sample["epoch"] == 2:
            items[0] |= {"criteria_met": None, "error": "HTTP 500"}
        lost = items[0]["criteria_met"] is None
        harsh = {**score, "value": None if lost else score["value"], "metadata": {"criteria": items}}
        return {"harsh": harsh, "mild": score, "length": {"value": 7, "metadata": {}}}

    log = _with_scores(tmp_path / "x.json", scored)
    said = [line for line in notes_of(import_results(job, [log], model="m")).splitlines() if " in the log, " in line]
    assert [line.partition(": differs")[0].partition(": equal")[0] for line in said] == [
        "m by openai-api/workload/strict (harsh): mean score 0.0133 in the log, 0.0133 here",
        "m by openai-api/workload/strict (mild): mean score 0.0133 in the log, 0.0133 here",
    ]


def test_no_mean_is_compared_where_scores_are_values_by_criterion(job: Job, tmp_path: Path) -> None:
    """Inspect takes such a value for 0."""

    def scored(_: Row, score: Row) -> Row:
        value = {item["title"]: item["criteria_met"] for item in score["metadata"]["criteria"]}
        return {"rubric": {"value": value, "metadata": {}}}

    said = notes_of(import_results(job, [_with_scores(tmp_path / "x.json", scored)]))
    assert "46 verdicts imported" in said
    assert "in the log" not in said


def test_the_mean_of_a_named_score_among_several_values_is_compared(job: Job, tmp_path: Path) -> None:
    """As `healthbench` of inspect_evals has it: one scorer, several values, each with metrics of its own."""

    def scored(_: Row, score: Row) -> Row:
        value = {"healthbench_score": score["value"], "criteria_met": 3}
        return {"_scorer": {"value": value, "metadata": {"detailed_results": score["metadata"]["criteria"]}}}

    said = notes_of(import_results(job, [_with_scores(tmp_path / "x.json", scored)], model="m"))
    assert "m: mean score 0.0133 in the log, 0.0133 here" in said
    assert "its verdicts are marked" in said


class Alike:
    """Three criteria that say the same, two of them with one weight."""

    def __init__(self) -> None:
        self.found = [
            Wording("t", name, "Same.", criterion_hash("Same."), None, weight, "original")
            for name, weight in (("a", 5.0), ("b", 3.0), ("c", 3.0))
        ]

    def alike(self, _task: str, _text: str) -> Any:
        return self.found

    def of(self, _where: str, given: Any) -> Any:
        return self.found[given["occurrence"] - 1]


def _met(*given: tuple[float, float], is_reordered: bool = True) -> Any:
    """The criteria of decisions, each a weight and a value, or the refusal."""
    decisions = [Decision("Same.", value, weight=weight, is_reordered=is_reordered) for weight, value in given]
    found = list(matched(Alike(), "x", "t", decisions))  # type: ignore[arg-type]
    return [each[1].criterion_id if isinstance(each, tuple) else "refused" for each in found], found


def test_a_text_with_what_is_unmet_first_is_in_another_order_than_the_rubric() -> None:
    found = marked("[False] [3] Same.\n\tExplanation: No.", {"True": 1.0, "False": 0.0}, "\n\tExplanation: ")
    assert [Decision("Same.", 0.0, weight=3.0, explanation="No.", is_reordered=True)] == found


def test_equal_texts_that_were_put_in_another_order_are_told_apart_by_their_weights() -> None:
    assert ["b", "c", "a"] == _met((3, 0), (3, 0), (5, 1))[0]
    assert ["a", "b", "c"] == _met((3, 0), (5, 0), (3, 1), is_reordered=False)[0]
    names, found = _met((3, 0), (5, 0), (3, 1))
    assert ["refused", "a", "refused"] == names
    assert isinstance(found[0], NotHere)
    assert "several times, and the log does not say which decision is on which" in str(found[0])


def test_a_model_without_reviews_is_named(tmp_path: Path) -> None:
    log = unpacked("evalscope", tmp_path)
    shutil.rmtree(log / "reviews" / "thorough")

    notes = "\n".join(read_evalscope(Source(log)).notes)
    assert "thorough has predictions and no reviews, so no verdict" in notes


@pytest.mark.parametrize(("option", "label"), [("--as", ""), ("--as", " "), ("--by", ""), ("--by", "\t")])
def test_blank_labels_are_refused(finance: Job, option: str, label: str) -> None:
    given = {"model": label} if option == "--as" else {"judge": label}
    with pytest.raises(UsageError, match=f"{option} .*a label says something"):
        import_results(finance, [LOGS / "brief.json"], **given)


def test_a_json_log_that_was_cut_off_is_called_damaged(finance: Job, tmp_path: Path) -> None:
    whole = (LOGS / "brief.json").read_text(encoding="utf-8")
    (tmp_path / "x.json").write_text(whole[: len(whole) // 2], encoding="utf-8")
    with pytest.raises(UsageError, match="is damaged or cut off") as caught:
        import_results(finance, [tmp_path / "x.json"])
    assert 1 == len(str(caught.value).splitlines())


def test_an_unclipped_mean_below_0_of_a_log_is_compared_with_ours_before_clipping(job: Job, tmp_path: Path) -> None:
    file = published(tmp_path / "p.json")
    document = json.loads(file.read_text(encoding="utf-8"))
    document["outputs"] = {"brief": {"sample-leg-2": document["outputs"]["brief"]["sample-leg-2"]}}
    output = document["outputs"]["brief"]["sample-leg-2"]
    value = output["points"] / sum(weight for weight in output["weights"] if weight > 0)
    document["points_clipped"] = {"brief": [value]}
    file.write_text(json.dumps(document), encoding="utf-8")

    assert value < 0
    assert f"mean score {value:.4f} in the log, {value:.4f} here: equal" in notes_of(import_results(job, [file]))
