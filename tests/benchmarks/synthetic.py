"""A made-up warehouse of any size: 1,100 tasks with 19,356 criteria, models x trials x nights of
verdicts.

DuckDB writes the parts in seconds; making the rows one by one in Python would take minutes. They
have the contracts' columns and types, and the project's own code publishes them.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import duckdb

from tasks.benchmarks.prbench import SCORES, SEVERITIES
from tests.kit import row
from warehouse import Warehouse
from warehouse.columns import COLUMNS
from warehouse.tables import TABLES

FIELDS = {"Finance": ("finance", 600, 10_264), "Legal": ("legal", 500, 9_092)}
"""Field -> split, tasks and criteria, as in the paper's table 1."""
_SQL_TYPES = {
    "string": "varchar",
    "int64": "bigint",
    "double": "double",
    "bool": "boolean",
}
REVISION = "0" * 40
"""A full commit hash, so that a job with it does not ask the hub for one."""


@dataclass(frozen=True)
class Size:
    """The size of the data: every model responds to every task in every trial of every vintage, and
    all is judged.

    With `response_words` and `explanation_words`, responses are Markdown and explanations are
    sentences of this many made-up words, and all texts differ; without, texts are short and much
    alike.
    """

    models: int = 20
    trials: int = 3
    vintages: int = 1
    response_words: int = 0
    explanation_words: int = 0

    @property
    def verdicts(self) -> int:
        """The number of verdicts."""
        return (
            self.models
            * self.trials
            * self.vintages
            * sum(criteria for _, _, criteria in FIELDS.values())
        )


def fill(warehouse: Warehouse, size: Size):
    """Write the parts; nothing is published yet."""
    warehouse.write(
        "score_definitions",
        [row("score_definitions", **asdict(score)) for score in SCORES],
    )
    warehouse.write(
        "severities",
        [
            row(
                "severities",
                severity=name,
                min_weight=low,
                max_weight=high,
            )
            for name, (low, high) in SEVERITIES.items()
        ],
    )
    with duckdb.connect() as connection:
        _tasks(connection)
        for table_name in ("task_rows", "split_members", "criteria", "checks"):
            copy_rows(
                connection,
                warehouse,
                table_name,
                f"select * from made_{table_name}",
            )
        if size.response_words:
            _prompts(connection, warehouse, size)
        for model, vintage in _series(size):
            responses(connection, warehouse, size, model, vintage)


def add_night(warehouse: Warehouse, size: Size, model: str, night: str):
    """Write the parts of another night: one model's responses, judged like the others; nothing is
    published yet.
    """
    with duckdb.connect() as connection:
        _tasks(connection)
        responses(connection, warehouse, size, model, night)


def _series(size: Size) -> Iterator[tuple[str, str]]:
    for night in range(size.vintages):
        vintage = "base" if night == 0 else f"night-{night:02d}"
        for number in range(size.models):
            yield f"model-{number:02d}", vintage


def _tasks(connection: duckdb.DuckDBPyConnection):
    """Make the tasks and criteria, each with a difficulty that the verdicts depend on."""
    fields = " union all ".join(
        f"select '{field}' as field, '{split}' as split, {tasks} as n_tasks, {criteria} as n_all"
        for field, (split, tasks, criteria) in FIELDS.items()
    )
    connection.execute(f"""
        create table made_tasks as
        select 'prbench' as benchmark, '{REVISION}' as dataset_revision, field, split, md5(split || i)[:24] as task_id,
            md5(task_id || 'c') as conversation_id, i as position, hash(split, i) % 1000 / 1000 as difficulty,
            n_all // n_tasks + (i < n_all % n_tasks)::int as n_criteria
        from ({fields}) cross join range(600) as numbers(i) where i < n_tasks;
        create table made_criteria as
        select benchmark, dataset_revision, task_id, md5(task_id || j) as criterion_id,
            j as position, 'The response covers point ' || j || ' of ' || task_id as title,
            'Category ' || ((hash(task_id) + j) % 11 + if(field = 'Legal', 5, 0)) as category,
            case when j % 14 = 13 then -1 - (hash(task_id, j) % 10)::int else 1 + (hash(task_id, j) % 10)::int end
                ::double as weight,
            null::varchar as weight_text, md5('title' || task_id || j)[:32] as content_hash, difficulty,
            case when weight >= 8 then 'critically important' when weight >= 4 then 'important'
                when weight > 0 then 'slightly important' when weight >= -3 then 'slightly detrimental'
                when weight >= -7 then 'detrimental' else 'critically detrimental' end as severity
        from made_tasks cross join range(30) as numbers(j) where j < n_criteria;
        create table made_task_rows as
        select benchmark, dataset_revision, task_id, conversation_id, field,
            field || ' topic ' || position % 12 as topic, if(position % 3 = 0, 'Non-Expert', 'Expert') as expert,
            1 + position % 4 as turns, 'u' || repeat('au', position % 4) as turn_pattern, ['Decision ' || position % 9, 'Decision ' || position % 7]
            as decision_types, ['Pathway ' || position % 8] as economic_pathways, n_criteria,
            positive_weight, negative_weight, position % 30 = 0 as has_reference_texts, 1 as n_rows,
            md5(task_id || 'h') as content_hash
        from made_tasks inner join (
            select task_id, sum(weight) filter (weight > 0) as positive_weight,
                coalesce(sum(weight) filter (weight < 0), 0) as negative_weight
            from made_criteria group by task_id
        ) using (task_id);
        create table made_split_members as
        select benchmark, dataset_revision, split, task_id, position, 'c' as canary
        from made_tasks;
        create table made_checks as
        select 'a-run' as run_id, 'prbench' as benchmark, '{REVISION}' as dataset_revision, 'ingest' as suite,
            'none' as check_name, 'none' as expectation, 'rubrics' as table_name, 'warn' as severity, true as success,
            count(*) as n_evaluated, 0 as n_failed, []::varchar[] as failing_keys, now() as created_at from made_tasks
    """)


def _prompts(connection: duckdb.DuckDBPyConnection, warehouse: Warehouse, size: Size):
    """Store the conversations, half as long as a response."""
    prompt = _prose("task_id", size.response_words // 2)
    keys = "benchmark, dataset_revision, task_id, 0 as position, conversation_id"
    shared = f"select {keys}, {prompt} as prompt from made_tasks"
    copy_rows(connection, warehouse, "conversation_turns", shared)
    copy_rows(
        connection,
        warehouse,
        "message_rows",
        f"select *, 'user' as role, prompt as content from ({shared})",
    )


def _prose(key: str, n_words: int, is_markdown: bool = False) -> str:
    """SQL for a text of `n_words` words from a vocabulary of 4,000; each key has another text."""
    word = f"substr(md5((hash({key}, i) % 4000)::varchar), 1, 2 + (hash({key}, i) % 9)::int)"
    if is_markdown:
        word = f"""case when i % 90 = 0 then chr(10) || chr(10) || '## ' || {word} || chr(10) || chr(10)
            when i % 15 = 0 then chr(10) || '- **' || {word} || '**' else {word} end"""
    return f"array_to_string(list_transform(range({n_words}), lambda i: {word}), ' ')"


def responses(
    connection: duckdb.DuckDBPyConnection,
    warehouse: Warehouse,
    size: Size,
    model: str,
    vintage: str,
):
    """Write a model's responses in a vintage to the tasks in `made_tasks`, and the verdicts on
    `made_criteria`.
    """
    skill = 0.25 + 0.5 * int(model[-2:]) / max(size.models, 1)
    text = "repeat(md5(task_id) || ' words of a response ', 40)"
    if size.response_words:
        text = _prose(
            f"task_id, trial, '{model}{vintage}'",
            size.response_words,
            is_markdown=True,
        )
    reason = (
        "'Because of what stands in ' || md5(concat(criterion_id, response_id)) || ' the point is"
        " as said, see '"
    )
    if size.explanation_words:
        reason = (
            _prose("criterion_id, response_id", size.explanation_words) + " || ' '"
        )
    connection.execute(f"""
        create or replace table made_responses as
        select md5(concat(task_id, trial, '{model}{vintage}')) as response_id, benchmark, dataset_revision, task_id,
            conversation_id, '{model}' as model, 'as configured' as model_config_hash, trial, '{vintage}' as vintage,
            'sampled' as source,
            'ok' as status, {text} as text,
            hash(trial, task_id, '{model}') % 1000 / 1000 as luck, (800 + 2400 * luck)::bigint as chars_alnum,
            'stop' as finish_reason, false as degraded,
            900 as prompt_tokens, 500 as completion_tokens, 0.01 as cost_usd, 12.0 as latency_s, 1 as attempts,
            'a-run' as run_id, now() as created_at, difficulty + 0.2 * luck as difficulty
        from made_tasks cross join range(1, {size.trials + 1}) as trials(trial)
    """)
    copy_rows(
        connection,
        warehouse,
        "responses",
        "select * exclude (difficulty, luck) from made_responses",
    )
    copy_rows(
        connection,
        warehouse,
        "verdicts",
        f"""
        select md5(concat(response_id, criterion_id)) as verdict_id, response_id, responses.benchmark,
            responses.dataset_revision, task_id, criterion_id, criteria.content_hash as criterion_hash, model, trial,
            vintage, 'a-judge as configured' as judge_config_hash, 'a-template' as template_hash, 'a-judge' as judge,
            'binary' as grading, 1 as judge_trial, 'judged' as source,
            -- One in 2,000 failed; the others depend on the model's skill and the task's difficulty.
            case when hash(criterion_id, response_id) % 2000 > 0 then
                (hash(response_id, criterion_id) % 1000000 / 1e6 + 0.4 * responses.difficulty < {skill} + 0.3)::int
            end as value,
            case value when 1 then 'met' when 0 then 'unmet' else 'timeout' end as status,
            {reason} || criterion_id as explanation,
            2000 as prompt_tokens, 1800 as cached_tokens, 90 as completion_tokens, 0.001 as cost_usd,
            2.0 as latency_s, 1 as attempts, 'a-run' as run_id, now() as created_at
        from made_responses as responses inner join made_criteria as criteria using (task_id)
        order by response_id, criteria.position
    """,
    )


def copy_rows(
    connection: duckdb.DuckDBPyConnection,
    warehouse: Warehouse,
    table_name: str,
    query: str,
):
    """Write the rows of a query as one part, with the contract's columns in its order and types."""
    folder = warehouse.store.root / table_name
    folder.mkdir(parents=True, exist_ok=True)
    connection.execute(f"create or replace temp view made_rows as {query}")
    described = connection.execute("describe made_rows").fetchall()
    stored_names = {name for name, *_ in described}
    columns = []
    for name in TABLES[table_name].columns:
        value = name if name in stored_names else "null"
        columns.append(f"{value}::{_sql_type(name)} as {name}")
    number = len(warehouse.store.current_parts(table_name)) + 1
    unnamed = folder / ".written"
    connection.execute(
        f"copy (select {', '.join(columns)} from made_rows) to '{unnamed}'"
        " (format parquet, compression zstd)"
    )
    with unnamed.open("rb") as written:
        content_hash = hashlib.file_digest(written, "sha256").hexdigest()
    unnamed.rename(folder / f"{number:015d}-{content_hash[:24]}.parquet")


def _sql_type(column: str) -> str:
    arrow_type = str(COLUMNS[column][0])
    if "timestamp" in arrow_type:
        return "timestamptz"
    return _SQL_TYPES.get(arrow_type, "varchar[]")


def synthetic_warehouse(folder: Path, size: Size) -> Warehouse:
    """A filled warehouse in a folder; an existing one is used as it is."""
    warehouse = Warehouse(folder)
    if not (folder / "filled").exists():
        fill(warehouse, size)
        (folder / "filled").touch()
    return warehouse
