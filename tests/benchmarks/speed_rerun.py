"""A finished night run again: 20 models x 3 trials on 1,100 tasks, 1.16 M verdicts, and no call to make.

The tasks are ingested and checked as always; answers and verdicts are written as parts by DuckDB. Then the whole job is
done without Prefect, whose own start and bookkeeping are apart, once for what it leaves behind and once to be measured.
"""

import asyncio
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

from flows.execution import execute
from flows.pipeline import coverage_report
from tasks.aggregate import aggregate
from tasks.benchmarks import load_benchmark
from tasks.config.job import Job
from tasks.hard_subset.select import select_hard
from tasks.judge.judge import plan_verdicts
from tasks.run.judge_configs import judge_configs, target_of
from tasks.run.run_context import open_run_context
from tasks.run.writing import StageReport
from tasks.sample import plan_samples
from tests.benchmarks.bench import in_process_of_its_own, table
from tests.benchmarks.figures import Figure, arguments, report
from tests.benchmarks.synthetic import FIELDS, Size, answers
from tests.kit import good_row, job_on, prepared
from tests.tasks.dataset.rows import hub_criterion
from warehouse import Warehouse

SPLITS = {split: (field, *numbers) for field, (split, *numbers) in FIELDS.items()}


def data(folder: Path) -> Path:
    """The data set: tasks in the hub's shape, with the paper's numbers of tasks and criteria."""
    folder.mkdir(parents=True, exist_ok=True)
    for split, (field, n_tasks, n_criteria) in SPLITS.items():
        with (folder / f"{split}.jsonl").open("w", encoding="utf-8") as file:
            for i in range(n_tasks):
                own = n_criteria // n_tasks + (i < n_criteria % n_tasks)
                task_id = f"{split}-{i}"
                rubric = [hub_criterion(f"{task_id}-{j}", "important", 4 + j % 4) for j in range(own)]
                row = good_row(task_id, field=field, prompt_0=f"What about {task_id}?", rubric=rubric)
                file.write(json.dumps(row) + "\n")
    return folder


def job_of(folder: Path, n_models: int, run_id: str) -> Job:
    """The job, on endpoints that nobody listens at."""
    nowhere = {"api_base": "http://127.0.0.1:9/v1"}
    models = [{"name": f"hosted_vllm/model-{i:02d}", "label": f"model-{i:02d}", **nowhere} for i in range(n_models)]
    judges, dataset = [{"name": "hosted_vllm/judge", "label": "judge", **nowhere}], {"splits": list(SPLITS)}
    given = {"dataset": {"source": str(folder / "data"), **dataset}, "models": models, "judges": judges, "trials": 3}
    return job_on(folder / "data", folder / "warehouse", run_id, **given)


def fill(folder: Path, n_models: int) -> None:
    """Ingest the tasks, and write all answers and verdicts as parts."""
    data(folder / "data")
    job = prepared(job_of(folder, n_models, "filling"))
    warehouse = Warehouse(job.warehouse)
    judge_config = judge_configs(job, load_benchmark(job.settings.benchmark))[0].columns
    with duckdb.connect() as connection:
        connection.execute(f"""
            attach '{warehouse.database}' as published (read_only);
            create view made_tasks as select *, 0.5 as difficulty from published.tasks;
            create view made_criteria as from published.criteria
        """)
        for model in job.settings.models:
            own = target_of(model).config_hash, judge_config
            answers(connection, warehouse, Size(n_models, 3), model.label, "base", *own)


def rerun(folder: Path, n_models: int, run_id: str) -> list[tuple[str, float]]:
    """(step, seconds) of the whole job on what is there, with what a run writes at its beginning and end."""
    job = job_of(folder, n_models, run_id)
    steps: list[tuple[str, float]] = []

    def timed(name: str, work: Callable[[], Any]) -> Any:
        began_s = time.monotonic()
        found = work()
        steps.append((name, time.monotonic() - began_s))
        return found

    def stages() -> list[StageReport]:
        timed("ingest, check, assemble", lambda: prepared(job))
        cells = timed("missing answers", lambda: plan_samples(job, retry_failed=False))
        missing = timed("missing verdicts", lambda: plan_verdicts(job, retry_failed=False))
        assert not any([*cells.values(), *(found for _, found in missing)]), "something is missing"
        asyncio.run(_nothing_to_call(job))
        timed("aggregate", lambda: aggregate(job))
        timed("select the hard subset", lambda: select_hard(job, must_select=False))
        return [timed("coverage", lambda: coverage_report(job))]

    began_s = time.monotonic()
    execute(job, stages)
    whole_s = time.monotonic() - began_s
    return [*steps, ("record of the run", whole_s - sum(s for _, s in steps)), ("in all", whole_s)]


async def _nothing_to_call(job: Job) -> None:
    async with open_run_context(job):
        pass


def main() -> None:
    """Measure and print."""
    given = arguments(__doc__, keeps=True, models=20, folder=(Path, "keep the warehouse here and use it again"))
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        if not (folder / "filled").exists():
            in_process_of_its_own(fill, folder, given.models)
            (folder / "filled").touch()
        first = in_process_of_its_own(rerun, folder, given.models, f"first-{time.time_ns()}")
        again = in_process_of_its_own(rerun, folder, given.models, f"again-{time.time_ns()}")
        verdicts = given.models * 3 * sum(criteria for _, _, criteria in SPLITS.values())
        print(f"{verdicts:,} verdicts\n")
        pairs = zip(first, again, strict=True)
        rows = [(name, f"{before:.2f}", f"{after:.2f}") for (name, before), (_, after) in pairs]
        print(table(["step, seconds", "first", "again"], rows))
        found = Figure("a second run", again[-1][1], "the first run", first[-1][1], "s")
        print(report(f"speed_rerun, {verdicts:,} verdicts", [found], must_keep=given.keep))


if __name__ == "__main__":
    main()
