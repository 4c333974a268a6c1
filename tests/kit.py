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
from contextlib import contextmanager
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
from tasks.judge.judge import judge_by_provider_batches, judge_responses, plan_verdicts
from tasks.llm.ledger.entries import Entry
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
Rows = dict[str, list[Row]]
"""Rows by table."""
Patch = pytest.MonkeyPatch
Printed = pytest.CaptureFixture[str]
Fill = Callable[..., Reader]
"""The fixture `published`: writes rows by table, and returns a reader on them; tests may call it
several times.
"""

ROOT = Path(__file__).parents[1]
SHARED_DATA = ROOT / "../shared/data"
"""Real data beside the checkout, if there is any; never part of the project."""

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)
REVISION = "a-revision"
BEHIND = sql.behind
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


def row(table_name: str, /, **values: Any) -> dict[str, Any]:
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
    return {
        "task_rows": [
            row(
                "task_rows",
                task_id=t,
                **{
                    "field": "Finance",
                    "n_criteria": 0,
                    **values,
                },
            )
            for t in task_ids
        ],
        "split_members": [
            row(
                "split_members",
                split=split,
                task_id=t,
                position=i,
            )
            for i, t in enumerate(task_ids)
        ],
        "checks": [
            row(
                "checks",
                suite="ingest",
                check_name="any",
                expectation="any",
                table_name="rubrics",
                n_evaluated=len(task_ids),
            )
        ],
        "score_definitions": [row("score_definitions", **asdict(score)) for score in SCORES],
    }


def criterion(
    task_id: str, position: int, weight: float | None, category: str | None = "Practical Utility"
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
    task_id: str, model: str = "a-model", trial: int = 1, status: str = "ok", **values: Any
) -> dict[str, Any]:
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


def verdict(of_response: Row, of_criterion: Row, value: float | None, **values: Any) -> Row:
    """A verdict row; `value` None means a failed verdict."""
    given = {
        "judge": "a-judge",
        "judge_trial": 1,
        "status": _STATUS[value],
        "source": "judged",
    } | values
    cell = f"{of_response['response_id']}/{of_criterion['criterion_id']}/{given['judge']}/{given['judge_trial']}"
    return row(
        "verdicts",
        verdict_id=cell,
        value=value,
        criterion_hash=of_criterion["content_hash"],
        criterion_id=of_criterion["criterion_id"],
        **{
            name: of_response[name]
            for name in ("response_id", "task_id", "model", "trial", "vintage")
        },
        **given,
    )


def combined(*parts: Mapping[str, Iterable[dict[str, Any]]]) -> Rows:
    """The rows of all parts, table by table."""
    rows: Rows = {}
    for part in parts:
        for name, of_table in part.items():
            rows.setdefault(name, []).extend(of_table)
    return rows


def good_rubric(task_id: str, n_criteria: int = 10) -> list[dict[str, Any]]:
    """A rubric that no check refuses, in the hub's shape."""
    return [hub_criterion(f"{task_id}-c{i}", "important", 5) for i in range(n_criteria)]


def good_row(task_id: str, **changes: Any) -> dict[str, Any]:
    """A row in the hub's shape that no check refuses."""
    return hub_row(task_id, **({"rubric": good_rubric(task_id)} | changes))


def write_jsonl(path: Path, rows: Iterable[object]) -> Path:
    """Write rows as JSON Lines and return the path."""
    path.write_text("".join(json.dumps(each) + "\n" for each in rows), encoding="utf-8")
    return path


def written(
    folder: Path, tables: Mapping[str, list[dict[str, Any]]], revision: str | None = None
) -> Warehouse:
    """A warehouse with these rows by table, not yet published; a given revision replaces that of
    all rows.
    """
    warehouse = Warehouse(folder)
    for table_name, rows in tables.items():
        other = {"dataset_revision": revision} if revision else {}
        warehouse.write(
            table_name, [each | (other if "dataset_revision" in each else {}) for each in rows]
        )
    return warehouse


def aggregated(
    folder: Path, tables: Mapping[str, list[dict[str, Any]]], **settings: Any
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
def reading(folder: Path, *parts: Mapping[str, Iterable[dict[str, Any]]]) -> Iterator[Reader]:
    """A fresh warehouse with these rows, published and opened."""
    warehouse = written(folder, combined(*parts))
    warehouse.publish()
    with warehouse.reader() as reader:
        yield reader


def rows_in(stored: Path | Job, query: str, *parameters: Any) -> list[dict[str, Any]]:
    """The rows that a query finds in the published state of a warehouse, or of a job's."""
    with Warehouse(stored if isinstance(stored, Path) else stored.warehouse).reader() as reader:
        return reader.rows(query, list(parameters) or None)


def recorded(job: Job, *entries: Entry) -> None:
    """Write finished calls into the ledger of a job's warehouse."""

    async def write() -> None:
        ledger = Ledger(job.warehouse / "ledger")
        for entry in entries:
            await ledger.record(entry)
        ledger.close()

    asyncio.run(write())


def call_entry(
    key: str, run_id: str = "a-run", *, cost_usd: float | None = 0.5, **values: Any
) -> Entry:
    """A finished call for a ledger."""
    reply = Reply(
        "ok",
        "x",
        prompt_tokens=1,
        completion_tokens=1,
        cost_usd=cost_usd,
    )
    usual = {
        "attempt": 1,
        "cell": "c",
        "model": "m",
        "endpoint": "",
        "parameters": "{}",
        "is_final": True,
    }
    return Entry(
        **{
            "call_key": key,
            "run_id": run_id,
            "reply": reply,
            **usual,
            **values,
        }
    )


def imported(job: Job, source: Path | Store) -> StageReport:
    """Import an export or a publication."""
    with opened_export(source) as export:
        return import_tables(job, export)


def values_in(stored: Path | Job, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
    """The values of rows, without column names."""
    return [tuple(each.values()) for each in rows_in(stored, query, *parameters)]


def are_close(wanted: Any, actual: Any, tolerance: float = 1e-9) -> bool:
    """Return whether two figures are the same; an undefined one is None."""
    if wanted is None or actual is None:
        return wanted is actual
    return abs(float(wanted) - float(actual)) <= tolerance


def differing(
    wanted: Mapping[Any, Any], rows: Mapping[Any, Any], tolerance: float = 1e-9
) -> list[tuple[Any, ...]]:
    """Return the cells of rows that differ from the wanted ones, so that a failure names them; NaN
    is undefined.
    """
    return [
        (key, column, value, rows[key][column])
        for key, columns in wanted.items()
        for column, value in columns.items()
        if not are_close(
            None if value is None or math.isnan(value) else value, rows[key][column], tolerance
        )
    ]


def one_line(reason: str = "") -> str:
    """A pattern for one-line messages that contain this."""
    rest = r"[^\n\r\v\f\x1c-\x1e\x85\u2028\u2029]*"
    return rf"\A{rest}{re.escape(reason)}{rest}\Z"


def job_on(source: Path | str, warehouse: Path, run_id: str = "a-run", **settings: Any) -> Job:
    """A job without models on a data set, in a warehouse."""
    given = Settings.model_validate({"dataset": {"source": str(source)}, **settings})
    return with_revision(
        Job(
            settings=given,
            warehouse=warehouse,
            run_id=run_id,
            is_quiet=True,
        )
    )


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
    is_sample = job.settings.benchmark == "prbench" and job.settings.dataset == Dataset(
        source="sample"
    )
    if is_sample and job.limit is None and not any(job.warehouse.glob("*")):
        shutil.copytree(prepared_sample(), job.warehouse, dirs_exist_ok=True)
        return job
    return _prepared(job)


def publish_few(patched: Patch, *others: str) -> None:
    """Publish what stages up to judging and reviews read, and these models: all scores take two
    thirds of the time.
    """
    stages = ("tasks", "messages", "intermediate.model_runs", "criterion_reviews")
    read = {each.name for each in sql.leading_to([*stages, *others])}
    patched.setattr(
        sql, "behind", lambda changed: [model for model in BEHIND(changed) if model.name in read]
    )


@functools.cache
def prepared_sample() -> Path:
    """A warehouse with the sample, made once in this process, which removes it at its end."""
    folder = Path(tempfile.mkdtemp(prefix="prepared-"))
    atexit.register(shutil.rmtree, folder)
    with Patch.context() as patched:
        patched.setattr(sql, "behind", BEHIND)  # also while no scores are published
        return _prepared(job_on("sample", folder)).warehouse


def _prepared(job: Job) -> Job:
    ingest(job)
    check(job, ("ingest",), reuse=True)
    assemble(job)
    return job


def sampled(job: Job, *, retry_failed: bool = False, size: int = 10**6) -> StageReport:
    """Sample missing responses, in batches of this size, and publish them."""
    job = job.model_copy(update={"retry_failed": retry_failed})
    report = StageReport("sample")

    async def run() -> None:
        cells = plan_samples(job)
        async with open_run_context(job) as context:
            async with asyncio.TaskGroup() as group:
                done = [
                    group.create_task(
                        sample_cells(job, context, label, of_label[start : start + size])
                    )
                    for label, of_label in cells.items()
                    for start in range(0, len(of_label), size)
                ]
            for each in done:
                report.add(each.result())
            context.add_notices(report)

    asyncio.run(run())
    Warehouse(job.warehouse).publish()
    return report


def judged(job: Job, *, retry_failed: bool = False, size: int = 10**6) -> StageReport:
    """Judge missing verdicts, in batches of this many responses, and publish them."""
    job = job.model_copy(update={"retry_failed": retry_failed})
    report = StageReport("judge")

    async def run() -> None:
        missing = plan_verdicts(job)
        async with open_run_context(job) as context:
            for judge_config, responses in missing:
                ids = [each.response_id for each in responses]
                if judge_config.judge.mode == "batch" and ids:
                    report.add_messages(
                        await judge_by_provider_batches(job, context, judge_config, ids)
                    )
                batches = [ids[start : start + size] for start in range(0, max(len(ids), 1), size)]
                call = functools.partial(judge_responses, job, context, judge_config)
                done = await asyncio.gather(
                    *(call(some, batch_index=i) for i, some in enumerate(batches))
                )
                for each in done:
                    report.add(each)
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
) -> None:
    """Wait until a condition holds, while a process runs."""
    deadline_s = time.monotonic() + within_s
    while not condition():
        assert process is None or process.poll() is None, process.communicate()
        assert time.monotonic() < deadline_s, "the condition never held"
        time.sleep(every_s)


def shared_folder(factory: pytest.TempPathFactory) -> Path:
    """A folder that all processes of this test run share."""
    own = factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


def tracked_files() -> list[Path]:
    """Return the files that git tracks or would add."""
    git = shutil.which("git")
    if git is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    command = [git, "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(
        command,
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    )
    return [Path(line) for line in listed.stdout.splitlines() if (ROOT / line).exists()]
