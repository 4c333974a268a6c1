"""The content of logs for Inspect View, read as zip files of JSON documents, and by Inspect
itself.
"""

import json
import math
import shutil
import subprocess
import sys
from itertools import product
from operator import mul
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tasks.config.job import Job
from tasks.config.settings import Settings
from tasks.exports.inspect_logs import explanation_of, export_inspect
from tasks.imports.results.inspect_log import read_inspect
from tasks.imports.results.records import LogSource
from tasks.rules.errors import UsageError
from tests import kit
from tests.kit import criterion, response, rows_in, verdict
from tests.tasks.exports.conftest import (
    CANARY,
    JUDGES,
    TASKS,
    WEIGHTS,
    documents_of,
    values_of,
)

Documents = dict[str, Any]
Logs = dict[tuple[str, str], Documents]


@pytest.fixture(scope="module")
def folder(outcomes_job: Job, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("logs") / "logs"
    export_inspect(outcomes_job, folder)
    return folder


def logs_in(folder: Path) -> Logs:
    """Return the documents of each log, by model and judge."""
    logs = {}
    for path in folder.iterdir():
        log = documents_of(path)
        metadata = log["header.json"]["eval"]["metadata"]
        logs[metadata["model_label"], metadata["judge"]] = log
    return logs


@pytest.fixture(scope="module")
def logs(folder: Path) -> Logs:
    return logs_in(folder)


def sample(
    log: Documents,
    task: str,
    trial: int = 1,
) -> Any:
    return log[f"samples/{task}_epoch_{trial}.json"]


def expected_score(model: str, judge: str, task: int, trial: int) -> float:
    """Equation 1: points / positive weights (10 + 5); NaN while a criterion is undecided.

    The fixture `outcomes_job` has no verdict of the judge `mild` on the seventh task.
    """
    values = values_of(model, judge, task, trial)
    is_unjudged = judge == "mild" and task == 6
    if None in values or is_unjudged:
        return math.nan
    points = map(mul, WEIGHTS, values)
    return sum(points) / 15


MODEL_RUNS = set(product(("good", "poor"), JUDGES))


def test_each_model_has_a_log_under_each_judge(logs, folder):
    assert logs.keys() == MODEL_RUNS
    # Inspect View treats logs with the same task id as attempts, and hides all but the last.
    assert len({log["header.json"]["eval"]["task_id"] for log in logs.values()}) == 4
    assert len(list(folder.glob("prbench_*.eval"))) == 4


def test_a_log_has_all_tasks_in_all_trials(logs):
    for log in logs.values():
        assert len([name for name in log if name.startswith("samples/")]) == 16


def test_a_sample_holds_the_conversation_and_the_response(logs):
    document = sample(logs["good", "strict"], "t1", 2)

    assert document["id"] == "t1"
    assert document["epoch"] == 2
    assert [(turn["role"], turn["content"]) for turn in document["messages"]] == [
        ("user", "user says 0 about t1"),
        ("assistant", "assistant says 1 about t1"),
        ("user", "user says 2 about t1"),
        ("assistant", "An answer."),
    ]
    assert document["input"] == document["messages"][:-1]
    assert document["output"]["completion"] == "An answer."
    assert document["output"]["model"] == "good-2026"
    assert document["output"]["time"] == 1.5


def test_every_score_is_by_the_formula_and_undecided_ones_no_number(logs):
    for (model, judge), log in logs.items():
        for (number, task), trial in product(enumerate(TASKS), (1, 2)):
            if (model, task) == ("poor", "t7"):
                continue  # its responses have failed
            document = sample(log, task, trial)
            value = expected_score(model, judge, number, trial)
            score = document["scores"]["score"]
            assert document["error"] is None
            assert score["value"] == pytest.approx(value, nan_ok=True)
            assert (score["reason"] is None) != math.isnan(value)


def test_a_score_carries_every_criterion_with_its_verdict(logs):
    score = sample(logs["good", "strict"], "t1")["scores"]["score"]

    criteria = score["metadata"]["criteria"]
    assert [(row["value"], row["weight"], row["title"]) for row in criteria] == [
        (0.0, 10.0, "t1 needs point 0"),
        (1.0, 5.0, "t1 needs point 1"),
        (0.0, -5.0, "t1 needs point 2"),
    ]
    assert criteria[0]["explanation"] == "because of 0.0 | <b>it</b>"


def test_a_failed_call_of_a_judge_is_no_unmet_criterion(logs):
    score = sample(logs["good", "strict"], "t2")["scores"]["score"]

    failed = score["metadata"]["criteria"][1]
    assert math.isnan(score["value"])
    assert score["reason"] == "grader_failed"
    assert failed["status"] == "parse_error"
    assert failed["value"] is None
    # 10 points are certain, and 5 more are possible.
    assert score["metadata"]["value_lower"] == pytest.approx(10 / 15)
    assert score["metadata"]["value_upper"] == 1.0
    assert "| parse error |" in score["explanation"]


def test_a_failed_response_is_an_error_with_a_cause_and_no_score(logs):
    failed = sample(logs["poor", "mild"], "t7")

    assert failed["error"]["message"] == "timeout: no reply in 60 s"
    assert failed["scores"] == {}
    assert failed["model_usage"] == {}
    assert failed["output"]["completion"] == ""
    assert failed["messages"][-1]["role"] == "user"


def test_results_are_those_of_the_leaderboard_on_each_split(logs, outcomes_job):
    board = rows_in(outcomes_job, "select * from leaderboard")
    assert {row["split"] for row in board} == {"finance", "finance_hard"}
    for row in board:
        results = logs[row["model"], row["judge"]]["header.json"]["results"]
        scores = {score["name"]: score for score in results["scores"]}
        score = scores[f"{row['split']} {row['score_name']}"]
        mean = score["metrics"].get("mean", {"value": None})
        assert mean["value"] == row["mean_score"]
        for name in ("split", "ci_low", "ci_high", "coverage", "n_tasks"):
            assert score["metadata"][name] == row[name]


def test_results_have_different_names_and_only_means_and_their_error_as_metrics(logs):
    scores = logs["good", "strict"]["header.json"]["results"]["scores"]
    names = [score["name"] for score in scores]
    metrics = {metric for score in scores for metric in score["metrics"]}

    assert len(names) == 4
    assert len(set(names)) == 4
    assert metrics <= {"mean", "stderr", "unclipped_mean"}
    n_scored = [
        score["scored_samples"] for score in scores if score["scorer"] == "score"
    ]
    # Two trials of the 8 tasks, and of the 3 hard ones; one of `t2` is undecided.
    assert n_scored == [15, 5]


def test_tokens_and_cost_of_a_judge_are_as_reported(logs):
    usage = sample(logs["good", "strict"], "t1")["role_usage"]["grader"]

    # Three calls (`CALL`), each with 40 of its 100 input tokens from the cache.
    assert usage["input_tokens"] == 180
    assert usage["input_tokens_cache_read"] == 120
    assert usage["output_tokens"] == 60
    assert usage["total_cost"] == 0.003


def test_one_unknown_cost_makes_a_sum_unknown(logs):
    usage = sample(logs["good", "strict"], "t2")["role_usage"]["grader"]
    model_usage = logs["good", "strict"]["header.json"]["stats"]["model_usage"]

    assert usage["total_cost"] is None
    # 16 responses.
    assert model_usage["openai-api/imported/good"]["total_cost"] == 0.016
    assert model_usage["openai-api/imported/strict"]["total_cost"] is None


@pytest.mark.parametrize(
    ("error", "explanation"), [(None, ""), ("cut\noff", "cut off")]
)
def test_a_text_cannot_break_out_of_its_cell(error, explanation):
    item = {
        "status": "met",
        "weight": 1.0,
        "title": "a | b\n| c | *d* [e](http://f)",
        "explanation": None,
        "error": error,
    }

    *_, line = explanation_of([item]).splitlines()

    title = r"a \| b \| c \| \*d\* \[e\](http://f)"
    assert line == f"| met | 1 | {title} | {explanation} |"


def test_the_canary_is_in_no_log_and_a_notice_is_in_each(logs):
    for log in logs.values():
        assert CANARY not in str(log)
        assert "do not train" in log["header.json"]["eval"]["metadata"]["notice"]


def test_nothing_to_write_and_a_filled_folder_are_refused(
    outcomes_job, folder, tmp_path
):
    with pytest.raises(UsageError, match="not an empty folder"):
        export_inspect(outcomes_job, folder)
    with pytest.raises(UsageError, match="no model has a verdict"):
        export_inspect(outcomes_job, tmp_path / "new", "nosuch")
    assert not (tmp_path / "new").exists()


def test_samples_without_a_score_can_be_left_out(outcomes_job, tmp_path):
    full = export_inspect(outcomes_job, tmp_path / "all")
    report = export_inspect(outcomes_job, tmp_path / "scored", is_scored_only=True)

    scores = []
    for log in logs_in(tmp_path / "scored").values():
        for name, document in log.items():
            if name.startswith("samples/"):
                scores.append(document["scores"]["score"]["value"])
    # One is undecided; `mild` did not judge two of `t6` of each model; two of `t7` failed, and are
    # in the logs of both judges.
    assert full.line.endswith(
        "9 samples have no score; for tools that refuse these, add --scored"
    )
    assert report.rows == full.rows - 9
    assert len(scores) == report.rows
    assert not any(map(math.isnan, scores))


def imported_verdict(job: Job, graded_response: kit.Row, judge: str) -> kit.Row:
    """Return an imported verdict that the first criterion of `t1` is met."""
    return verdict(
        graded_response,
        criterion("t1", 0, 10),
        1.0,
        judge=judge,
        judge_config_hash="imported",
        source="imported",
        dataset_revision=job.data.revision,
    )


@pytest.fixture(scope="module")
def named_job(outcomes_job: Job, tmp_path_factory) -> Job:
    """A job whose models and a judge are named by a stored run and the configuration; `eva`
    labelled a response.
    """
    job = kit.copied(outcomes_job, tmp_path_factory.mktemp("named") / "data")
    brief_response = response("t1", "brief", model_config_hash="imported")
    brief_response |= {"source": "imported", "dataset_revision": job.data.revision}
    endpoints = {
        "models": [{"label": "good", "name": "gemini/gemini-3"}],
        "judges": [
            {"label": "strict", "name": "openai/gpt-5.6-sol"},
            {"label": "good", "name": "x/other"},
        ],
    }
    rows = {
        "responses": [brief_response],
        "verdicts": [
            imported_verdict(job, brief_response, "reader"),
            imported_verdict(job, response("t1", "good"), "eva"),
        ],
        "labellers": [kit.row("labellers", judge="eva", import_batch="a-sheet")],
        "runs": [kit.row("runs", run_id="a-run", config=json.dumps(endpoints))],
    }
    kit.written(job.warehouse, rows).publish()
    settings = job.settings.model_dump(mode="json", exclude_unset=True)
    settings["models"] = [{"label": "poor", "name": "hosted_vllm/org/small"}]
    return job.model_copy(update={"settings": Settings.model_validate(settings)})


@pytest.fixture(scope="module")
def named_logs(named_job: Job, tmp_path_factory) -> Logs:
    """The documents of the job's logs."""
    folder = tmp_path_factory.mktemp("named") / "logs"
    export_inspect(named_job, folder)
    return logs_in(folder)


def test_people_who_label_have_a_log_only_where_they_are_named(
    named_job, named_logs, tmp_path
):
    job = named_job.model_copy(update={"named_judges": ("eva",)})

    export_inspect(job, tmp_path / "named")

    assert named_logs.keys() == MODEL_RUNS | {("brief", "reader")}
    assert logs_in(tmp_path / "named").keys() == {("good", "eva")}


@pytest.mark.parametrize(
    ("label", "judge", "name"),
    [
        ("good", "strict", "google/gemini-3"),
        ("poor", "strict", "vllm/org/small"),
        ("brief", "reader", "openai-api/imported/brief"),
    ],
)
def test_a_log_names_the_model_as_its_provider_does_and_the_label_beside_it(
    named_logs,
    label,
    judge,
    name,
):
    spec = named_logs[label, judge]["header.json"]["eval"]

    assert spec["model"] == name
    assert spec["metadata"]["model_label"] == label
    assert label in spec["tags"]


def test_a_scorer_s_parameters_name_the_judge_s_model_and_template(named_logs):
    judged = named_logs["good", "strict"]["header.json"]["results"]["scores"][0]
    labelled = named_logs["brief", "reader"]["header.json"]["results"]["scores"][0]

    assert judged["params"]["grader_model"] == {"model": "openai/gpt-5.6-sol"}
    assert isinstance(judged["params"]["grader_template"], str)
    assert labelled["params"] == {"judge": "reader"}


def rewrite_as_older(log: Path):
    """Rewrite a log as an older version wrote it: the label as the model, and no name beside it."""
    members = documents_of(log)
    for name in ("header.json", "_journal/start.json"):
        spec = members[name]["eval"]
        spec["model"] = spec["metadata"].pop("model_label")
        spec["metadata"].pop("model_name")
    with ZipFile(log, "w") as older:
        for name, member in members.items():
            older.writestr(name, json.dumps(member))


@pytest.mark.parametrize("is_old", [False, True])
def test_an_imported_log_has_the_labels_and_the_scores_of_the_exported_one(
    outcomes_job,
    tmp_path,
    is_old,
):
    names = {"named_models": ("good",), "named_judges": ("strict",)}
    export_inspect(outcomes_job.model_copy(update=names), tmp_path)
    [log] = tmp_path.iterdir()
    if is_old:
        rewrite_as_older(log)
    responses = {
        (response.task_id, response.trial): response
        for response in read_inspect(LogSource(log)).responses
    }

    assert {response.model for response in responses.values()} == {"good"}
    [judgement] = responses["t1", 1].judgements
    assert judgement.judge == "strict"
    # 5 of 15 points.
    assert judgement.own_scores["score"] == pytest.approx(1 / 3)


VERSION = "inspect-ai==0.3.285"
"""It cannot be installed in this environment: it needs an older fsspec than s3fs does."""


@pytest.fixture(scope="module")
def read_logs(folder: Path) -> Logs:
    """The logs as Inspect reads them, each with its number of summaries, by model and judge."""
    if shutil.which("uv") is None:
        pytest.skip("no uv to run Inspect with")
    command = [
        "uv",
        "run",
        "--no-project",
        "--quiet",
        "--python",
        sys.executable,
        "--with",
        VERSION,
        "python",
        Path(__file__).with_name("inspect_reader.py"),
        folder,
    ]
    process = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
    )
    if process.returncode and "Traceback" not in process.stderr:
        pytest.skip(f"uv cannot install {VERSION}: {process.stderr.strip()[-300:]}")
    assert process.returncode == 0, process.stderr
    logs = {}
    for log, n_summaries in json.loads(process.stdout):
        metadata = log["eval"]["metadata"]
        logs[metadata["model_label"], metadata["judge"]] = log | {
            "n_summaries": n_summaries
        }
    return logs


@pytest.mark.slow
def test_inspect_reads_every_sample(read_logs):
    assert read_logs.keys() == MODEL_RUNS
    cells = [(task, trial) for trial in (1, 2) for task in TASKS]
    for log in read_logs.values():
        assert log["status"] == "success"
        assert log["n_summaries"] == 16
        samples = log["samples"]
        assert [(sample["id"], sample["epoch"]) for sample in samples] == cells


@pytest.mark.slow
def test_inspect_reads_failures_as_errors(read_logs):
    errors = {}
    for document in read_logs["poor", "strict"]["samples"]:
        if document["error"]:
            errors[document["id"], document["epoch"]] = document["error"]["message"]

    cause = "timeout: no reply in 60 s"
    assert errors == {("t7", 1): cause, ("t7", 2): cause}


@pytest.mark.slow
def test_inspect_reads_undecided_samples_without_a_score(read_logs):
    reasons = {}
    for document in read_logs["good", "strict"]["samples"]:
        reason = document["scores"]["score"]["reason"]
        if reason:
            reasons[document["id"], document["epoch"]] = reason

    assert reasons == {("t2", 1): "grader_failed"}
