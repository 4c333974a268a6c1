"""The content of logs for Inspect View, read as zip files of JSON documents, and by Inspect itself."""

import json
import math
import shutil
import subprocess
import sys
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tasks.aggregate import aggregate
from tasks.config.job import Job
from tasks.exports.inspect_logs import explanation_of, export_inspect
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
    return {(about["model"], about["metadata"]["judge"]): log for about, log in named}


def sample(log: Documents, task: str, trial: int = 1) -> Any:
    return log[f"samples/{task}_epoch_{trial}.json"]


def expected(model: str, judge: str, task: int, trial: int) -> float | None:
    """Equation 1: points / positive weights; None while a criterion is undecided."""
    values = values_of(model, judge, task, trial)
    if None in values or (judge == "mild" and task == 6) or (model == "poor" and task == 7):
        return None
    return sum(w * v for w, v in zip(WEIGHTS, values, strict=True) if v is not None) / 15


def test_each_model_has_a_log_under_each_judge(logs: Logs, folder: Path) -> None:
    assert {(model, judge) for model in ("good", "poor") for judge in ("strict", "mild")} == set(logs)
    # Inspect View treats logs with the same task id as attempts, and hides all but the last.
    assert 4 == len({log["header.json"]["eval"]["task_id"] for log in logs.values()})
    assert all(path.name.startswith("prbench_") and path.suffix == ".eval" for path in folder.iterdir())
    for log in logs.values():
        assert 2 * len(TASKS) == len([name for name in log if name.startswith("samples/")])


def test_a_sample_holds_the_conversation_and_the_response(logs: Logs) -> None:
    shown = sample(logs["good", "strict"], "t1", 2)
    conversation = [(role, f"{role} says {i} about t1") for i, role in enumerate(("user", "assistant", "user"))]
    turns = [(turn["role"], turn["content"]) for turn in shown["messages"]]

    assert ("t1", 2) == (shown["id"], shown["epoch"])
    assert [*conversation, ("assistant", "An answer.")] == turns
    assert shown["messages"][:-1] == shown["input"]
    assert ("An answer.", "good-2026", 1.5) == tuple(shown["output"][name] for name in ("completion", "model", "time"))


def test_every_score_is_by_the_formula_and_undecided_ones_no_number(logs: Logs) -> None:
    for ((model, judge), log), (number, task), trial in product(logs.items(), enumerate(TASKS), (1, 2)):
        wanted, actual = expected(model, judge, number, trial), sample(log, task, trial)
        if actual["error"]:
            assert (None, {}) == (wanted, actual["scores"])
            continue
        score = actual["scores"]["score"]
        assert pytest.approx(math.nan if wanted is None else wanted, nan_ok=True) == score["value"]
        assert (wanted is None) == (score["reason"] is not None)


def test_a_score_carries_every_criterion_with_its_verdict(logs: Logs) -> None:
    criteria = sample(logs["good", "strict"], "t1")["scores"]["score"]["metadata"]["criteria"]
    values = values_of("good", "strict", 1, 1)

    titles = [f"t1 needs point {i}" for i in range(3)]
    assert [*zip(values, WEIGHTS, titles, strict=True)] == [(c["value"], c["weight"], c["title"]) for c in criteria]
    assert f"because of {values[0]} | <b>it</b>" == criteria[0]["explanation"]


def test_a_failed_call_of_a_judge_is_no_unmet_criterion(logs: Logs) -> None:
    score = sample(logs["good", "strict"], "t2")["scores"]["score"]

    failed = score["metadata"]["criteria"][1]
    assert math.isnan(score["value"])
    assert ("grader_failed", "parse_error", None) == (score["reason"], failed["status"], failed["value"])
    # 10 points are certain, and 5 more are possible.
    assert (10 / 15, 1.0) == pytest.approx((score["metadata"]["value_lower"], score["metadata"]["value_upper"]))
    assert "| parse error |" in score["explanation"]


def test_a_failed_response_is_an_error_with_a_cause_and_no_score(logs: Logs) -> None:
    failed = sample(logs["poor", "mild"], "t7")

    assert "timeout: no reply in 60 s" == failed["error"]["message"]
    assert ({}, {}, "") == (failed["scores"], failed["model_usage"], failed["output"]["completion"])
    assert "user" == failed["messages"][-1]["role"]


def test_results_are_those_of_the_leaderboard_on_each_split(logs: Logs, inspected: Job) -> None:
    board = rows_in(inspected, "select * from leaderboard")
    assert {"finance", "finance_hard"} == {row["split"] for row in board}
    for row in board:
        results = logs[row["model"], row["judge"]]["header.json"]["results"]
        (score,) = [each for each in results["scores"] if each["name"] == row["score_name"]]
        metrics = {name: metric["value"] for name, metric in score["metrics"].items()}
        for name, column in (("mean", "mean_score"), ("ci_low", "ci_low"), ("ci_high", "ci_high"), ("coverage",) * 2):
            assert row[column] == metrics.get(f"{row['split']} {name}")
        assert row["n_tasks"] == score["metadata"][row["split"]]["n_tasks"]


def test_tokens_and_cost_are_as_reported_and_may_stay_unknown(logs: Logs) -> None:
    known, unknown = (sample(logs["good", "strict"], task)["role_usage"]["grader"] for task in ("t1", "t2"))
    names = ("input_tokens", "input_tokens_cache_read", "output_tokens", "total_cost")
    assert [3 * 60, 3 * 40, 3 * 20, 0.003] == [known[name] for name in names]
    assert unknown["total_cost"] is None
    costs = {
        name: usage["total_cost"] for key in (("good", "strict"), ("poor", "mild"))
        for name, usage in logs[key]["header.json"]["stats"]["model_usage"].items()
    }  # fmt: skip
    assert {"good": 0.016, "strict": None, "poor": 0.014}.items() <= costs.items()


def test_a_text_cannot_break_out_of_its_cell() -> None:
    item = {"status": "met", "weight": 1.0, "title": "a | b\n| c | *d* [e](http://f)", "explanation": None}

    *_, last = explanation_of([item | {"error": None}]).splitlines()
    assert r"| met | 1 | a \| b \| c \| \*d\* \[e\](http://f) |  |" == last
    assert explanation_of([item | {"error": "cut\noff"}]).splitlines()[-1].endswith(" | cut off |")


def test_the_canary_is_in_no_log_and_a_notice_is_in_each(logs: Logs) -> None:
    for log in logs.values():
        assert CANARY not in str(log)
        assert "do not train" in log["header.json"]["eval"]["metadata"]["notice"]


def test_nothing_to_write_and_a_filled_folder_are_refused(inspected: Job, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not an empty folder"):
        export_inspect(inspected, folder)
    with pytest.raises(UsageError, match="no model has a verdict"):
        export_inspect(inspected, tmp_path / "new", "nosuch")
    assert not (tmp_path / "new").exists()


def test_people_who_label_have_a_log_only_where_they_are_named(inspected: Job, tmp_path: Path) -> None:
    job = kit.copied(inspected, tmp_path / "data")
    given = {"judge": "eva", "judge_config_hash": "imported", "source": "imported"}
    label = verdict(response("t1", "good"), criterion("t1", 0, 10), 1.0, **given, dataset_revision=job.data.revision)
    labeller = kit.row("labellers", judge="eva", import_batch="a-sheet")
    kit.written(job.warehouse, {"verdicts": [label], "labellers": [labeller]})
    aggregate(job)
    export_inspect(job, tmp_path / "logs")
    export_inspect(job.model_copy(update={"named_judges": ("eva",)}), tmp_path / "named")

    for folder, judges in (("logs", ["mild", "mild", "strict", "strict"]), ("named", ["eva"])):
        assert judges == sorted(path.name.split("_")[2] for path in (tmp_path / folder).iterdir())


VERSION = "inspect-ai==0.3.285"
"""It cannot be installed in this environment: it needs an older fsspec than s3fs does."""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("uv") is None, reason="there is no uv to run Inspect with")
def test_inspect_reads_every_sample_failures_as_errors_and_undecided_ones_without_a_score(folder: Path) -> None:
    python = ["uv", "run", "--no-project", "--quiet", "--python", sys.executable, "--with", VERSION, "python"]
    command = [*python, str(Path(__file__).with_name("inspect_reader.py")), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode and "Traceback" not in done.stderr:
        pytest.skip(f"uv cannot install {VERSION}: {done.stderr.strip()[-300:]}")
    assert 0 == done.returncode, done.stderr
    read = json.loads(done.stdout)
    logs = {(log["eval"]["model"], log["eval"]["metadata"]["judge"]): log["samples"] for log, _ in read}

    assert {(model, judge) for model in ("good", "poor") for judge in ("strict", "mild")} == logs.keys()
    assert [("success", 16)] * 4 == [(log["status"], n_summaries) for log, n_summaries in read]
    everything = [(task, trial) for trial in (1, 2) for task in TASKS]
    assert [everything] * 4 == [[(each["id"], each["epoch"]) for each in samples] for samples in logs.values()]
    failed = [(each["id"], each["error"]["message"]) for each in logs["poor", "strict"] if each["error"]]
    assert [("t7", "timeout: no reply in 60 s")] * 2 == failed
    reasons = [(each["id"], each["epoch"], each["scores"]["score"]["reason"]) for each in logs["good", "strict"]]
    assert [("t2", 1, "grader_failed")] == [each for each in reasons if each[2]]
