"""What the commands that only read show: leaderboards, the coverage matrix, SQL. No Prefect, nothing heavy."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb

from tasks.benchmarks import load_benchmark
from tasks.rules.errors import PipelineError, UsageError
from tasks.settings import Job
from tasks.sources import open_source
from warehouse import Warehouse

_LEADERBOARD = """
    select split, rank, model, mean_score, ci_low, ci_high, n_tasks, n_tasks_wanted, coverage, n_trials, n_tasks_ranked,
        mean_chars_alnum, cost_usd, judge, judge_trial, vintage, score_name
    from {table}
    where benchmark = $benchmark and dataset_revision = $revision and score_name = $score
        and (len($splits::varchar[]) = 0 or list_contains($splits::varchar[], split) or {is_hard})
        and (len($models::varchar[]) = 0 or list_contains($models::varchar[], model))
        and (len($judges::varchar[]) = 0 or list_contains($judges::varchar[], judge))
        and ($vintage::varchar is null or vintage = $vintage)
    order by split, judge, judge_trial, vintage, rank nulls last, model
"""

_BY_CATEGORY = """
    with task_values as (
        select split, category, model, model_config_hash, judge, judge_config_hash, template_hash, judge_trial, vintage,
            task_id, avg(value) as value, count(value) = count(*) as is_complete
        from category_scores inner join boards using (benchmark, dataset_revision, task_id)
        where benchmark = $benchmark and dataset_revision = $revision and score_name = $score
            and is_own_hard = {is_hard}
            and (len($splits::varchar[]) = 0 or list_contains($splits::varchar[], split) or {is_hard})
            and (len($models::varchar[]) = 0 or list_contains($models::varchar[], model))
            and (len($judges::varchar[]) = 0 or list_contains($judges::varchar[], judge))
            and ($vintage::varchar is null or vintage = $vintage)
        group by all
    )
    select split, category, model, avg(value) as mean_score, count(*) as n_tasks, judge, judge_trial, vintage,
        $score as score_name
    from task_values
    where is_complete
    group by split, category, model, model_config_hash, judge, judge_config_hash, template_hash, judge_trial, vintage
    order by split, category, judge, judge_trial, vintage, mean_score desc, model
"""


@dataclass(frozen=True)
class Table:
    """A result: its columns and its rows."""

    columns: list[str]
    rows: list[tuple[Any, ...]]

    @property
    def records(self) -> list[dict[str, Any]]:
        """The rows as dictionaries."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


def leaderboard(
    job: Job, *, judges: Sequence[str], vintage: str | None, score: str | None, by: str | None, is_hard: bool
) -> Table:
    """The leaderboard of the job's data-set revision.

    Raises:
        UsageError: the benchmark has no such score.
    """
    benchmark = load_benchmark(job.settings.benchmark)
    source = open_source(job.settings.dataset, benchmark.name, benchmark.default_dataset_id)
    names = [definition.score_name for definition in benchmark.scores]
    chosen = score or ("min_normalized" if by and "min_normalized" in names else benchmark.primary_score.score_name)
    if chosen not in names:
        raise UsageError(f"--score {chosen}: {benchmark.name} has {', '.join(names)}")
    table = "hard_leaderboard" if is_hard else "leaderboard"
    query = (_BY_CATEGORY if by else _LEADERBOARD).format(table=table, is_hard=str(is_hard).lower())
    parameters = {
        "benchmark": benchmark.name,
        "revision": source.revision,
        "score": chosen,
        "splits": list(job.settings.dataset.splits),
        "models": list(job.named_models or ()),
        "judges": list(judges),
        "vintage": vintage,
    }
    with Warehouse(job.warehouse).reader() as reader:
        return Table(*reader.table(query, parameters))


def run_sql(database: Path, query: str) -> Table:
    """The result of a query on the published database, which it can neither change nor leave.

    Raises:
        PipelineError: DuckDB refuses the query; the message is its own.
    """
    if not database.exists():
        raise PipelineError(f"{database}: nothing is published here yet; run `prbench ingest` or `prbench run`")
    try:
        with duckdb.connect(str(database), read_only=True) as connection:
            connection.execute("set autoinstall_known_extensions = false")
            connection.execute("set autoload_known_extensions = false")
            # A query reads this database, and no file or address beside it.
            connection.execute("set enable_external_access = false")
            connection.execute("set lock_configuration = true")
            cursor = connection.execute(query)
            columns = [column[0] for column in cursor.description or []]
            return Table(columns, cursor.fetchall() if columns else [])
    except duckdb.Error as error:
        raise PipelineError(f"SQL: {' '.join(str(error).split())}") from error
