"""What `stopping` in a configuration may say, and what is refused with the path of its key."""

from pathlib import Path

import pytest

from flows.run.arguments import Arguments
from flows.run.config import load_job
from tasks.rules.errors import UsageError
from tests.kit import one_line

_TWO = "models: [{name: openai/a, label: a}, {name: openai/b, label: b}]\njudges: [{name: openai/j}]\n"
_NIGHTLY = "models: [{name: openai/a, label: a, resample: nightly}]\njudges: [{name: openai/j}]\n"


def configured(folder: Path, text: str) -> Path:
    file = folder / "prbench.yaml"
    file.write_text(f"dataset: {{source: sample}}\n{text}", encoding="utf-8")
    return file


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (_TWO + "stopping: {pairs: [[a, c]]}", "stopping.pairs[0]: there is no model 'c'"),
        (_TWO + "stopping: {pairs: [[a, a]]}", "stopping.pairs: must be pairs of two different labels"),
        (_TWO + "stopping: {pairs: [[a, b], [b, a]]}", "must be pairs of two different labels, each pair once"),
        (_TWO + "stopping: {pairs: []}", "stopping.pairs: "),
        (_TWO + "stopping: {pairs: every}", "stopping.pairs: "),
        (_TWO + "stopping: {alpha: 1.5}", "stopping.alpha: must be less than 1"),
        (_TWO + "stopping: {least_difference: 0}", "stopping.least_difference: must be greater than 0"),
        (_TWO + "stopping: {block: 0}", "stopping.block: must be greater than or equal to 1"),
        (_TWO + "stopping: {blok: 10}", "stopping.blok: there is no such key (did you mean"),
        (_TWO + "stopping: {pairs: earlier_nights}", "needs a model with `resample: nightly`"),
        (_NIGHTLY + "stopping: {}", "stopping.pairs: `all` needs at least two models"),
        (_TWO.replace("judges: [{name: openai/j}]", "judges: []") + "stopping: {}", "stopping: needs a judge"),
    ],
)
def test_what_is_impossible_is_refused_with_its_key(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UsageError, match=one_line(told)):
        load_job(Arguments(config=configured(tmp_path, text)))


def test_models_that_are_named_narrow_what_is_evaluated_and_not_what_is_compared(tmp_path: Path) -> None:
    file = configured(tmp_path, _TWO + "stopping: {pairs: [[a, b]]}")
    job = load_job(Arguments(config=file, models=("b",)))
    assert [model.label for model in job.settings.models] == ["b"]
    assert [model.label for model in job.compared_models] == ["a", "b"]
    assert load_job(Arguments(config=configured(tmp_path, _TWO))).compared_models == ()
