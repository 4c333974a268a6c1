"""`prbench diff --fail-if worse` and `--summary`: exit codes for CI, and what is appended."""

import random
from pathlib import Path

import pytest

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
    return judged(
        decisions,
        name,
        rubrics=rubrics,
        of_response={"vintage": vintage},
    )


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
    "arguments",
    [
        "baseline worse",
        "baseline worse --least 0.1",
        "baseline better worse",
        "baseline worse --json",
    ],
)
def test_a_significantly_worse_model_is_exit_code_3(run_here, arguments):
    run_here("diff", "--fail-if", "worse", *arguments.split(), code=3)

    assert run_here.err.count("exit code") == 1
    assert "exit code 3 (worse): worse is 0." in run_here.err


@pytest.mark.parametrize(
    "arguments",
    [
        "baseline worse --least 0.6 --fail-if worse",
        "worse baseline --fail-if worse",
        "baseline alike --fail-if worse",
        "baseline better --json --fail-if worse",
        "baseline worse",
    ],
)
def test_anything_else_is_exit_code_0(run_here, arguments):
    run_here("diff", *arguments.split(), code=0)

    assert "exit code" not in run_here.err


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
def test_nothing_to_compare_is_never_exit_code_0(run_here, names, options, reason):
    run_here("diff", *names, "--fail-if", "worse", *options, code=(1, 2))

    assert reason in run_here.err


def test_the_summary_is_appended_with_the_conclusion_and_a_table(run_here, tmp_path):
    summary = tmp_path / "summary.md"
    summary.write_text("Before.\n")

    command = ("diff", "baseline", "a|b", "--fail-if", "worse", "--summary", summary)
    run_here(*command, code=3)

    text = summary.read_text().strip()
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
    run_here,
    tmp_path,
    name,
    code,
    sentence,
):
    summary = tmp_path / "summary.md"

    run_here("diff", "baseline", name, "--summary", summary, code=code)

    assert sentence in summary.read_text()


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
def test_options_that_mean_nothing_together_are_refused(run_here, options, reason):
    assert reason in run_here.refusal("diff", "baseline", "worse", *options)
