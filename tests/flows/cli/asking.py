"""Commands on a warehouse of made-up rows, and what they print."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows.cli.main import main
from tasks.aggregate import aggregate
from tests.builders import job_on
from warehouse import Warehouse


def stored(folder: Path, tables: Mapping[str, list[dict[str, Any]]]) -> Path:
    """A folder with the rows in a warehouse, and a configuration that is about their data set."""
    (folder / "finance.jsonl").write_text("{}\n", encoding="utf-8")
    (folder / "prbench.yaml").write_text(yaml.safe_dump({"dataset": {"source": str(folder / "finance.jsonl")}}))
    job = job_on(folder / "finance.jsonl", folder / "data")
    revision = job.data.revision
    for table_name, rows in tables.items():
        known = [row | ({"dataset_revision": revision} if "dataset_revision" in row else {}) for row in rows]
        Warehouse(job.warehouse).write(table_name, known)
    aggregate(job)
    return folder


class Asked:
    """The command on the folder, and what it printed."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._where = ["--config", str(folder / "prbench.yaml"), "--warehouse", str(folder / "data")]
        self._capsys = capsys

    def __call__(self, *arguments: str, code: int = 0) -> str:
        assert main([*arguments, *self._where]) == code
        said = self._capsys.readouterr()
        return said.err if code else said.out

    def json(self, *arguments: str) -> Any:
        return json.loads(self(*arguments, "--json"))
