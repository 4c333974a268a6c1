"""`export inspect`, `export datasets` and `leaderboard --output`, as a person types them."""

import json
from pathlib import Path

import pytest
import yaml

from flows.cli.main import main
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


def test_logs_are_of_the_chosen_model_judge_and_split(
    where: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    logs = tmp_path / "logs"
    chosen = ["--model", "good", "--judge", "strict", "--split", "finance_hard"]
    assert main(["export", "inspect", str(logs), *chosen, *where]) == 0

    assert capsys.readouterr().out == (
        f"export: 1 logs with 6 samples in {logs}; `inspect view --log-dir {logs}` shows them\n"
    )
    (log,) = map(documents_of, logs.iterdir())
    # Of one split, metrics need no name of it.
    assert {"mean", "stderr", "coverage"} <= set(log["header.json"]["results"]["scores"][0]["metrics"])
    assert {"t0", "t1", "t2"} == {each["id"] for each in log["summaries.json"]}


def test_a_data_set_is_written_and_machines_learn_how_many_rows(
    where: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "set"
    assert main(["export", "datasets", str(target), "--table", "verdict_details", "--json", *where]) == 0

    assert json.loads(capsys.readouterr().out)["rows"] > 100
    assert {"README.md", "dataset_dict.json", "verdict_details"} == {path.name for path in target.iterdir()}


@pytest.mark.parametrize("name", ["board.csv", "board.xlsx"])
def test_the_leaderboard_is_written_to_a_file(
    name: str, where: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["leaderboard", "--by", "topic", "-o", str(tmp_path / name), *where]) == 0

    assert capsys.readouterr().out.startswith(f"leaderboard: 8 rows in {tmp_path / name}; its columns are explained ")
    assert (tmp_path / name).stat().st_size > 500


@pytest.mark.parametrize(("options", "said"), [
    (["-o", "board.xlsx", "--json"], "--output and --json cannot be combined"),
    (["-o", "board.txt"], "board.txt: the file must end in .csv or .xlsx"),
])  # fmt: skip
def test_a_file_that_cannot_be_is_refused_in_one_line(
    options: list[str], said: str, where: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["leaderboard", *options, *where]) == 2
    assert said in capsys.readouterr().err
