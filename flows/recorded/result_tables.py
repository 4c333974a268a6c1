"""What came out, as tables in Prefect's UI: leaderboard, data quality, cost."""

import asyncio
from typing import Any

import sql
from flows.recorded.artifacts import table_shown
from tasks.benchmarks import load_benchmark
from tasks.compare import Choice, leaderboard
from tasks.config.job import Job
from tasks.maintain import run_cost
from warehouse import Warehouse

_SHOWN = (
    "split", "rank", "model", "judge", "grading", "vintage", "mean_score", "ci_low", "ci_high", "n_tasks",
    "n_tasks_wanted", "coverage", "cost_usd",
)  # fmt: skip
_MOST_ROWS = 200


async def results_shown(job: Job) -> None:
    """Show the leaderboard, what the last checks found, and what this run's calls cost."""
    benchmark, data = load_benchmark(job.settings.benchmark), job.data
    with Warehouse(job.warehouse).reader() as reader:
        parameters = {"benchmark": benchmark.name, "revision": data.revision}
        quality = reader.rows(sql.read("questions/check/last_checks"), parameters)
    cost = await asyncio.to_thread(run_cost, job, job.run_id)
    rows = ({name: row[name] for name in _SHOWN} for row in leaderboard(job, Choice()).records[:_MOST_ROWS])
    await table_shown(job, "leaderboard", f"Leaderboard after run {job.run_id}", map(_rounded, rows))
    await table_shown(job, "quality", f"Data quality as of run {job.run_id}", quality)
    await table_shown(job, "cost", f"What the calls of run {job.run_id} cost", map(_rounded, cost))


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()}
