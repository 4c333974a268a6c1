"""What came out, as tables in Prefect's UI: leaderboard, data quality, cost."""

import asyncio
from typing import Any

from flows.leaderboard import Choice, leaderboard
from flows.showing import table_shown
from tasks.accounts import run_cost
from tasks.benchmarks import load_benchmark
from tasks.settings import Job
from warehouse import Warehouse

_SHOWN = (
    "split", "rank", "model", "judge", "grading", "vintage", "mean_score", "ci_low", "ci_high", "n_tasks",
    "n_tasks_wanted", "coverage", "cost_usd",
)  # fmt: skip
_MOST_ROWS = 200
_QUALITY = """
    select suite, check_name, expectation, severity, success, n_evaluated, n_failed
    from checks
    where benchmark = ? and dataset_revision = ?
    qualify created_at = max(created_at) over (partition by suite)
    order by success, suite, check_name, expectation
"""


async def results_shown(job: Job) -> None:
    """Show the leaderboard, what the last checks found, and what this run's calls cost."""
    benchmark, data = load_benchmark(job.settings.benchmark), job.data
    with Warehouse(job.warehouse).reader() as reader:
        quality = reader.rows(_QUALITY, [benchmark.name, data.revision])
    cost = await asyncio.to_thread(run_cost, job, job.run_id)
    rows = leaderboard(job, Choice()).records[:_MOST_ROWS]
    await table_shown("leaderboard", f"Leaderboard after run {job.run_id}", (_rounded(row) for row in rows))
    await table_shown("quality", f"Data quality as of run {job.run_id}", quality)
    await table_shown("cost", f"What the calls of run {job.run_id} cost", map(_rounded_all, cost))


def _rounded(row: dict[str, Any]) -> dict[str, Any]:
    return _rounded_all({name: row[name] for name in _SHOWN})


def _rounded_all(row: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, 4) if isinstance(value, float) else value for name, value in row.items()}
