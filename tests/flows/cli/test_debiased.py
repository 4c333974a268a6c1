"""`leaderboard --debiased` and `diff --debiased`: what people and machines see of scores that labels correct."""

from pathlib import Path

import pytest

from tests.flows.conftest import asking
from tests.kit import stored
from tests.tasks.aggregate.debiased_oracle import CATEGORIES, LabelledWorld, without_labels_on


@pytest.mark.slow
def test_a_model_and_a_category_without_labels_are_said_to_have_none_and_the_advice_names_the_category(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = without_labels_on(LabelledWorld(seed=5).tables(), {"bob"}, {0, 2, 4})
    asked = asking(stored(tmp_path, tables), capsys)

    said = asked("leaderboard", "--debiased", "--model", "bob")
    assert all(part in said for part in ("bob", "no label", "--for leaderboard"))
    assert f'--for "{CATEGORIES[0]}"' in asked("leaderboard", "--debiased", "--by", "category", "--model", "ada")
