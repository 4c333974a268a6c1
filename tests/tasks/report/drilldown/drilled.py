"""The drill-down of a job in a folder of its own, and the content of its data files."""

import base64
import csv
import gzip
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.config.job import Job
from tasks.figures.addresses import entry_key
from tasks.figures.scope import Scope
from tasks.report.drilldown.pages import NAVIGATED, write_drilldown
from tasks.report.rendering.site import Site, copy_assets
from tests.kit import (
    Row,
    Rows,
    admitted,
    combined,
    criterion,
    job_on,
    response,
    row,
    verdict,
    write_jsonl,
    written,
)
from warehouse import Warehouse


def drill(job: Job, folder: Path) -> Path:
    """Write only the drill-down to a folder, with all earlier samplings to compare with; return the
    folder.
    """
    with Warehouse(job.warehouse).reader() as reader:
        site = Site(folder)
        scope = Scope(job, reader)
        copy_assets(site)
        report = {
            "heading": "A report",
            "pages": NAVIGATED,
            "main": scope.main,
            "footer": "",
            "orders": {},
            "models": [entry["entry"] for entry in scope.entries],
            "judge_configs": [row["judge_config"] for row in scope.judge_configs],
        }
        query = """
            select distinct model, model_config_hash, vintage, model || ', ' || vintage as entry
            from intermediate.model_runs where dataset_revision = ? order by all
        """
        write_drilldown(
            scope,
            site,
            report,
            reader.rows(query, [job.data.revision]),
        )
        site.finish()
    return folder


def data_file(site: Path, name: str = "index") -> Any:
    """Return the content of a data file."""
    text = (site / f"data/{name}.js").read_text(encoding="ascii")
    match = re.fullmatch(r'prbench\.give\("(.*)","(.*)"\);\n', text)
    assert match
    assert match[1] == name
    return json.loads(gzip.decompress(base64.b64decode(match[2])))


def data(site: Path) -> dict[str, Any]:
    """Return the content of all data files in the index, by name; of a task, its rubric and each
    entry's section.
    """
    index = data_file(site)
    contents = {"index": index}
    for name in ("criteria", "templates"):
        contents[name] = data_file(site, index[name])
    for judge_config in index["judge_configs"]:
        scores = data_file(site, judge_config["scores"])
        contents[f"scores-{judge_config['key']}"] = scores
    for name in index["rubrics"].values():
        for key, rubric in data_file(site, name).items():
            contents[f"task-{key}"] = {"task": rubric}
    for entry in index["entries"]:
        contents[f"entry-{entry['key']}"] = data_file(site, entry["marks"])
        for name in entry["blocks"].values():
            for key, section in data_file(site, name).items():
                contents[f"task-{key}"][entry["key"]] = section
    return contents


def numbers(site: Path, name: str) -> list[dict[str, str]]:
    """The rows of a figure's CSV file."""
    with (site / f"figures/{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def files(folder: Path) -> dict[str, bytes]:
    """All files of a folder."""
    contents = {}
    for path in folder.rglob("*"):
        if path.is_file():
            contents[path.relative_to(folder).as_posix()] = path.read_bytes()
    return contents


def key_of(model: str) -> str:
    """The key of a model's entry in a small warehouse."""
    return entry_key(
        {"model": model, "model_config_hash": "a-configuration", "vintage": "base"}
    )


def tiny_job(
    folder: Path,
    task_ids: Sequence[str] = ("t1", "t2", "t3"),
    models: Sequence[str] = ("m1", "m2"),
    further: Mapping[str, list[Row]] = {},
) -> Job:
    """A job on a small warehouse: every model has responded to every task, one judge has judged all
    responses, and there are `further` rows.
    """
    job = job_on(
        write_jsonl(folder / "tiny.jsonl", ["not read"]), folder / "warehouse"
    )
    tables = combined(admitted(task_ids, n_criteria=2), *map(posed, task_ids))
    responses = [response_rows_of(task_ids, model) for model in models]
    store(job, combined(tables, *responses, further))
    return job


def posed(task_id: str) -> Rows:
    """The rubric of a task, and its only turn, assembled."""
    prompt = f"Why {task_id}?"
    turn = {"task_id": task_id, "position": 0}
    return {
        "criteria": rubric(task_id),
        "message_rows": [row("message_rows", role="user", content=prompt, **turn)],
        "conversation_turns": [row("conversation_turns", prompt=prompt, **turn)],
    }


def rubric(task_id: str) -> list[Row]:
    """The criteria of a task: one with positive and one with negative weight."""
    return [criterion(task_id, 0, 5.0), criterion(task_id, 1, -2.0)]


def response_rows_of(
    task_ids: Iterable[str],
    model: str,
    vintage: str = "base",
    suffix: str = "",
    **values: Any,
) -> Rows:
    """A model's responses, which meet the first criterion and not the second; their ids, and those
    of the verdicts, end with the suffix.
    """
    tables = {"responses": [], "verdicts": []}
    for task_id in task_ids:
        response_row = response(task_id, model, vintage=vintage)
        response_row |= {"text": f"{model} says {task_id}."} | values
        response_row["response_id"] += f"/{vintage}{suffix}"
        tables["responses"].append(response_row)
        for criterion_row, value in zip(rubric(task_id), (1.0, 0.0), strict=True):
            verdict_row = verdict(response_row, criterion_row, value)
            explanation = f"{response_row['response_id']} {criterion_row['position']}"
            tables["verdicts"].append(verdict_row | {"explanation": explanation})
    return tables


def store(job: Job, tables: Mapping[str, list[Row]]):
    """Write rows of the job's own revision, and publish them."""
    written(job.warehouse, tables, job.data.revision).publish()
