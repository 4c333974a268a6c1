"""People's verdicts as labels of a sheet, and what they make of the judges' scores."""

from collections.abc import Iterable, Sequence

from tests.builders import row
from tests.tasks.report.made_up.results import Row

SHEET = "a-sheet-of-verdicts"
_OFF = -0.03
"""By how much labels lower each score."""


def label_rows(people: str, revision: str, made: dict[str, list[Row]]) -> dict[str, list[Row]]:
    """The rows by table that make people's verdicts labels of one sheet, which draws every second of them."""
    drawn = [each for each in made["verdicts"] if each["judge"] == people and each["dataset_revision"] == revision][::2]
    answers = sorted({each["response_id"] for each in made["responses"] if each["dataset_revision"] == revision})
    return {
        "labellers": [row("labellers", judge=people, import_batch="batch-of-labels")],
        "label_sheets": [
            row("label_sheets", dataset_revision=revision, sheet_id=SHEET, design="drawn for leaderboard",
                covered_breakdown="all", covered_label="", covered_responses=answers, n_population=10 * len(drawn),
                n_drawn=len(drawn), seed=0)
        ],
        "label_draws": [
            row("label_draws", sheet_id=SHEET, probability=0.1, is_known=False,
                **{name: each[name] for name in
                   ("dataset_revision", "task_id", "response_id", "criterion_id", "criterion_hash")})
            for each in drawn
        ],
    }  # fmt: skip


def debiased_rows(measured: Iterable[Row], with_figure: Sequence[str]) -> dict[str, list[Row]]:
    """Measures as many labels would give them, in place of those that say that there are too few."""
    return {
        "debiased_measures": [
            each | {
                "debiased": score + _OFF, "debiased_ci_low": score + _OFF - 0.06,
                "debiased_ci_high": score + _OFF + 0.06, "labels_alone": score + 2 * _OFF,
                "labels_alone_ci_low": score + 2 * _OFF - 0.11, "labels_alone_ci_high": score + 2 * _OFF + 0.11,
                "judge_power": 0.7, "effective_labels": 60.0, "no_figure": None,
            }
            for each in measured
            if each["figure_id"] in with_figure
            for score in [each["judge_score"]]
        ]
    }  # fmt: skip
