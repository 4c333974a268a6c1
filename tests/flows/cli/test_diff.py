"""`prbench diff`: sentences on differences that the made-up warehouses of `tests/golden` do not have."""

from pathlib import Path

import pytest

from tests.flows.conftest import run_on
from tests.kit import Printed, combined, written
from tests.tasks.compare.comparisons import judged, tasks_of

MANY = {f"task-{number:02d}": [(10, "Accuracy"), (10, "Risk")] for number in range(40)}
SENTENCES = {
    "good fallen": (
        "fallen is 0.500 lower than good on finance (no interval, since nearly all tasks change by the same amount, "
        "p < 0.001): significant", "nearly all tasks change alike",
    ),
    "good twin": (
        "twin and good have the same score on finance: no task differs (40 tasks)", "0 of 80 criteria flipped",
    ),
}  # fmt: skip


@pytest.mark.parametrize("names", SENTENCES)
def test_a_difference_is_explained_in_sentences(tmp_path: Path, capsys: Printed, names: str) -> None:
    good, fallen = (dict.fromkeys(MANY, values) for values in ([1, 0.0], [0, 0.0]))
    models = {"good": good, "twin": good, "fallen": fallen}
    decided = [judged(of, model, rubrics=MANY) for model, of in models.items()]
    written(tmp_path, combined(tasks_of(MANY), *decided)).publish()
    run_here = run_on(tmp_path, capsys)

    run_here("diff", *names.split())
    assert [] == [part for part in SENTENCES[names] if part not in run_here.out]
    assert "showing the only revision of prbench there" in run_here.err
