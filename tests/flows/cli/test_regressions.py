"""`prbench diff --fail-if worse` and `--summary`: exit codes for CI, and what is appended."""

import random
from pathlib import Path

import pytest

from tests.flows.conftest import run_on
from tests.kit import Rows, combined, stored
from tests.tasks.compare.comparisons import Rubric, judged, tasks_of

RUBRICS: dict[str, Rubric] = {
    f"task-{number:02d}": [(10, "Accuracy")] * 5 for number in range(40)
}
FEW = dict(list(RUBRICS.items())[:4])


def model(
    name: str,
    share_met: float,
    rubrics: dict[str, Rubric] = RUBRICS,
    vintage: str = "base",
) -> Rows:
    """A model that meets about this share of criteria; better models meet what worse ones meet."""
    decisions = {}
    for task, rubric in rubrics.items():
        dice = random.Random(task)
        decisions[task] = [float(dice.random() < share_met) for _ in rubric]
    return judged(decisions, name, rubrics=rubrics, of_response={"vintage": vintage})


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A baseline, models near and far from it, and one with few tasks."""
    return stored(
        tmp_path_factory.mktemp("regressions"),
        combined(
            tasks_of(RUBRICS),
            model("baseline", 0.8),
            model("worse", 0.5),
            model("better", 0.95),
            model("alike", 0.8),
            model("few", 0.1, FEW),
            model("a|b", 0.5),
        ),
    )


@pytest.mark.parametrize(
    ("names", "options", "code"),
    [
        (("baseline", "worse"), (), 3),
        (("baseline", "worse"), ("--least", "0.1"), 3),
        (("baseline", "worse"), ("--least", "0.6"), 0),
        (("worse", "baseline"), (), 0),
        (("baseline", "alike"), (), 0),
        (("baseline", "better", "worse"), (), 3),
        (("baseline", "better"), ("--json",), 0),
        (("baseline", "worse"), ("--json",), 3),
    ],
)
def test_a_significantly_worse_model_is_exit_code_3(
    folder,
    capsys,
    names,
    options,
    code,
):
    run_here = run_on(folder, capsys)

    run_here("diff", *names, "--fail-if", "worse", *options, code=code)

    reasons = [
        line for line in run_here.err.splitlines() if line.startswith("exit code")
    ]
    assert len(reasons) == (1 if code else 0)
    assert all(line.startswith("exit code 3 (worse): worse is 0.") for line in reasons)


def test_without_the_option_a_worse_model_is_no_failure(folder, capsys):
    run_on(folder, capsys)("diff", "baseline", "worse", code=0)


@pytest.mark.parametrize(
    ("names", "options", "reason"),
    [
        (
            ("baseline", "few"),
            (),
            "exit code 1 (not compared): few and baseline on finance: 4 tasks, too few for a test",
        ),
        (("baseline", "worse"), ("--judge", "another"), "prbench: --judge another"),
        (("baseline", "nobody"), (), "prbench: nobody: no model"),
    ],
)
def test_nothing_to_compare_is_never_exit_code_0(
    folder,
    capsys,
    names,
    options,
    reason,
):
    run_here = run_on(folder, capsys)

    run_here("diff", *names, "--fail-if", "worse", *options, code=(1, 2))

    assert reason in run_here.err


def test_the_summary_is_appended_with_the_conclusion_and_a_table(
    folder,
    capsys,
    tmp_path,
):
    summary = tmp_path / "summary.md"
    summary.write_text("Before.\n", encoding="utf-8")

    command = ("diff", "baseline", "a|b", "--fail-if", "worse", "--summary", summary)
    run_on(folder, capsys)(*command, code=3)

    text = summary.read_text(encoding="utf-8").strip()
    content, title, comparison, conclusion, table = text.split("\n\n")
    assert content == "Before."
    assert title == "## Comparison of baseline with a\\|b"
    assert comparison == (
        "Comparing baseline with a\\|b, in vintage base, judged by a-judge, on finance."
    )
    assert conclusion.startswith("Worse: a\\|b is 0.")
    header, _, row = table.splitlines()
    assert header.startswith(
        "| Compared | Split | Judge | First | Second | Difference |"
    )
    assert row.startswith("| baseline → a\\|b | finance | a-judge | 0.")
    assert row.endswith(" | &lt; 0.001 | 40 of 40 |")


@pytest.mark.parametrize(
    ("name", "code", "sentence"),
    [
        ("few", 0, "few and baseline on finance: 4 tasks, too few for a test"),
        ("nobody", 2, "Failed: nobody: no model"),
    ],
)
def test_a_summary_without_a_comparison_has_its_reason(
    folder,
    capsys,
    tmp_path,
    name,
    code,
    sentence,
):
    summary = tmp_path / "summary.md"

    run_on(folder, capsys)("diff", "baseline", name, "--summary", summary, code=code)

    assert sentence in summary.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (("--least", "0.1"), "--least is for --fail-if worse; give both"),
        (
            ("--debiased", "--fail-if", "worse"),
            "--debiased has no test; leave --fail-if and --summary out",
        ),
        (("--fail-if", "better"), "Invalid value for '--fail-if'"),
        (("--summary", "no/such/folder"), "no/such/folder"),
    ],
)
def test_options_that_mean_nothing_together_are_refused(
    folder,
    capsys,
    options,
    reason,
):
    assert reason in run_on(folder, capsys).refusal(
        "diff",
        "baseline",
        "worse",
        *options,
    )


def test_the_first_line_says_what_is_compared(folder, capsys):
    output = run_on(folder, capsys)("diff", "baseline", "worse")

    assert output.startswith(
        "Comparing baseline with worse, in vintage base, judged by a-judge, on finance.\n"
    )
