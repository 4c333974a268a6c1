"""The drill-down of a job in a folder of its own, and what its data files hold."""

import base64
import csv
import gzip
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.config.job import Job
from tasks.figures.scope import open_scope
from tasks.report.drilldown.pages import NAVIGATED, write_drilldown
from tasks.report.rendering.site import Site, copy_assets
from tests.kit import admitted, criterion, job_on, response, row, verdict, write_jsonl
from warehouse import Warehouse

Row = dict[str, Any]


def drill(job: Job, folder: Path) -> None:
    """Write the drill-down alone, with every earlier sampling beside the latest ones."""
    with Warehouse(job.warehouse).reader() as reader:
        site, scope = Site(folder), open_scope(job, reader)
        copy_assets(site)
        common = {
            "heading": "A report", "pages": NAVIGATED, "main": scope.main, "footer": "",
            "models": [entry["entry"] for entry in scope.entries],
            "judge_configs": [judge_config["judge_config"] for judge_config in scope.judge_configs], "orders": "{}",
        }  # fmt: skip
        query = """
            select distinct model, model_config_hash, vintage, model || ', ' || vintage as entry
            from intermediate.model_runs where dataset_revision = ? order by all
        """
        write_drilldown(scope, site, common, reader.rows(query, [scope.revision]))
        site.finish()


def held(site: Path, name: str = "index") -> Any:
    """Return the content of a data file."""
    text = (site / f"data/{name}.js").read_text(encoding="ascii")
    given = re.fullmatch(r'prbench\.give\("(.*)","(.*)"\);\n', text)
    assert given
    assert name == given[1]
    return json.loads(gzip.decompress(base64.b64decode(given[2])))


def data(site: Path) -> dict[str, Any]:
    """Return the content of the data files in the index: lists by name; for a task its rubric and entries' parts."""
    index = held(site)
    actual = {"index": index, "criteria": held(site, index["criteria"]), "templates": held(site, index["templates"])}
    actual |= {f"scores-{each['key']}": held(site, each["scores"]) for each in index["judge_configs"]}
    actual |= {f"entry-{each['key']}": held(site, each["marks"]) for each in index["entries"]}
    for name in index["rubrics"].values():
        actual |= {f"task-{key}": {"task": rubric} for key, rubric in held(site, name).items()}
    for entry in index["entries"]:
        for name in entry["blocks"].values():
            for key, section in held(site, name).items():
                actual[f"task-{key}"][entry["key"]] = section
    return actual


def numbers(site: Path, name: str) -> list[dict[str, str]]:
    """The rows of a figure's CSV file."""
    with (site / f"figures/{name}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def files(folder: Path) -> dict[str, bytes]:
    """All files of a folder."""
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def tiny_job(folder: Path, task_ids: Sequence[str] = ("t1", "t2", "t3"), models: Sequence[str] = ("m1", "m2")) -> Job:
    """A job on a small warehouse: every model has responded to every task, and one judge has judged it."""
    job = job_on(write_jsonl(folder / "tiny.jsonl", ["not read"]), folder / "warehouse")
    tables = admitted(task_ids, n_criteria=2) | {
        "criteria": [each for task_id in task_ids for each in rubric(task_id)],
        "message_rows": [
            row("message_rows", task_id=each, position=0, role="user", content=f"Why {each}?") for each in task_ids
        ],
        "conversation_turns": [
            row("conversation_turns", task_id=each, position=0, prompt=f"Why {each}?") for each in task_ids
        ],
        "responses": [], "verdicts": [],
    }  # fmt: skip
    for model in models:
        for name, rows in response_rows_of(task_ids, model).items():
            tables[name] += rows
    store(job, tables)
    return job


def rubric(task_id: str) -> list[Row]:
    """The criteria of a task: one that counts for a response, and one that counts against it."""
    return [criterion(task_id, 0, 5.0), criterion(task_id, 1, -2.0)]


def response_rows_of(task_ids: Sequence[str], model: str, vintage: str = "base", **values: Any) -> dict[str, list[Row]]:
    """A model's responses, which meet the first criterion and not the second."""
    responses = [response(t, model, vintage=vintage) | {"text": f"{model} says {t}."} | values for t in task_ids]
    for each in responses:
        each["response_id"] += f"/{vintage}"
    return {
        "responses": responses,
        "verdicts": [
            verdict(each, of, value, explanation=f"{each['response_id']} {of['position']}")
            for each in responses
            for of, value in zip(rubric(each["task_id"]), (1.0, 0.0), strict=True)
        ],
    }


def store(job: Job, tables: Mapping[str, Sequence[Row]]) -> None:
    """Write rows of the job's own revision, and publish them."""
    revision = job.data.revision
    warehouse = Warehouse(job.warehouse)
    for name, rows in tables.items():
        own = [each | ({"dataset_revision": revision} if "dataset_revision" in each else {}) for each in rows]
        warehouse.write(name, own)
    warehouse.publish()
