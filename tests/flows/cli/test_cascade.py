"""`prbench cascade`: rules evaluated on imported verdicts, and what it says where there is nothing to evaluate."""

import random
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows.cli.main import main
from flows.run.validation import sound_settings
from tests.flows.conftest import Run
from tests.kit import rows_in, write_jsonl
from warehouse import Warehouse

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Answers to the sample's tasks, with verdicts of a strong judge and of a cheap one that is asked twice."""
    folder = tmp_path_factory.mktemp("cascade")
    at = ["--warehouse", str(folder / "data"), "-q"]
    assert 0 == main(["ingest", *at])
    criteria = rows_in(folder / "data", "select task_id, criterion_id from criteria order by all")
    tasks = sorted({each["task_id"] for each in criteria})
    answers = [{"task": task, "model": model, "response": f"By {model}."} for task in tasks for model in "ab"]
    generator = random.Random(1)
    verdicts: list[dict[str, Any]] = []
    for each in criteria:
        for model in "ab":
            key = {"task": each["task_id"], "criterion": each["criterion_id"], "model": model}
            met = generator.random() < 0.6
            verdicts.append({**key, "judge": "strong", "criteria_met": met})
            is_hard = generator.random() < 0.3
            for repetition in (1, 2):
                says = met is not (is_hard and generator.random() < 0.5)
                verdicts.append({**key, "judge": "cheap", "judge_trial": repetition, "criteria_met": says})
    assert 0 == main(["import", "responses", str(write_jsonl(folder / "answers.jsonl", answers)), *at])
    assert 0 == main(["import", "verdicts", str(write_jsonl(folder / "verdicts.jsonl", verdicts)), *at])
    return folder / "data"


@pytest.fixture
def asked(data: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """A command on the warehouse."""
    return Run(capsys, "--warehouse", data)


def test_the_picked_rule_can_be_pasted_into_the_configuration(asked: Run) -> None:
    rules = asked.json("cascade", "cheap", "strong")["rules"]
    lows = {rule["rule"]: rule["chosen_agreement_ci_low"] for rule in rules if rule["rule"] != "strong alone"}
    reached = max(low for low in lows.values() if low is not None)
    rules = asked.json("cascade", "cheap", "strong", "--bound", f"agreement={reached}")["rules"]
    (picked,) = [rule for rule in rules if rule["is_picked"]]
    assert picked["is_within_bound"]
    assert lows[picked["rule"]] == reached
    judges = [
        {"name": "openai/a", "label": "cheap", "trials": 2}, {"name": "openai/b", "label": "strong"},
        *yaml.safe_load(picked["configuration"]),
    ]  # fmt: skip
    settings, problems = sound_settings({"dataset": {"source": "sample"}, "judges": judges})
    assert [] == problems
    assert settings is not None
    assert ["cheap-then-strong"] == [judge.label for judge in settings.judges]


def test_rules_and_what_was_left_out_are_shown_and_stored_once(data: Path, asked: Run) -> None:
    shown = [asked("cascade", "cheap", "strong", "--all") for _ in range(2)]
    assert "cheap first, then strong; figures are against strong alone." in shown[0]
    assert "cheap has no stored confidence" in shown[0]
    assert "Warning: rules made from 4 tasks are unreliable; below 50 so are their intervals." in shown[0]
    assert "The cost of the judges is not known" in shown[0]
    assert shown[0] == shown[1]
    query = "select count(*) from cascade_rules where evaluation_id = (select arg_max(evaluation_id, created_at) from "
    with Warehouse(data).reader() as reader:
        assert reader.value(f"{query} cascade_rules)") == len(asked.json("cascade", "cheap", "strong")["rules"])
