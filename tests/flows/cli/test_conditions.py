"""`prbench conditions`: what it computes, stores and names."""

import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows.run.arguments import Arguments
from flows.run.config import load_job
from tasks.aggregate import aggregate
from tests.kit import combined, written
from tests.tasks.compare.comparisons import MANY, judged, tasks_of

CONDITIONS = {
    "gpt": {"web search": "search", "baseline": "plain"},
    "other": {"low": "plain", "same": "twin"},
}
"""Group -> condition -> model; the others are compared with `baseline` or the first."""


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory) -> Path:
    """Tasks with two criteria: `search` gains Accuracy in fifteen and loses Risk in five; `twin`
    equals `plain`.
    """
    folder = tmp_path_factory.mktemp("warehouse")
    plain = {task: [0, 1.0] for task in MANY}
    search = {
        task: [float(index < 15), float(index >= 5)]
        for index, task in enumerate(MANY)
    }
    rows = combined(
        tasks_of(MANY),
        judged(plain, "plain", rubrics=MANY),
        judged(search, "search", rubrics=MANY),
        judged(plain, "twin", rubrics=MANY),
    )
    written(folder, rows).publish()
    return folder


@pytest.fixture
def file(tmp_path) -> Path:
    return tmp_path / "night.yaml"


def configured(
    file: Path, warehouse: Path, conditions: Any = CONDITIONS
) -> list[str]:
    """Write the configuration of a warehouse with these conditions, and return the
    option that names it.
    """
    settings = {
        "dataset": {"source": "sample"},
        "warehouse": str(warehouse),
        "conditions": conditions,
    }
    file.write_text(yaml.safe_dump(settings, sort_keys=False))
    return ["--config", str(file)]


@pytest.mark.slow
def test_an_aggregation_stores_what_the_command_computes(
    file,
    warehouse,
    tmp_path,
    run,
):
    copy = Path(shutil.copytree(warehouse, tmp_path / "copy"))
    options = configured(file, copy)
    computed = run.json("conditions", *options)

    aggregate(load_job(Arguments(config=file)))

    assert run.json("conditions", *options) == computed
    # Without a configuration there are no conditions but the stored ones.
    stored = run.json("conditions", "--warehouse", copy)
    assert {row["condition"] for row in stored["differences"]} == {
        "web search",
        "same",
    }
    assert stored["differences"] == computed["differences"]


def test_a_changed_configuration_counts_immediately(file, warehouse, run):
    options = configured(
        file,
        warehouse,
        {"gpt": {"baseline": "search", "none": "plain"}},
    )

    [row] = run.json("conditions", *options)["differences"]

    # Fifteen tasks lose half of their points, and five gain it.
    assert row["difference"] == pytest.approx(-5 / 30)


@pytest.mark.parametrize("selection", [[], ["--model", "gpt"]])
def test_a_condition_without_verdicts_is_named(selection, file, warehouse, run):
    conditions = {
        "gpt": {
            "baseline": "plain",
            "web": "search",
            "later": "new",
        }
    }
    options = configured(file, warehouse, conditions)
    # A condition may name only a model that is configured or has responses.
    file.write_text(file.read_text() + "models: [{name: openai/new, label: new}]\n")

    notes = run.json("conditions", *options, *selection)["notes"]

    assert any(
        note.startswith("gpt, later (new): no verdicts in this selection")
        for note in notes
    )
