"""The example notebook runs as it stands, from an empty folder, on whatever warehouse the environment names."""

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

import tasks.results
from tasks.config.job import Job

NOTEBOOK = Path(tasks.results.__file__).parent / "example.ipynb"


def run(folder: Path) -> Any:
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


def outputs(notebook: Any) -> list[Any]:
    return [output["data"] for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def test_it_is_kept_without_outputs() -> None:
    notebook = nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)  # type: ignore[no-untyped-call]
    assert not [cell for cell in notebook.cells if cell.get("outputs") or cell.get("execution_count")]


@pytest.mark.slow
def test_it_shows_the_leaderboard_and_charts(world_job: Job, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRBENCH_WAREHOUSE", str(world_job.warehouse))
    shown = outputs(run(tmp_path))
    texts = [each["text/plain"] for each in shown]
    assert "prbench" in texts[0]
    assert "birch-2" in texts[1]
    assert 2 == sum("vegaEmbed" in each.get("text/html", "") for each in shown)
    assert any("label" in text and "mean_score" in text for text in texts)
    assert not list(tmp_path.iterdir())


@pytest.mark.slow
def test_without_results_it_says_what_to_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PRBENCH_WAREHOUSE", raising=False)
    with pytest.raises(CellExecutionError, match="run `prbench run` first"):
        run(tmp_path)
