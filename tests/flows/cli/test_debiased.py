"""`leaderboard --debiased` and `diff --debiased`: what people and machines see of scores that labels correct."""

from pathlib import Path

import pytest

from tests.flows.conftest import Run, asking
from tests.kit import stored
from tests.tasks.aggregate.debiased_oracle import CATEGORIES, LabelledWorld, without_labels_on


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with labels, and a configuration that is about its data set."""
    return stored(tmp_path_factory.mktemp("debiased"), LabelledWorld(seed=5).tables())


def test_each_model_has_its_score_by_the_judge_by_labels_alone_and_debiased(asked: Run) -> None:
    rows = asked.json("leaderboard", "--debiased")
    expected = LabelledWorld(seed=5).expected("ada")

    assert ["ada", "bob"] == [row["model"] for row in rows]
    assert rows[0]["debiased"] == pytest.approx(expected.debiased)
    assert rows[0]["labels_alone"] == pytest.approx(expected.alone)
    assert rows[0]["judge_score"] == pytest.approx(expected.judge_score)
    said = asked("leaderboard", "--debiased")
    assert f"{expected.debiased:.3f} ({rows[0]['debiased_ci_low']:.3f} to" in said


@pytest.mark.slow
def test_a_model_and_a_category_without_labels_are_said_to_have_none_and_the_advice_names_the_category(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = without_labels_on(LabelledWorld(seed=5).tables(), {"bob"}, {0, 2, 4})
    asked = asking(stored(tmp_path, tables), capsys)

    said = asked("leaderboard", "--debiased", "--model", "bob")
    assert all(part in said for part in ("bob", "no label", "--for leaderboard"))
    assert f'--for "{CATEGORIES[0]}"' in asked("leaderboard", "--debiased", "--by", "category", "--model", "ada")


@pytest.mark.slow
def test_judges_go_by_name_configurations_by_digits(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = dict(LabelledWorld(seed=5).tables())
    judged = [each for each in tables["verdicts"] if each["source"] == "judged"]
    for judge, digit in (("b-judge", "b"), ("c-judge", "c"), ("c-judge", "d")):
        others = {"judge": judge, "judge_config_hash": 32 * digit}
        tables["verdicts"] = [
            *tables["verdicts"], *(each | others | {"verdict_id": f"{each['verdict_id']}{digit}"} for each in judged)
        ]  # fmt: skip
    said = asking(stored(tmp_path, tables), capsys)("leaderboard", "--debiased")

    assert "b-judge" in said
    assert "bbbb" not in said
    for digit in "cd":
        assert f"c-judge configuration {8 * digit}" in said
        assert 9 * digit not in said


@pytest.mark.parametrize(("arguments", "said"), [
    ("leaderboard --debiased --by topic", "--by topic: --debiased knows --by category only"),
    ("leaderboard --debiased --risk", "--debiased and --risk cannot be combined"),
    ("diff ada nobody --debiased", "nobody: --debiased compares models; no such model; known: ada, bob"),
    ("diff ada bob --debiased --of judge", "--of does not apply to --debiased"),
    ("diff ada bob --debiased --flips 2", "--flips does not apply to --debiased"),
])  # fmt: skip
def test_what_labels_cannot_say_is_refused_in_one_line(asked: Run, arguments: str, said: str) -> None:
    assert said in asked.refusal(*arguments.split())
