"""The content of logs for Inspect View, read as zip files of JSON documents, and by Inspect
itself.
"""

import json
import math
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tasks.aggregate import aggregate
from tasks.config.job import Job
from tasks.config.settings import Settings
from tasks.exports.inspect_logs import explanation_of, export_inspect
from tasks.imports.results.inspect_log import read_inspect
from tasks.imports.results.records import LogSource
from tasks.rules.errors import UsageError
from tests import kit
from tests.kit import criterion, response, rows_in, verdict
from tests.tasks.exports.conftest import CANARY, TASKS, WEIGHTS, documents_of, values_of

Documents = dict[str, Any]
Logs = dict[tuple[str, str], Documents]


@pytest.fixture(scope="module")
def folder(inspected: Job, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("logs") / "logs"
    export_inspect(inspected, folder)
    return folder


@pytest.fixture(scope="module")
def logs(folder: Path) -> Logs:
    """The documents of each log, by model and judge."""
    named = [(log["header.json"]["eval"], log) for log in map(documents_of, folder.iterdir())]
    return {
        (about["metadata"]["model_label"], about["metadata"]["judge"]): log for about, log in named
    }


def sample(log: Documents, task: str, trial: int = 1) -> Any:
    return log[f"samples/{task}_epoch_{trial}.json"]


def expected(model: str, judge: str, task: int, trial: int) -> float | None:
    """Equation 1: points / positive weights; None while a criterion is undecided."""
    values = values_of(model, judge, task, trial)
    if None in values or (judge == "mild" and task == 6) or (model == "poor" and task == 7):
        return None
    return sum(w * v for w, v in zip(WEIGHTS, values, strict=True) if v is not None) / 15


def test_each_model_has_a_log_under_each_judge(logs: Logs, folder: Path) -> None:
    assert {(model, judge) for model in ("good", "poor") for judge in ("strict", "mild")} == set(
        logs
    )
    # Inspect View treats logs with the same task id as attempts, and hides all but the last.
    assert len({log["header.json"]["eval"]["task_id"] for log in logs.values()}) == 4
    assert all(
        path.name.startswith("prbench_") and path.suffix == ".eval" for path in folder.iterdir()
    )
    for log in logs.values():
        assert 2 * len(TASKS) == len([name for name in log if name.startswith("samples/")])


def test_a_sample_holds_the_conversation_and_the_response(logs: Logs) -> None:
    shown = sample(logs["good", "strict"], "t1", 2)
    conversation = [
        (role, f"{role} says {i} about t1") for i, role in enumerate(("user", "assistant", "user"))
    ]
    turns = [(turn["role"], turn["content"]) for turn in shown["messages"]]

    assert shown["id"] == "t1"
    assert shown["epoch"] == 2
    assert [*conversation, ("assistant", "An answer.")] == turns
    assert shown["messages"][:-1] == shown["input"]
    assert tuple(shown["output"][name] for name in ("completion", "model", "time")) == (
        "An answer.",
        "good-2026",
        1.5,
    )


def test_every_score_is_by_the_formula_and_undecided_ones_no_number(logs: Logs) -> None:
    for ((model, judge), log), (number, task), trial in product(
        logs.items(), enumerate(TASKS), (1, 2)
    ):
        wanted = expected(model, judge, number, trial)
        actual = sample(log, task, trial)
        if actual["error"]:
            assert wanted is None
            assert actual["scores"] == {}
            continue
        score = actual["scores"]["score"]
        assert pytest.approx(math.nan if wanted is None else wanted, nan_ok=True) == score["value"]
        assert (wanted is None) == (score["reason"] is not None)


def test_a_score_carries_every_criterion_with_its_verdict(logs: Logs) -> None:
    criteria = sample(logs["good", "strict"], "t1")["scores"]["score"]["metadata"]["criteria"]
    values = values_of("good", "strict", 1, 1)

    titles = [f"t1 needs point {i}" for i in range(3)]
    assert [*zip(values, WEIGHTS, titles, strict=True)] == [
        (c["value"], c["weight"], c["title"]) for c in criteria
    ]
    assert f"because of {values[0]} | <b>it</b>" == criteria[0]["explanation"]


def test_a_failed_call_of_a_judge_is_no_unmet_criterion(logs: Logs) -> None:
    score = sample(logs["good", "strict"], "t2")["scores"]["score"]

    failed = score["metadata"]["criteria"][1]
    assert math.isnan(score["value"])
    assert score["reason"] == "grader_failed"
    assert failed["status"] == "parse_error"
    assert failed["value"] is None
    # 10 points are certain, and 5 more are possible.
    assert pytest.approx((score["metadata"]["value_lower"], score["metadata"]["value_upper"])) == (
        10 / 15,
        1.0,
    )
    assert "| parse error |" in score["explanation"]


def test_a_failed_response_is_an_error_with_a_cause_and_no_score(logs: Logs) -> None:
    failed = sample(logs["poor", "mild"], "t7")

    assert failed["error"]["message"] == "timeout: no reply in 60 s"
    assert failed["scores"] == {}
    assert failed["model_usage"] == {}
    assert failed["output"]["completion"] == ""
    assert failed["messages"][-1]["role"] == "user"


def test_results_are_those_of_the_leaderboard_on_each_split(logs: Logs, inspected: Job) -> None:
    board = rows_in(inspected, "select * from leaderboard")
    assert {row["split"] for row in board} == {"finance", "finance_hard"}
    for row in board:
        results = logs[row["model"], row["judge"]]["header.json"]["results"]
        (score,) = [
            each
            for each in results["scores"]
            if each["name"] == f"{row['split']} {row['score_name']}"
        ]
        mean = score["metrics"].get("mean", {"value": None})
        assert mean["value"] == row["mean_score"]
        for name in ("split", "ci_low", "ci_high", "coverage", "n_tasks"):
            assert score["metadata"][name] == row[name]


def test_a_result_has_a_name_of_its_own_and_no_metric_but_the_mean_and_its_error(
    logs: Logs,
) -> None:
    scores = logs["good", "strict"]["header.json"]["results"]["scores"]
    names = [score["name"] for score in scores]
    metrics = {metric for score in scores for metric in score["metrics"]}

    assert len(set(names)) == len(names) == 4
    assert metrics <= {"mean", "stderr", "unclipped_mean"}
    assert [score["scored_samples"] for score in scores if score["scorer"] == "score"] == [15, 5]


def test_tokens_and_cost_are_as_reported_and_may_stay_unknown(logs: Logs) -> None:
    known, unknown = (
        sample(logs["good", "strict"], task)["role_usage"]["grader"] for task in ("t1", "t2")
    )
    names = ("input_tokens", "input_tokens_cache_read", "output_tokens", "total_cost")
    assert [known[name] for name in names] == [3 * 60, 3 * 40, 3 * 20, 0.003]
    assert unknown["total_cost"] is None
    costs = {
        name: usage["total_cost"]
        for key in (("good", "strict"), ("poor", "mild"))
        for name, usage in logs[key]["header.json"]["stats"]["model_usage"].items()
    }
    names = {
        "openai-api/imported/good": 0.016,
        "openai-api/imported/strict": None,
        "openai-api/imported/poor": 0.014,
    }
    assert names.items() <= costs.items()


def test_a_text_cannot_break_out_of_its_cell() -> None:
    item = {
        "status": "met",
        "weight": 1.0,
        "title": "a | b\n| c | *d* [e](http://f)",
        "explanation": None,
    }

    *_, last = explanation_of([item | {"error": None}]).splitlines()
    assert last == r"| met | 1 | a \| b \| c \| \*d\* \[e\](http://f) |  |"
    assert explanation_of([item | {"error": "cut\noff"}]).splitlines()[-1].endswith(" | cut off |")


def test_the_canary_is_in_no_log_and_a_notice_is_in_each(logs: Logs) -> None:
    for log in logs.values():
        assert CANARY not in str(log)
        assert "do not train" in log["header.json"]["eval"]["metadata"]["notice"]


def test_nothing_to_write_and_a_filled_folder_are_refused(
    inspected: Job, folder: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="not an empty folder"):
        export_inspect(inspected, folder)
    with pytest.raises(UsageError, match="no model has a verdict"):
        export_inspect(inspected, tmp_path / "new", "nosuch")
    assert not (tmp_path / "new").exists()


def test_samples_without_a_score_can_be_left_out(inspected: Job, tmp_path: Path) -> None:
    every = export_inspect(inspected, tmp_path / "all")
    scored = export_inspect(inspected, tmp_path / "scored", is_scored_only=True)
    logs = [documents_of(path) for path in (tmp_path / "scored").iterdir()]
    samples = [
        sample for log in logs for name, sample in log.items() if name.startswith("samples/")
    ]

    assert every.line.endswith("9 samples have no score; for tools that refuse these, add --scored")
    assert scored.rows == every.rows - 9 == len(samples)
    assert not any(math.isnan(each["scores"]["score"]["value"]) for each in samples)


def test_people_who_label_have_a_log_only_where_they_are_named(
    inspected: Job, tmp_path: Path
) -> None:
    job = kit.copied(inspected, tmp_path / "data")
    given = {
        "judge": "eva",
        "judge_config_hash": "imported",
        "source": "imported",
    }
    label = verdict(
        response("t1", "good"),
        criterion("t1", 0, 10),
        1.0,
        **given,
        dataset_revision=job.data.revision,
    )
    labeller = kit.row("labellers", judge="eva", import_batch="a-sheet")
    kit.written(job.warehouse, {"verdicts": [label], "labellers": [labeller]})
    aggregate(job)
    export_inspect(job, tmp_path / "logs")
    export_inspect(job.model_copy(update={"named_judges": ("eva",)}), tmp_path / "named")

    for folder, judges in (("logs", ["mild", "mild", "strict", "strict"]), ("named", ["eva"])):
        assert judges == sorted(path.name.split("_")[2] for path in (tmp_path / folder).iterdir())


@pytest.fixture(scope="module")
def named_logs(inspected: Job, tmp_path_factory: pytest.TempPathFactory) -> Logs:
    """The documents of logs of models and a judge that a stored run and the configuration name."""
    folder = tmp_path_factory.mktemp("named")
    job = kit.copied(inspected, folder / "data")
    imported = response("t1", "brief", model_config_hash="imported") | {"source": "imported"}
    imported["dataset_revision"] = job.data.revision
    label = verdict(
        imported,
        criterion("t1", 0, 10),
        1.0,
        judge="reader",
        judge_config_hash="imported",
        source="imported",
        dataset_revision=job.data.revision,
    )
    endpoints = {
        "models": [{"label": "good", "name": "gemini/gemini-3"}],
        "judges": [
            {"label": "strict", "name": "openai/gpt-5.6-sol"},
            {"label": "good", "name": "x/other"},
        ],
    }
    run = kit.row("runs", run_id="a-run", config=json.dumps(endpoints))
    kit.written(
        job.warehouse,
        {
            "responses": [imported],
            "verdicts": [label],
            "runs": [run],
        },
    )
    aggregate(job)
    configured = Settings.model_validate(
        {
            **job.settings.model_dump(mode="json", exclude_unset=True),
            "models": [{"label": "poor", "name": "hosted_vllm/org/small"}],
        }
    )
    export_inspect(job.model_copy(update={"settings": configured}), folder / "logs")
    named = [
        (log["header.json"]["eval"]["metadata"], log)
        for log in map(documents_of, (folder / "logs").iterdir())
    ]
    return {(about["model_label"], about["judge"]): log for about, log in named}


@pytest.mark.parametrize(
    ("label", "judge", "name"),
    [
        ("good", "strict", "google/gemini-3"),
        ("poor", "strict", "vllm/org/small"),
        ("brief", "reader", "openai-api/imported/brief"),
    ],
)
def test_a_log_names_the_model_as_its_provider_does_and_the_label_beside_it(
    named_logs: Logs, label: str, judge: str, name: str
) -> None:
    about = named_logs[label, judge]["header.json"]["eval"]

    assert about["model"] == name
    assert about["metadata"]["model_label"] == label
    assert label in about["tags"]


def test_a_scorer_s_parameters_name_the_judge_s_model_and_template(named_logs: Logs) -> None:
    score, *_ = named_logs["good", "strict"]["header.json"]["results"]["scores"]
    label, *_ = named_logs["brief", "reader"]["header.json"]["results"]["scores"]

    assert score["params"]["grader_model"] == {"model": "openai/gpt-5.6-sol"}
    assert isinstance(score["params"]["grader_template"], str)
    assert label["params"] == {"judge": "reader"}


def without_name(log: Path) -> Path:
    """Rewrite a log as an older version wrote it: the label as the model, and no name beside it."""
    members = documents_of(log)
    for about in (members["header.json"]["eval"], members["_journal/start.json"]["eval"]):
        about["model"] = about["metadata"].pop("model_label")
        about["metadata"].pop("model_name")
    with ZipFile(log, "w") as older:
        for name, member in members.items():
            older.writestr(name, json.dumps(member))
    return log


@pytest.mark.parametrize("is_old", [False, True])
def test_an_imported_log_has_the_labels_and_the_scores_of_the_exported_one(
    inspected: Job, tmp_path: Path, is_old: bool
) -> None:
    export_inspect(
        inspected.model_copy(update={"named_models": ("good",), "named_judges": ("strict",)}),
        tmp_path,
    )
    (log,) = tmp_path.iterdir()
    responses = read_inspect(LogSource(without_name(log) if is_old else log)).responses
    gradings = [grading for each in responses for grading in each.gradings]
    (scored,) = [each for each in responses if (each.task_id, each.trial) == ("t1", 1)]

    assert {each.model for each in responses} == {"good"}
    assert {grading.judge for grading in gradings} == {"strict"}
    assert scored.gradings[0].own_scores["score"] == pytest.approx(expected("good", "strict", 1, 1))


VERSION = "inspect-ai==0.3.285"
"""It cannot be installed in this environment: it needs an older fsspec than s3fs does."""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("uv") is None, reason="there is no uv to run Inspect with")
def test_inspect_reads_every_sample_failures_as_errors_and_undecided_ones_without_a_score(
    folder: Path,
) -> None:
    python = [
        "uv",
        "run",
        "--no-project",
        "--quiet",
        "--python",
        sys.executable,
        "--with",
        VERSION,
        "python",
    ]
    command = [*python, str(Path(__file__).with_name("inspect_reader.py")), str(folder)]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode and "Traceback" not in done.stderr:
        pytest.skip(f"uv cannot install {VERSION}: {done.stderr.strip()[-300:]}")
    assert done.returncode == 0, done.stderr
    read = json.loads(done.stdout)
    logs = {
        (log["eval"]["metadata"]["model_label"], log["eval"]["metadata"]["judge"]): log["samples"]
        for log, _ in read
    }

    assert {
        (model, judge) for model in ("good", "poor") for judge in ("strict", "mild")
    } == logs.keys()
    assert [(log["status"], n_summaries) for log, n_summaries in read] == [("success", 16)] * 4
    everything = [(task, trial) for trial in (1, 2) for task in TASKS]
    assert [everything] * 4 == [
        [(each["id"], each["epoch"]) for each in samples] for samples in logs.values()
    ]
    failed = [
        (each["id"], each["error"]["message"]) for each in logs["poor", "strict"] if each["error"]
    ]
    assert failed == [("t7", "timeout: no reply in 60 s")] * 2
    reasons = [
        (each["id"], each["epoch"], each["scores"]["score"]["reason"])
        for each in logs["good", "strict"]
    ]
    assert [each for each in reasons if each[2]] == [("t2", 1, "grader_failed")]
