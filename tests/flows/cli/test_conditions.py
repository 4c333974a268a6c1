"""`prbench conditions`: the output for people and for programs, and what is refused."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows.run.arguments import Arguments
from flows.run.config import load_job
from tasks.aggregate import aggregate
from tests.flows.conftest import Run
from tests.kit import combined, written
from tests.tasks.compare.comparisons import Rubric, judged, tasks_of

N_TASKS = 30
MANY: dict[str, Rubric] = {
    f"task-{number:02d}": [(10, "Accuracy"), (10, "Risk")] for number in range(N_TASKS)
}
CONDITIONS = {
    "gpt": {"web search": "search", "baseline": "plain"},
    "other": {"low": "plain", "same": "twin"},
}


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tasks with two criteria: `search` gains Accuracy in fifteen and loses Risk in five; `twin`
    equals `plain`.
    """
    folder = tmp_path_factory.mktemp("warehouse")
    plain = {task: [0, 1.0] for task in MANY}
    search = {task: [float(index < 15), float(index >= 5)] for index, task in enumerate(MANY)}
    of_models = {
        "plain": plain,
        "search": search,
        "twin": plain,
    }
    decided = (judged(of, model, rubrics=MANY) for model, of in of_models.items())
    written(folder, combined(tasks_of(MANY), *decided)).publish()
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "night.yaml"


def configured(file: Path, warehouse: Path, conditions: Any = CONDITIONS) -> list[str]:
    """The options of a command on a warehouse with these conditions."""
    settings = {
        "dataset": {"source": "sample"},
        "warehouse": str(warehouse),
        "conditions": conditions,
    }
    file.write_text(yaml.safe_dump(settings, sort_keys=False))
    return ["--config", str(file)]


@pytest.mark.slow
def test_an_aggregation_stores_what_the_command_computes(
    file: Path, warehouse: Path, tmp_path: Path, run: Run
) -> None:
    copied = Path(shutil.copytree(warehouse, tmp_path / "copied"))
    options = configured(file, copied)
    before = run.json("conditions", *options)
    aggregate(load_job(Arguments(config=file)))

    assert before == run.json("conditions", *options)
    # Without the configuration the stored conditions count.
    stored = run.json("conditions", "--warehouse", copied)
    assert {each["condition"] for each in stored["differences"]} == {"web search", "same"}
    # A changed configuration counts immediately.
    options = configured(file, copied, {"gpt": {"baseline": "search", "none": "plain"}})
    (row,) = run.json("conditions", *options)["differences"]
    assert row["difference"] == pytest.approx(-(15 * 0.5 - 5 * 0.5) / N_TASKS)


def test_a_condition_without_verdicts_is_named(file: Path, warehouse: Path, run: Run) -> None:
    options = configured(
        file,
        warehouse,
        {
            "gpt": {
                "baseline": "plain",
                "web": "search",
                "later": "new",
            }
        },
    )
    file.write_text(file.read_text() + "models: [{name: openai/new, label: new}]\n")

    result = run.json("conditions", *options)
    assert [
        note
        for note in result["notes"]
        if note.startswith("gpt, later (new): no verdicts in this selection")
    ]
