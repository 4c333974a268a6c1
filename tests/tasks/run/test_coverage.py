"""Coverage of tasks with several responses, and of a model whose comparisons are decided."""

from pathlib import Path

from tasks.benchmarks import load_benchmark
from tasks.config.job import Job
from tasks.rules.identity import IMPORTED
from tasks.run.coverage import coverage
from tasks.run.judge_configs import judge_configs, model_hash
from tasks.stopping import NO_COMPARISONS
from tests.kit import (
    Row,
    admitted,
    criterion,
    endpoint,
    job_on,
    response,
    verdict,
    write_jsonl,
    written,
)

ADDRESS = "http://localhost/v1"
TASK_IDS = ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9"]


def job_with(folder: Path, model: Row) -> Job:
    """A job with this model and a judge, on a data set that is not read."""
    return job_on(
        write_jsonl(folder / "data.jsonl", [{"not": "read"}]),
        folder / "warehouse",
        models=[model],
        judges=[endpoint("judge", ADDRESS)],
    )


def imported(task_id: str) -> Row:
    """An imported response of `alpha`."""
    return {
        **response(task_id, "alpha", model_config_hash=IMPORTED),
        "response_id": f"{task_id}, imported",
        "source": IMPORTED,
    }


def test_of_imported_responses_to_tasks_that_no_comparison_needs_no_verdict_is_due(
    tmp_path, monkeypatch
):
    job = job_with(tmp_path, {"label": "alpha", "source": "imported"})
    [config] = judge_configs(job, load_benchmark("prbench"))
    criteria = []
    responses = []
    verdicts = []
    for number, task_id in enumerate(TASK_IDS):
        criterion_row = criterion(task_id, 0, 5.0)
        response_row = imported(task_id)
        criteria.append(criterion_row)
        if 1 <= number <= 8:
            responses.append(response_row)
        if 5 <= number <= 8:
            verdicts.append(
                verdict(response_row, criterion_row, 1.0, **config.columns)
            )
    rows = {
        **admitted(TASK_IDS, split="data", n_criteria=1),
        "criteria": criteria,
        "responses": responses,
        "verdicts": verdicts,
    }
    written(job.warehouse, rows, job.data.revision).publish()
    monkeypatch.setitem(
        vars(NO_COMPARISONS), "left_out", {"alpha": frozenset(TASK_IDS[:5])}
    )

    response_cell, verdict_cell = coverage(job)

    assert response_cell.wanted == 9
    assert response_cell.due == response_cell.done == 8
    assert verdict_cell.wanted == 5
    assert verdict_cell.due == verdict_cell.done == 4


def test_a_task_with_a_sampled_and_an_imported_response_counts_once(tmp_path):
    job = job_with(tmp_path, endpoint("alpha", ADDRESS))
    [config] = judge_configs(job, load_benchmark("prbench"))
    criteria = [criterion("t0", 0, 5.0), criterion("t0", 1, 5.0)]
    config_hash = model_hash(job.settings.models[0])
    sampled = response("t0", "alpha", model_config_hash=config_hash)
    second_response = imported("t0")
    rows = {
        **admitted(["t0", "t1"], split="data", n_criteria=2),
        "criteria": [*criteria, criterion("t1", 0, 5.0), criterion("t1", 1, 5.0)],
        "responses": [sampled, second_response],
        "verdicts": [
            verdict(sampled, criteria[0], 1.0, **config.columns),
            verdict(second_response, criteria[0], 0.0, **config.columns),
            verdict(second_response, criteria[1], None, **config.columns),
        ],
    }
    written(job.warehouse, rows, job.data.revision).publish()

    response_cell, verdict_cell = coverage(job)

    assert response_cell.done == 1
    assert response_cell.missing == 1
    assert verdict_cell.done == 1
    assert verdict_cell.failures == {"parse_error": 1}
    assert verdict_cell.missing == 2
