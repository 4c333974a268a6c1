"""Problems of a setup: they are listed together, and for a mistyped key the intended one is named."""

import json
from pathlib import Path

import pytest

from flows.run.arguments import Arguments
from flows.run.config import load_job
from tasks.rules.errors import UsageError
from tests.flows.conftest import Run
from tests.kit import row
from warehouse import Warehouse


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    return tmp_path / "night.yaml"


def problems(file: Path, run: Run, *options: str, code: int = 2) -> list[tuple[str, str]]:
    """Return the problems that `prbench doctor` reports: the subject, and the beginning of the detail."""
    run("doctor", "--json", "--config", file, *options, code=code)
    return [(each["what"], each["detail"]) for each in json.loads(run.out) if each["state"] == "PROBLEM"]


def refusal(arguments: Arguments) -> str:
    with pytest.raises(UsageError) as refused:
        load_job(arguments)
    return str(refused.value)


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        ("judges: [{name: openai/y, template: no.txt}]", "judge openai/y: template: no.txt is neither a file"),
        (
            "judges: [{name: openai/y, label: j}, {name: openai/z, label: j, template: no.txt}]",
            "judges: label 'j' is used twice",
        ),
        ("judges: [{name: openai/y}]\ncapabilities: 5", "capabilities: must be a mapping"),
        (
            "judges: [{name: openai/y}]\ncapabilities: {model: {name: openai/x, trials: 2}}",
            "capabilities: `model.trials` must be 1",
        ),
        ("judges: [{name: openai/y}, {name: openai/z, tials: 1}]", "judges[1].tials: there is no such key (did you"),
        ("judges: [{name: openai/y}]\nquality: {weight_rnage: warn}", "quality.weight_rnage: there is no such check"),
        ("judges: [{name: openai/y}]\nbenchmarks: {prbench: {trials: 0}}", "benchmarks.prbench: trials: must be"),
        (
            "judges: [{name: openai/y}]\nbenchmarks: {prbnech: {}}",
            "benchmarks.prbnech: there is no such benchmark (did",
        ),
    ],
)
def test_a_broken_configuration_hides_neither_a_missing_data_file_nor_a_missing_key(
    file: Path, run: Run, broken: str, message: str
) -> None:
    file.write_text(f"dataset: {{source: nowhere.jsonl}}\n{broken}")
    (_, first), *others = problems(file, run)
    assert first.startswith(message)
    assert ("data set", "nowhere.jsonl") in [(what, detail.partition(" is ")[0]) for what, detail in others]
    assert ["OPENAI_API_KEY is not set; export it"] == [detail for what, detail in others if what.endswith("openai/y")]


def test_findings_on_defaults_are_left_out_for_a_broken_configuration(file: Path, run: Run) -> None:
    file.write_text("datset: {source: nowhere.jsonl}\nmodels: [{nme: x}]\nnightly: {cron: x}\n")
    run("doctor", "--json", "--config", file, code=2)
    assert not {"data set", "models", "nights"} & {each["what"] for each in json.loads(run.out)}


def test_all_problems_of_a_configuration_are_reported_together(file: Path) -> None:
    file.write_text(
        "dataset: {source: sample}\nmodels: [{name: a, label: x}, {name: b, label: x}]\ntrials: 0\n"
        "judges: [{name: a, rubric: augmented, template: no.txt}, {name: a}, {name: b, tials: 1}]\n"
        "quality: {nope: warn, verdict_value: quarantine}\n"
    )
    broken = ("models: label 'x' is used twice", "trials: must be greater")
    for part in (
        *broken, "rubric_writer: judge a has `rubric: augmented`", "judges: label 'a' is used twice",
        "judge a: template: no.txt is neither", "judges[2].tials: there is no such key (did you mean `trials`?)",
        "quality.nope: there is no such check; known are", "quality.verdict_value: looks at",
    ):  # fmt: skip
        assert part in refusal(Arguments(config=file))
    (file.parent / "taken").touch()
    for part in (*broken, "taken is a file; choose a folder"):
        assert part in refusal(Arguments(config=file, warehouse=file.parent / "taken"))


def test_a_folder_that_is_neither_empty_nor_a_warehouse_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    taken, disk = tmp_path / "taken", tmp_path / "disk"
    (taken / "apt").mkdir(parents=True)
    assert f"warehouse {taken} (--warehouse): contains apt and is no warehouse" in refusal(Arguments(warehouse=taken))
    assert [taken / "apt"] == list(taken.iterdir())

    (disk / "lost+found").mkdir(parents=True)
    (disk / ".snapshots").mkdir()
    assert disk == load_job(Arguments(warehouse=disk)).warehouse
    Warehouse(disk).write("runs", [row("runs", command="run")])
    (disk / "notes.txt").touch()
    assert disk == load_job(Arguments(warehouse=disk)).warehouse
