"""Helpers of all tests: rows complete by the contract, warehouses with them, readers, jobs, stages
without Prefect.

A test writes only the content that it needs; all other content is made up.
"""

import asyncio
import atexit
import functools
import json
import math
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

import sql
from tasks.aggregate import aggregate
from tasks.assemble import assemble
from tasks.benchmarks.prbench import SCORES
from tasks.bundles.stores import Store
from tasks.check import check
from tasks.config.job import Job
from tasks.config.settings import Dataset, Settings
from tasks.dataset.source import with_revision
from tasks.exports.tables import import_tables, opened_export
from tasks.ingest import ingest
from tasks.judge.judge import (
    judge_by_provider_batches,
    judge_responses,
    missing_by_judge,
)
from tasks.llm.ledger.entries import Entry, statements_recording
from tasks.llm.ledger.ledger import Ledger
from tasks.llm.replies import Reply
from tasks.rules.identity import criterion_hash
from tasks.run.run_context import open_run_context
from tasks.run.writing import StageReport
from tasks.sample import plan_samples, sample_cells
from tests.tasks.dataset.rows import hub_criterion, hub_row
from warehouse import Reader, Warehouse
from warehouse.tables import TABLES

Row = dict[str, Any]
Values = list[tuple[Any, ...]]
"""Rows without column names."""
Rows = dict[str, list[Row]]
"""Rows by table."""
Patch = pytest.MonkeyPatch
Fill = Callable[..., Reader]
"""The fixture `published`: writes rows by table, and returns a reader on them; tests may call it
several times.
"""

ROOT = Path(__file__).parents[1]
SHARED_DATA = ROOT / "../shared/data"
"""Real data beside the checkout, if there is any; never part of the project."""

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
REVISION = "a-revision"
_MODELS_ABOVE = sql.models_above
"""The function itself, also while `few_published` replaces it."""
_COMMON = {
    "benchmark": "prbench",
    "dataset_revision": REVISION,
    "conversation_id": "a-conversation",
    "model_config_hash": "a-configuration",
    "vintage": "base",
    "trial": 1,
    "judge": "a-judge",
    "judge_config_hash": "a-judge-configuration",
    "template_hash": "a-template",
    "grading": "binary",
    "judge_trial": 1,
    "run_id": "a-run",
    "created_at": EPOCH,
    "attempts": 1,
}


def row(table_name: str, /, **values: Any) -> Row:
    """A row with every column of its contract: the given values, values common to all tests, and
    NULL elsewhere.

    Raises KeyError for a column that the table does not have.
    """
    columns = TABLES[table_name].columns
    unknown = values.keys() - set(columns)
    if unknown:
        raise KeyError(f"not a column of {table_name}: {sorted(unknown)}")
    return {column: values.get(column, _COMMON.get(column)) for column in columns}


def at(seconds: float) -> datetime:
    """A time, counted from a fixed moment."""
    return EPOCH + timedelta(seconds=seconds)


def admitted(task_ids: Sequence[str], split: str = "finance", **values: Any) -> Rows:
    """The rows by table that put tasks into a split, checked and admitted."""
    task_values = {"field": "Finance", "n_criteria": 0} | values
    task_rows = []
    members = []
    for position, task_id in enumerate(task_ids):
        task_rows.append(row("task_rows", task_id=task_id, **task_values))
        members.append(
            row("split_members", split=split, task_id=task_id, position=position)
        )
    check_row = row(
        "checks",
        suite="ingest",
        check_name="any",
        expectation="any",
        table_name="rubrics",
        n_evaluated=len(task_ids),
        success=True,
    )
    return {
        "task_rows": task_rows,
        "split_members": members,
        "checks": [check_row],
        "score_definitions": [
            row("score_definitions", **asdict(score)) for score in SCORES
        ],
    }


def criterion(
    task_id: str,
    position: int,
    weight: float | None,
    category: str | None = "Practical Utility",
) -> Row:
    """A criterion row; its id is made of the task's id and its position."""
    title = f"{task_id} needs point {position}"
    return row(
        "criteria",
        task_id=task_id,
        criterion_id=f"{task_id}-c{position}",
        position=position,
        title=title,
        category=category,
        weight=weight,
        content_hash=criterion_hash(title),
    )


def response(
    task_id: str,
    model: str = "a-model",
    trial: int = 1,
    status: str = "ok",
    **values: Any,
) -> Row:
    """A response row; its id is made of task, model and trial."""
    return row(
        "responses",
        response_id=f"{task_id}/{model}/{trial}",
        task_id=task_id,
        model=model,
        trial=trial,
        source="sampled",
        status=status,
        text="An answer." if status == "ok" else None,
        degraded=False,
        **values,
    )


_STATUS = {
    1.0: "met",
    0.5: "partial",
    0.0: "unmet",
    None: "parse_error",
}


def verdict(
    response_row: Row,
    criterion_row: Row,
    value: float | None,
    **values: Any,
) -> Row:
    """A verdict row; `value` None means a failed verdict."""
    columns = {
        "judge": "a-judge",
        "judge_trial": 1,
        "status": _STATUS[value],
        "source": "judged",
        "value": value,
        "criterion_hash": criterion_row["content_hash"],
        "criterion_id": criterion_row["criterion_id"],
        "response_id": response_row["response_id"],
        "task_id": response_row["task_id"],
        "model": response_row["model"],
        "trial": response_row["trial"],
        "vintage": response_row["vintage"],
        **values,
    }
    cell = ("response_id", "criterion_id", "judge", "judge_trial")
    verdict_id = "/".join(str(columns[name]) for name in cell)
    return row("verdicts", verdict_id=verdict_id, **columns)


def combined(*parts: Mapping[str, Iterable[Row]]) -> Rows:
    """The rows of all parts, table by table."""
    rows = {}
    for part in parts:
        for table_name, table_rows in part.items():
            rows.setdefault(table_name, []).extend(table_rows)
    return rows


def good_rubric(task_id: str, n_criteria: int = 10) -> list[Row]:
    """A rubric that no check refuses, in the hub's shape."""
    return [
        hub_criterion(f"{task_id}-c{i}", "important", 5) for i in range(n_criteria)
    ]


def good_row(task_id: str, **changes: Any) -> Row:
    """A row in the hub's shape that no check refuses."""
    columns = {"rubric": good_rubric(task_id), **changes}
    return hub_row(task_id, **columns)


def write_jsonl(path: Path, rows: Iterable[object]) -> Path:
    """Write rows as JSON Lines and return the path."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def written(
    folder: Path,
    tables: Mapping[str, list[Row]],
    revision: str | None = None,
) -> Warehouse:
    """A warehouse with these rows by table, not yet published; a given revision replaces that of
    all rows.
    """
    warehouse = Warehouse(folder)
    for table_name, rows in tables.items():
        replaced = {}
        if revision is not None and "dataset_revision" in TABLES[table_name].columns:
            replaced = {"dataset_revision": revision}
        warehouse.write(table_name, [table_row | replaced for table_row in rows])
    return warehouse


def aggregated(
    folder: Path,
    tables: Mapping[str, list[Row]],
    **settings: Any,
) -> Warehouse:
    """A warehouse with these rows, published and measured."""
    warehouse = written(folder, tables)
    aggregate(job_on("sample", folder, **settings))
    return warehouse


def stored(folder: Path, tables: Rows) -> Path:
    """A folder with a configuration for a data set, and a warehouse with these rows under its
    revision, aggregated.
    """
    source = write_jsonl(folder / "finance.jsonl", [{}])
    configure(folder, dataset={"source": str(source)})
    job = job_on(source, folder / "data")
    written(job.warehouse, tables, job.data.revision)
    aggregate(job)
    return folder


@contextmanager
def reading(
    folder: Path,
    *parts: Mapping[str, Iterable[Row]],
) -> Iterator[Reader]:
    """A fresh warehouse with these rows, published and opened."""
    warehouse = written(folder, combined(*parts))
    warehouse.publish()
    with warehouse.reader() as reader:
        yield reader


def rows_in(source: Path | Job, query: str, *parameters: Any) -> list[Row]:
    """The rows that a query finds in the published state of a warehouse, or of a job's."""
    folder = source if isinstance(source, Path) else source.warehouse
    with Warehouse(folder).reader() as reader:
        return reader.rows(query, list(parameters) or None)


def write_calls(
    folder: Path,
    entries: Sequence[Entry],
    spent: Sequence[tuple[str, int]] = (),
):
    """Write finished calls to a ledger, and the attempts that have become failed rows."""

    async def write():
        with closing(Ledger(folder)) as ledger:
            await ledger.write(*statements_recording(entries))
            ledger.mark_spent(spent)

    asyncio.run(write())


def add_calls(job: Job, *entries: Entry):
    """Write finished calls into the ledger of a job's warehouse."""
    write_calls(job.warehouse / "ledger", entries)


def call_entry(
    key: str,
    run_id: str = "a-run",
    *,
    cost_usd: float | None = 0.5,
    **values: Any,
) -> Entry:
    """A finished call for a ledger."""
    reply = Reply(
        "ok",
        "x",
        prompt_tokens=1,
        completion_tokens=1,
        cost_usd=cost_usd,
    )
    fields = {
        "call_key": key,
        "run_id": run_id,
        "reply": reply,
        "attempt": 1,
        "cell": "c",
        "model": "m",
        "endpoint": "",
        "parameters": "{}",
        "is_final": True,
        **values,
    }
    return Entry(**fields)


def imported(job: Job, source: Path | Store) -> StageReport:
    """Import an export or a publication."""
    with opened_export(source) as export:
        return import_tables(job, export)


def values_in(
    source: Path | Job,
    query: str,
    *parameters: Any,
) -> Values:
    """The values of rows, without column names."""
    return [tuple(row.values()) for row in rows_in(source, query, *parameters)]


def differing(
    expected: Mapping[Any, Any],
    rows: Mapping[Any, Any],
    tolerance: float = 1e-9,
) -> list[tuple[Any, ...]]:
    """Return the cells of rows that differ from the expected ones, so that a failure names them; NaN
    is undefined.
    """
    cells = []
    for key, columns in expected.items():
        for column, value in columns.items():
            is_undefined = value is None or math.isnan(value)
            expected_value = (
                None if is_undefined else pytest.approx(value, abs=tolerance)
            )
            actual = rows[key][column]
            if actual != expected_value:
                cells.append((key, column, value, actual))
    return cells


def one_line(reason: str = "") -> str:
    """A pattern for one-line messages that contain this."""
    text = r"[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]*"
    return rf"\A{text}{re.escape(reason)}{text}\Z"


def job_on(
    source: Path | str,
    warehouse: Path,
    run_id: str = "a-run",
    **settings: Any,
) -> Job:
    """A job without models on a data set, in a warehouse."""
    validated = Settings.model_validate(
        {"dataset": {"source": str(source)}, **settings}
    )
    job = Job(settings=validated, warehouse=warehouse, run_id=run_id, is_quiet=True)
    return with_revision(job)


def endpoint(label: str, api_base: str, **settings: Any) -> dict[str, Any]:
    """The settings of a model or judge at an address."""
    return {
        "name": f"hosted_vllm/{label}",
        "label": label,
        "api_base": api_base,
        **settings,
    }


def configure(folder: Path, **settings: Any) -> Path:
    """Write the configuration of a folder and return its path."""
    path = folder / "prbench.yaml"
    path.write_text(yaml.safe_dump(settings, sort_keys=False), encoding="utf-8")
    return path


def copied(job: Job, folder: Path, **changes: Any) -> Job:
    """The job on a copy of its warehouse, in a folder that does not exist yet."""
    warehouse = Path(shutil.copytree(job.warehouse, folder))
    return job.model_copy(update={"warehouse": warehouse, **changes})


def prepared(job: Job) -> Job:
    """The job, with its tasks ingested, checked and assembled: copied, if that was done before for
    the whole sample.
    """
    is_sample = job.settings.dataset == Dataset(source="sample")
    is_whole = job.settings.benchmark == "prbench" and job.limit is None
    is_empty = not any(job.warehouse.glob("*"))
    if is_sample and is_whole and is_empty:
        shutil.copytree(prepared_sample(), job.warehouse, dirs_exist_ok=True)
        return job
    return _prepared(job)


@contextmanager
def few_published(*others: str) -> Iterator[None]:
    """Publish only the models that stages up to judging and reviews read, and `others`: publishing
    all scores takes two thirds of a test's time.

    In such a database, tables of the other models are empty until it is built again from its parts.
    """
    stages = ("tasks", "messages", "intermediate.model_runs", "criterion_reviews")
    names = {model.name for model in sql.leading_to([*stages, *others])}

    def few_above(changed):
        return [model for model in _MODELS_ABOVE(changed) if model.name in names]

    with Patch.context() as patched:
        patched.setattr(sql, "models_above", few_above)
        yield


@functools.cache
def prepared_sample() -> Path:
    """A warehouse with the sample, made once in this process, which removes it at its end."""
    folder = Path(tempfile.mkdtemp(prefix="prepared-"))
    atexit.register(shutil.rmtree, folder)
    with Patch.context() as patched:
        patched.setattr(
            sql,
            "models_above",
            _MODELS_ABOVE,
        )  # all models, even if the test that needs the sample first publishes few
        return _prepared(job_on("sample", folder)).warehouse


def _prepared(job: Job) -> Job:
    ingest(job)
    check(job, ("ingest",), reuse=True)
    assemble(job)
    return job


def in_batches(items: list[Any], size: int) -> list[list[Any]]:
    """Return lists of at most this many items."""
    return [items[start : start + size] for start in range(0, len(items), size)]


def sampled(
    job: Job, *, retry_failed: bool = False, size: int = 10**6
) -> StageReport:
    """Sample missing responses, in batches of this size, and publish them."""
    job = job.model_copy(update={"retry_failed": retry_failed})
    report = StageReport("sample")

    async def run():
        async with open_run_context(job) as context:
            batches = []
            for label, cells in plan_samples(job).items():
                for batch in in_batches(cells, size):
                    batches.append(sample_cells(job, context, label, batch))
            for batch_report in await asyncio.gather(*batches):
                report.add(batch_report)
            context.add_notices(report)

    asyncio.run(run())
    Warehouse(job.warehouse).publish()
    return report


def judged(job: Job, *, retry_failed: bool = False, size: int = 10**6) -> StageReport:
    """Judge missing verdicts, in batches of this many responses, and publish them."""
    job = job.model_copy(update={"retry_failed": retry_failed})
    report = StageReport("judge")

    async def run():
        missing = missing_by_judge(job)
        async with open_run_context(job) as context:
            for judge_config, responses in missing:
                ids = [response.response_id for response in responses]
                if judge_config.judge.mode == "batch" and ids:
                    report.add_messages(
                        await judge_by_provider_batches(
                            job, context, judge_config, ids
                        )
                    )
                batches = []
                for index, batch in enumerate(in_batches(ids, size) or [[]]):
                    batches.append(
                        judge_responses(
                            job,
                            context,
                            judge_config,
                            batch,
                            batch_index=index,
                        )
                    )
                for batch_report in await asyncio.gather(*batches):
                    report.add(batch_report)
            context.add_notices(report)

    asyncio.run(run())
    Warehouse(job.warehouse).publish()
    return report


def until(
    condition: Callable[[], Any],
    process: Any = None,
    within_s: float = 240,
    *,
    every_s: float = 0.05,
):
    """Wait until a condition holds, while a process runs."""
    deadline_s = time.monotonic() + within_s
    while not condition():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < deadline_s, "the condition never held"
        time.sleep(every_s)


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of this test run share."""
    folder = factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    return folder


def file_times(folder: Path) -> dict[str, int]:
    """When each file below a folder was last written, in nanoseconds."""
    return {
        path.relative_to(folder).as_posix(): path.stat().st_mtime_ns
        for path in folder.rglob("*")
        if path.is_file()
    }


def tracked_files() -> list[Path]:
    """Return the files that git tracks or would add."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    command = [git, "ls-files", "--cached", "--others", "--exclude-standard"]
    output = subprocess.check_output(command, cwd=ROOT, text=True)
    return [Path(line) for line in output.splitlines() if (ROOT / line).exists()]
