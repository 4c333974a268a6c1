"""`prbench diff`: what people read, what machines get, and one line for everything that cannot be compared."""

from pathlib import Path

import pytest

from tests.flows.conftest import Run
from tests.kit import combined, written
from tests.tasks.compare.comparisons import ALL_MET, RUBRICS, judged, tasks_of

N_TASKS = 40
MANY = {f"task-{number:02d}": [(10, "Accuracy"), (10, "Risk")] for number in range(N_TASKS)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty tasks of two criteria: `good` has all, `odd` wins and loses one each, `mixed`
    five each, and `fallen` loses a half in each."""
    folder = tmp_path_factory.mktemp("warehouse")
    names = list(MANY)
    good = {task: [1, 0.0] for task in names}
    odd = good | {names[0]: [1, 1.0], names[1]: [0, 0.0]}
    fallen = {task: [0, 0.0] for task in names}
    mixed = good | {name: [1, 1.0] if index < 5 else [0, 0.0] for index, name in enumerate(names[:10])}
    undecided = good | {names[2]: [1, None], names[3]: [0, 0.0]}
    rows = combined(
        tasks_of(MANY | {"t2": RUBRICS["t2"]}), judged(good, "good", rubrics=MANY),
        judged(odd, "odd", rubrics=MANY),
        judged(undecided, "undecided", rubrics=MANY), judged(good, "twin", rubrics=MANY),
        judged(fallen, "fallen", rubrics=MANY), judged(mixed, "mixed", rubrics=MANY),
        judged({"t2": ALL_MET["t2"]}, "lonely"),
    )  # fmt: skip
    rows["split_members"][-1]["split"] = "legal"
    written(folder, rows).publish()
    return folder


# Ten tasks differ by a half, as many up as down: the spread is sqrt(2.5 / 39), and t has 9 degrees.
SMALLEST = (2.2622 + 0.8834) * (2.5 / 39 / 40) ** 0.5
SENTENCES = {
    "good mixed": (
        "No significant difference between good and mixed on finance (mixed is 0.000 higher; 95 % interval −0.",
        f"smallest detectable difference {SMALLEST:.3f} (with a power of 80 %)",
        "* Few tasks: fewer than 50, or fewer than 10 that differ; the interval may be too narrow.",
    ),
    "good fallen": (
        "fallen is 0.500 lower than good on finance (no interval, since nearly all tasks change by the same amount, "
        "p < 0.001): significant", "nearly all tasks change alike",
    ),
    "good twin": (
        "twin and good have the same score on finance: no task differs (40 tasks)", "0 of 80 criteria flipped",
    ),
    "good undecided": (
        "│    39 │        40 │",
        "2 of 80 criteria could not be compared: 1 undecided on one side, 1 decided, but in incomplete tasks.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("names", SENTENCES)
def test_a_difference_is_explained_in_sentences(run_here: Run, names: str) -> None:
    run_here("diff", *names.split())
    assert [] == [part for part in SENTENCES[names] if part not in run_here.out]
    assert "showing the only revision of prbench there" in run_here.err


def test_with_too_few_differing_tasks_there_is_a_note_and_neither_interval_nor_test(run_here: Run) -> None:
    output = run_here("diff", "good", "odd", "twin")
    assert "odd is 0.000 higher than good on finance, but this cannot be tested: only 2 of 40 tasks differ" in output
    assert "too few tasks differ" in next(line for line in output.splitlines() if "│ odd" in line)
    assert "no task differs" in next(line for line in output.splitlines() if "│ twin" in line)
    assert "No interval and no test: fewer than 5 tasks differ." in output
    for row in run_here.json("diff", "good", "odd", "twin")["comparisons"]:
        nothing = ("ci_low", "ci_high", "p_value", "p_adjusted", "smallest_detectable", "is_significant")
        assert dict.fromkeys(nothing) == {name: row[name] for name in nothing}
