"""Coverage of a model whose comparisons are decided."""

from tasks.benchmarks import load_benchmark
from tasks.rules.identity import IMPORTED
from tasks.run.coverage import coverage
from tasks.run.judge_configs import judge_configs
from tasks.stopping import NO_COMPARISONS
from tests.kit import (
    admitted,
    criterion,
    endpoint,
    job_on,
    response,
    verdict,
    write_jsonl,
    written,
)

TASK_IDS = ["t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9"]


def test_of_imported_responses_to_tasks_that_no_comparison_needs_no_verdict_is_due(
    tmp_path, monkeypatch
):
    job = job_on(
        write_jsonl(tmp_path / "data.jsonl", [{"not": "read"}]),
        tmp_path / "warehouse",
        models=[{"label": "alpha", "source": "imported"}],
        judges=[endpoint("judge", "http://localhost/v1")],
    )
    [config] = judge_configs(job, load_benchmark("prbench"))
    criteria = []
    responses = []
    verdicts = []
    for number, task_id in enumerate(TASK_IDS):
        criterion_row = criterion(task_id, 0, 5.0)
        response_row = response(task_id, "alpha", model_config_hash=IMPORTED)
        response_row["source"] = IMPORTED
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
