"""The leaderboard of a job: its query, and how it is shown to people."""

from collections.abc import Sequence
from typing import Any

from flows.query import Table
from tasks.llm.embedded import is_embedded
from tasks.rules.errors import UsageError
from tasks.settings import Job
from tasks.sources import source_of
from warehouse import Reader, Warehouse

_OPTIONAL = {
    "n_trials", "cost_usd", "judge_trial", "judge_config_hash", "template_hash", "model_config_hash", "vintage",
}  # fmt: skip

_LEADERBOARD = """
    select split, rank, model, mean_score, ci_low, ci_high, n_tasks, n_tasks_wanted, coverage, n_trials, n_tasks_ranked,
        mean_chars_alnum, cost_usd, judge, judge_trial, judge_config_hash, template_hash, model_config_hash, vintage,
        score_name
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
    select split, category, model, avg(value) as mean_score, count(*) as n_tasks, judge, judge_trial,
        judge_config_hash, template_hash, model_config_hash, vintage, $score as score_name
    from task_values
    where is_complete
    group by split, category, model, model_config_hash, judge, judge_config_hash, template_hash, judge_trial, vintage
    order by split, category, judge, judge_trial, vintage, mean_score desc, model
"""


def leaderboard(
    job: Job,
    *,
    vintage: str | None,
    score: str | None = None,
    by: str | None = None,
    is_hard: bool = False,
    must_know: bool = False,
) -> Table:
    """The leaderboard of the job's data-set revision, in one vintage or (None) in all.

    Raises:
        UsageError: the benchmark has no such score; with `must_know`, a label asked for has no row at all.
    """
    benchmark, source = source_of(job)
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
        "judges": list(job.named_judges or ()),
        "vintage": vintage,
    }
    with Warehouse(job.warehouse).reader() as reader:
        found = Table(*reader.table(query, parameters))
        if must_know and not found.rows:
            _refuse_unknown(reader, "split", job.settings.dataset.splits)
            _refuse_unknown(reader, "model", job.named_models or ())
            _refuse_unknown(reader, "judge", job.named_judges or ())
            _refuse_unknown(reader, "vintage", (vintage,) if vintage else ())
        return found


def _refuse_unknown(reader: Reader, column: str, labels: Sequence[str]) -> None:
    """Tell a label that the leaderboard does not know from one that has no row yet."""
    known = [row[column] for row in reader.rows(f"select distinct {column} from leaderboard order by all")]
    unknown = [label for label in labels if label not in known]
    if unknown and known:
        raise UsageError(f"--{column} {unknown[0]}: the leaderboard has none; it has {', '.join(known)}")


def for_people(table: Table) -> tuple[list[str], list[list[Any]]]:
    """The columns that one looks at; hashes, vintage, trials and cost only where they tell something."""
    records = table.records
    telling = {name for name in _OPTIONAL if len({r.get(name) for r in records}) > 1}
    telling |= {name for name in ("cost_usd", "n_trials") if any(r.get(name) not in {None, 1} for r in records)}
    shown: dict[str, Any] = {
        "split": lambda r: r["split"],
        "category": lambda r: r["category"],
        "rank": lambda r: r["rank"],
        "model": lambda r: r["model"],
        "mean_score": lambda r: None if r["mean_score"] is None else f"{r['mean_score']:.3f}",
        "ci_low": lambda r: None if r["ci_low"] is None else f"{r['ci_low']:.3f} to {r['ci_high']:.3f}",
        "n_tasks": lambda r: f"{r['n_tasks']} of {r['n_tasks_wanted']}" if "n_tasks_wanted" in r else r["n_tasks"],
        "coverage": lambda r: f"{r['coverage']:.1%}",
        "n_trials": lambda r: r["n_trials"],
        "mean_chars_alnum": lambda r: None if r["mean_chars_alnum"] is None else round(r["mean_chars_alnum"]),
        "cost_usd": lambda r: None if r["cost_usd"] is None else f"{r['cost_usd']:.2f}",
        "judge": lambda r: r["judge"],
        "judge_trial": lambda r: r["judge_trial"],
        "judge_config_hash": lambda r: r["judge_config_hash"][:8],
        "template_hash": lambda r: r["template_hash"][:8],
        "model_config_hash": lambda r: r["model_config_hash"][:8],
        "vintage": lambda r: r["vintage"],
    }
    names = [name for name in shown if name in table.columns and (name not in _OPTIONAL or name in telling)]
    titles = {"mean_score": records[0]["score_name"], "ci_low": "95 % interval", "mean_chars_alnum": "letters+digits"}
    return [titles.get(name, name) for name in names], [[shown[name](r) for name in names] for r in records]


def caveats(job: Job, records: Sequence[dict[str, Any]]) -> list[str]:
    """What must be known beside the figures."""
    lines = []
    bar = job.settings.coverage.min
    low = sorted({r["model"] for r in records if "coverage" in r and r["coverage"] < bar})
    if low:
        lines.append(f"Below the coverage bar of {bar:.0%}; the figures rest on a part of the split: {', '.join(low)}")
    embedded = {judge.label for judge in job.settings.judges if is_embedded(judge.name)}
    if embedded & {r["judge"] for r in records}:
        lines.append("The judge is the embedded model, far too small to judge: the figures only show that all works.")
    return lines
