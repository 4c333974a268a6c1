"""Commands on a warehouse of made-up rows, and what they print."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from tasks.aggregate import aggregate
from tests.flows.conftest import Run
from tests.kit import job_on, written


def stored(folder: Path, tables: Mapping[str, list[dict[str, Any]]]) -> Path:
    """A folder with the rows in a warehouse, and a configuration that is about their data set."""
    (folder / "finance.jsonl").write_text("{}\n", encoding="utf-8")
    (folder / "prbench.yaml").write_text(yaml.safe_dump({"dataset": {"source": str(folder / "finance.jsonl")}}))
    job = job_on(folder / "finance.jsonl", folder / "data")
    written(job.warehouse, tables, job.data.revision)
    aggregate(job)
    return folder


class Asked(Run):
    """The command on the folder, and what it printed."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(capsys, "--config", folder / "prbench.yaml", "--warehouse", folder / "data")
