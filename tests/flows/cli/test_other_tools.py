"""`export inspect`, `export datasets` and `leaderboard --output`, as a person types them."""

from pathlib import Path

import pytest
import yaml

from tests.flows.conftest import Run
from tests.tasks.exports.inspected import documents_of, job_of_world


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the world and its configuration."""
    folder: Path = tmp_path_factory.mktemp("tools")
    job_of_world(folder)
    (folder / "prbench.yaml").write_text(yaml.safe_dump({"dataset": {"source": str(folder / "source")}}))
    return folder


@pytest.fixture
def where(folder: Path) -> list[str]:
    return ["--config", str(folder / "prbench.yaml"), "--warehouse", str(folder / "data")]


def test_logs_are_of_the_chosen_model_judge_and_split(where: list[str], tmp_path: Path, run: Run) -> None:
    logs = tmp_path / "logs"
    chosen = ["--model", "good", "--judge", "strict", "--split", "finance_hard"]

    assert run("export", "inspect", str(logs), *chosen, *where) == (
        f"export: 1 logs with 6 samples in {logs}; `inspect view --log-dir {logs}` shows them\n"
    )
    (log,) = map(documents_of, logs.iterdir())
    # Of one split, metrics need no name of it.
    assert {"mean", "stderr", "coverage"} <= set(log["header.json"]["results"]["scores"][0]["metrics"])
    assert {"t0", "t1", "t2"} == {each["id"] for each in log["summaries.json"]}


def test_a_data_set_is_written_and_machines_learn_how_many_rows(where: list[str], tmp_path: Path, run: Run) -> None:
    target = tmp_path / "set"

    assert run.json("export", "datasets", str(target), "--table", "verdict_details", *where)["rows"] > 100
    assert {"README.md", "dataset_dict.json", "verdict_details"} == {path.name for path in target.iterdir()}


@pytest.mark.parametrize("name", ["board.csv", "board.xlsx"])
def test_the_leaderboard_is_written_to_a_file(name: str, where: list[str], tmp_path: Path, run: Run) -> None:

    said = run("leaderboard", "--by", "topic", "-o", tmp_path / name, *where)
    assert said.startswith(f"leaderboard: 8 rows in {tmp_path / name}; its columns are explained ")
    assert (tmp_path / name).stat().st_size > 500
