"""`leaderboard --debiased` and `diff --debiased`: what people and machines see of scores that labels correct."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows.cli.main import main
from tasks.aggregate import aggregate
from tests.builders import job_on
from tests.tasks.aggregate.debiased_oracle import CATEGORIES, LabelledWorld, without_labels_on
from warehouse import Warehouse


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with labels, and a configuration that is about its data set."""
    return prepared(tmp_path_factory.mktemp("debiased"), LabelledWorld(seed=5).tables())


def prepared(folder: Path, tables: Mapping[str, list[dict[str, Any]]]) -> Path:
    (folder / "finance.jsonl").write_text("{}\n", encoding="utf-8")
    (folder / "prbench.yaml").write_text(yaml.safe_dump({"dataset": {"source": str(folder / "finance.jsonl")}}))
    job = job_on(folder / "finance.jsonl", folder / "data")
    for table_name, rows in tables.items():
        of_revision = {"dataset_revision": job.data.revision}
        known = [row | (of_revision if "dataset_revision" in row else {}) for row in rows]
        Warehouse(job.warehouse).write(table_name, known)
    aggregate(job)
    return folder


def asked(folder: Path, *arguments: str) -> int:
    return main([*arguments, "--config", str(folder / "prbench.yaml"), "--warehouse", str(folder / "data")])


def records(folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert asked(folder, *arguments, "--json") == 0
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found


def test_each_model_has_its_score_by_the_judge_by_labels_alone_and_debiased(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = records(folder, capsys, "leaderboard", "--debiased")
    expected = LabelledWorld(seed=5).expected("ada")

    assert ["ada", "bob"] == [row["model"] for row in rows]
    assert rows[0]["debiased"] == pytest.approx(expected.debiased)
    assert rows[0]["labels_alone"] == pytest.approx(expected.alone)
    assert rows[0]["judge_score"] == pytest.approx(expected.judge_score)
    assert asked(folder, "leaderboard", "--debiased") == 0
    said = capsys.readouterr().out
    assert f"{expected.debiased:.3f} ({rows[0]['debiased_ci_low']:.3f} to" in said
    assert "1 more labels without a known probability, not used" in said


def test_categories_have_debiased_scores_of_their_own(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = records(folder, capsys, "leaderboard", "--debiased", "--by", "category", "--model", "bob")

    assert sorted(CATEGORIES) == [row["label"] for row in rows]
    assert {"min_normalized"} == {row["score_name"] for row in rows}
    expected = LabelledWorld(seed=5).expected("bob", "min_normalized", CATEGORIES[0])
    assert rows[1]["debiased"] == pytest.approx(expected.debiased)


def test_a_difference_is_that_of_the_debiased_scores_and_turns_with_the_order_of_the_names(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    there, back = (records(folder, capsys, "diff", *names, "--debiased") for names in (("ada", "bob"), ("bob", "ada")))
    world = LabelledWorld(seed=5)
    ada, bob = world.expected("ada"), world.expected("bob")

    assert there[0]["debiased_difference"] == pytest.approx(bob.debiased - ada.debiased)
    assert there[0]["labels_alone_difference"] == pytest.approx(bob.alone - ada.alone)
    assert there[0]["judge_difference"] == pytest.approx(bob.judge_score - ada.judge_score)
    for end, other in (("low", "high"), ("high", "low")):
        assert there[0][f"debiased_ci_{end}"] == -back[0][f"debiased_ci_{other}"]
    assert there[0]["debiased_ci_low"] < there[0]["debiased_difference"] < there[0]["debiased_ci_high"]
    assert (there[0]["n_labels_first"], there[0]["n_labels_second"]) == (ada.n_labels, bob.n_labels)


@pytest.mark.slow
def test_a_model_and_a_category_without_labels_are_said_to_have_none_and_the_advice_names_the_category(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = prepared(tmp_path, without_labels_on(LabelledWorld(seed=5).tables(), {"bob"}, {0, 2, 4}))

    assert asked(folder, "leaderboard", "--debiased", "--model", "bob") == 0
    said = capsys.readouterr().out
    assert "bob" in said
    assert "no label" in said
    assert "--for leaderboard" in said
    assert asked(folder, "leaderboard", "--debiased", "--by", "category", "--model", "ada") == 0
    assert f'--for "{CATEGORIES[0]}"' in capsys.readouterr().out
    assert asked(folder, "leaderboard", "--debiased", "--vintage", "2020-01-01") in {0, 2}
    assert "No verdict of a judge has a label yet;" not in capsys.readouterr().out


@pytest.mark.slow
def test_judges_go_by_name_and_configurations_of_one_by_eight_digits(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = dict(LabelledWorld(seed=5).tables())
    judged = [each for each in tables["verdicts"] if each["source"] == "judged"]
    for judge, digit in (("b-judge", "b"), ("c-judge", "c"), ("c-judge", "d")):
        others = {"judge": judge, "judge_config_hash": 32 * digit}
        tables["verdicts"] = [
            *tables["verdicts"], *(each | others | {"verdict_id": f"{each['verdict_id']}{digit}"} for each in judged)
        ]  # fmt: skip
    folder = prepared(tmp_path, tables)

    assert asked(folder, "leaderboard", "--debiased") == 0
    said = capsys.readouterr().out
    assert "judged by b-judge" in said
    assert "bbbb" not in said
    for digit in "cd":
        assert 8 * digit in said
        assert 9 * digit not in said


@pytest.mark.parametrize(("arguments", "said"), [
    (["leaderboard", "--debiased", "--by", "topic"], "--by topic: --debiased knows --by category only"),
    (["leaderboard", "--debiased", "--risk"], "--debiased and --risk cannot be combined"),
    (["diff", "ada", "nobody", "--debiased"], "nobody: --debiased compares models; no such model; known: ada, bob"),
    (["diff", "ada", "bob", "--debiased", "--flips", "3"], "--flips does not apply to --debiased"),
    (["diff", "ada", "bob", "--debiased", "--of", "judge"], "--of does not apply to --debiased"),
])  # fmt: skip
def test_what_labels_cannot_say_is_refused_in_one_line(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert asked(folder, *arguments) == 2
    error = capsys.readouterr().err
    assert said in error
    assert 1 == error.count("\n")
