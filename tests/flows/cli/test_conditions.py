"""`prbench conditions`: what people read, what machines get, and what is refused."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows.run.arguments import Arguments
from flows.run.config import load_job
from tasks.aggregate import aggregate
from tasks.rules.errors import UsageError
from tests.flows.conftest import Run
from tests.kit import together, written
from tests.tasks.compare.comparisons import Rubric, judged, own_hard, tasks_of

N_TASKS = 30
MANY: dict[str, Rubric] = {f"task-{number:02d}": [(10, "Accuracy"), (10, "Risk")] for number in range(N_TASKS)}
CONDITIONS = {
    "gpt": {"web search": "search", "baseline": "plain"},
    "other": {"low": "plain", "few": "odd", "same": "twin", "shifted": "shifted"},
}


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty tasks of two criteria: `search` gains Accuracy in fifteen and loses Risk in five, `odd` gains one
    criterion, `twin` is the same, and `shifted` gains a half everywhere."""
    folder = tmp_path_factory.mktemp("warehouse")
    names = list(MANY)
    plain = {task: [0, 1.0] for task in names}
    search = {task: [float(place < 15), float(place >= 5)] for place, task in enumerate(names)}
    rows = together(
        tasks_of(MANY), judged(plain, "plain", rubrics=MANY), judged(search, "search", rubrics=MANY),
        judged(plain | {names[0]: [1, 1.0]}, "odd", rubrics=MANY), judged(plain, "twin", rubrics=MANY),
        judged({task: [1, 1.0] for task in names}, "shifted", rubrics=MANY), own_hard(names[:20]),
    )  # fmt: skip
    written(folder, rows).publish()
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "night.yaml"


def configured(file: Path, warehouse: Path, conditions: Any = CONDITIONS) -> list[str]:
    """The options of a command on a warehouse with these conditions."""
    file.write_text(yaml.safe_dump(
        {"dataset": {"source": "sample"}, "warehouse": str(warehouse), "conditions": conditions}, sort_keys=False
    ))  # fmt: skip
    return ["--config", str(file)]


def test_criteria_that_changed_are_counted_by_category_and_the_weightiest_are_listed(
    file: Path, warehouse: Path, run: Run
) -> None:
    found = run.json("conditions", *configured(file, warehouse), "--flips", "2")

    names = ("label", "n_compared", "n_changed", "n_gained", "n_lost", "points_gained", "points_lost")
    changes = [tuple(each[name] for name in names) for each in found["changes"] if each["condition"] == "web search"]
    assert changes == [("Accuracy", 30, 15, 15, 0, 150.0, 0), ("Risk", 30, 5, 0, 5, 0, -50.0)]
    criteria = [each for each in found["criteria"] if each["condition"] == "web search"]
    assert [each["task_id"] for each in criteria if each["points"] > 0] == ["task-00", "task-01"]
    assert [each["points"] for each in criteria if each["points"] < 0] == [-10.0, -10.0]
    assert "same" not in {each["condition"] for each in found["criteria"]}


def test_what_is_stored_by_an_aggregation_is_what_the_command_computes_itself(
    file: Path, warehouse: Path, tmp_path: Path, run: Run
) -> None:
    copied = Path(shutil.copytree(warehouse, tmp_path / "copied"))
    options = configured(file, copied)
    before = run.json("conditions", *options)
    aggregate(load_job(Arguments(config=file)))

    assert run.json("conditions", *options) == before
    # Without the configuration the stored conditions count.
    stored = run.json("conditions", "--warehouse", copied)
    assert {each["condition"] for each in stored["differences"]} == {"web search", "few", "same", "shifted"}
    # A configuration that changed since counts at once.
    options = configured(file, copied, {"gpt": {"baseline": "search", "none": "plain"}})
    (row,) = run.json("conditions", *options)["differences"]
    assert row["difference"] == pytest.approx(-(15 * 0.5 - 5 * 0.5) / N_TASKS)


def test_people_read_why_no_interval_is_given_and_what_is_corrected(file: Path, warehouse: Path, run: Run) -> None:

    said = run("conditions", *configured(file, warehouse))
    lines = {
        name: next(line for line in said.splitlines() if f" {name} " in line) for name in ("few", "same", "shifted")
    }
    assert "too few tasks differ" in lines["few"]
    assert "no task differs" in lines["same"]
    assert "nearly all tasks change alike" in lines["shifted"]
    assert "task-00 needs point 0" in said
    assert "No interval and no test: fewer than 5 tasks differ." in said
    assert "(Holm) takes all comparisons over the whole rubric into account" in said
    assert "One trial: intervals and tests say what other tasks of the same kind would show" in said


@pytest.mark.parametrize(
    ("conditions", "line"),
    [
        ({"gpt": {"baseline": "plain", "web": "serach"}},
         "conditions.gpt.web: 'serach' is neither a configured model nor one with stored responses (did you mean "
         "`search`?); known: odd, plain, search, shifted, twin"),
        ({}, "no conditions are configured or stored: say under `conditions` which labels are one model"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_refused_in_a_line_with_what_is(
    file: Path, warehouse: Path, run: Run, conditions: Any, line: str
) -> None:
    assert line in run("conditions", *configured(file, warehouse, conditions), code=2)


def test_a_condition_without_verdicts_is_named(file: Path, warehouse: Path, run: Run) -> None:
    options = configured(file, warehouse, {"gpt": {"baseline": "plain", "web": "search", "later": "new"}})
    file.write_text(file.read_text() + "models: [{name: openai/new, label: new}]\n")

    found = run.json("conditions", *options)
    assert [note for note in found["notes"] if note.startswith("gpt, later (new): no verdicts in this selection")]


@pytest.mark.parametrize(
    ("broken", "problem"),
    [
        ("{gpt: {baseline: a}}", "conditions.gpt: needs at least two conditions"),
        ("{gpt: {baseline: a, search: a}}", "conditions.gpt: two conditions have the same label"),
        ("{gpt: {baseline: a, search: 5}}", "conditions.gpt.search: must be a valid string"),
        ("{gpt: {baseline: a, search: ''}}", "conditions.gpt.search: "),
        ("{gpt: [a, b]}", "conditions.gpt: must be a mapping"),
        ("[a, b]", "conditions: must be a mapping"),
        ("{gpt: {off: a, on: b}}", "conditions.gpt: the name False is not a text; put it in quotes (YAML"),
        ("{5: {baseline: a, web: b}}", "conditions: the name 5 is not a text; put it in quotes"),
    ],
)
def test_impossible_conditions_are_refused_with_the_path_of_the_key(file: Path, broken: str, problem: str) -> None:
    file.write_text(f"dataset: {{source: sample}}\nconditions: {broken}\n")

    with pytest.raises(UsageError) as refused:
        load_job(Arguments(config=file))
    assert problem in str(refused.value)


def test_doctor_says_which_labels_are_nowhere(file: Path, warehouse: Path, tmp_path: Path, run: Run) -> None:
    def finding(*options: str) -> tuple[str, str]:
        run("doctor", "--json", *options, code=(0, 1, 2))
        (one,) = [each for each in json.loads(run.out) if each["what"] == "conditions"]
        return one["state"], one["detail"]

    options = configured(file, warehouse)
    assert finding(*options)[1] == "gpt: baseline, web search; other: low, few, same, shifted"
    state, detail = finding(*options, "--warehouse", str(tmp_path / "empty"))
    assert (state, detail.partition(":")[0]) == ("unknown", "neither configured nor stored yet")
    state, detail = finding(*configured(file, warehouse, {"gpt": {"baseline": "plain", "web": "serach"}}))
    assert state == "PROBLEM"
    assert detail.startswith("conditions.gpt.web: 'serach' is neither a configured model nor one with stored")
