"""The drill-down of a job in a folder of its own, and the content of its data files."""

import base64
import csv
import gzip
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tasks.config.job import Job
from tasks.figures.scope import Scope
from tasks.report.drilldown.pages import NAVIGATED, write_drilldown
from tasks.report.rendering.site import Site, copy_assets
from tests.kit import (
    Row,
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
        common = {
            "heading": "A report",
            "pages": NAVIGATED,
            "main": scope.main,
            "footer": "",
            "orders": {},
            "models": [each["entry"] for each in scope.entries],
            "judge_configs": [each["judge_config"] for each in scope.judge_configs],
        }
        query = """
            select distinct model, model_config_hash, vintage, model || ', ' || vintage as entry
            from intermediate.model_runs where dataset_revision = ? order by all
        """
        write_drilldown(scope, site, common, reader.rows(query, [scope.revision]))
        site.finish()
    return folder


def held(site: Path, name: str = "index") -> Any:
    """Return the content of a data file."""
    text = (site / f"data/{name}.js").read_text(encoding="ascii")
    ((given, packed),) = re.findall(r'\Aprbench\.give\("(.*)","(.*)"\);\n\Z', text)
    assert name == given
    return json.loads(gzip.decompress(base64.b64decode(packed)))


def data(site: Path) -> dict[str, Any]:
    """Return the content of all data files in the index, by name; of a task, its rubric and each
    entry's section.
    """
    index = held(site)
    actual = {
        "index": index,
        **{name: held(site, index[name]) for name in ("criteria", "templates")},
    }
    actual |= {
        f"scores-{each['key']}": held(site, each["scores"]) for each in index["judge_configs"]
    }
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
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def tiny_job(
    folder: Path, task_ids: Sequence[str] = ("t1", "t2", "t3"), models: Sequence[str] = ("m1", "m2")
) -> Job:
    """A job on a small warehouse: every model has responded to every task, and one judge has judged
    all responses.
    """
    job = job_on(write_jsonl(folder / "tiny.jsonl", ["not read"]), folder / "warehouse")
    prompts = [({"task_id": each, "position": 0}, f"Why {each}?") for each in task_ids]
    tables = admitted(task_ids, n_criteria=2) | {
        "criteria": [each for task_id in task_ids for each in rubric(task_id)],
        "message_rows": [
            row("message_rows", role="user", content=text, **of) for of, text in prompts
        ],
        "conversation_turns": [
            row("conversation_turns", prompt=text, **of) for of, text in prompts
        ],
    }
    store(job, combined(tables, *(response_rows_of(task_ids, model) for model in models)))
    return job


def rubric(task_id: str) -> list[Row]:
    """The criteria of a task: one with positive and one with negative weight."""
    return [criterion(task_id, 0, 5.0), criterion(task_id, 1, -2.0)]


def response_rows_of(
    task_ids: Sequence[str], model: str, vintage: str = "base", **values: Any
) -> dict[str, list[Row]]:
    """A model's responses, which meet the first criterion and not the second."""
    responses = [
        response(t, model, vintage=vintage) | {"text": f"{model} says {t}."} | values
        for t in task_ids
    ]
    for each in responses:
        each["response_id"] += f"/{vintage}"
    verdicts = [
        verdict(each, of, value, explanation=f"{each['response_id']} {of['position']}")
        for each in responses
        for of, value in zip(rubric(each["task_id"]), (1.0, 0.0), strict=True)
    ]
    return {"responses": responses, "verdicts": verdicts}


def store(job: Job, tables: Mapping[str, list[Row]]) -> None:
    """Write rows of the job's own revision, and publish them."""
    written(job.warehouse, tables, job.data.revision).publish()
