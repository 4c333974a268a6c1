"""Mutants: small changes of the source that a test should notice."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
_MODEL_RULES = "tests/tasks/aggregate/test_model_rules.py"

TESTS = {
    "tasks/rules/statistics/intervals.py": "tests/tasks/rules/statistics/test_intervals.py",
    "tasks/rules/statistics/comparison.py": "tests/tasks/rules/statistics/test_comparison.py",
    "tasks/rules/statistics/agreement.py": (
        "tests/tasks/rules/statistics/test_agreement.py tests/tasks/rules/statistics/test_labels.py"
    ),
    "tasks/rules/statistics/calibration.py": "tests/tasks/rules/statistics/test_calibration.py",
    "tasks/rules/statistics/control.py": "tests/tasks/rules/statistics/test_control.py",
    "tasks/rules/statistics/debiased.py": "tests/tasks/rules/statistics/test_debiased.py",
    "tasks/rules/statistics/effects.py": "tests/tasks/rules/statistics/test_effects.py",
    "tasks/rules/statistics/sampling.py": "tests/tasks/rules/statistics/test_sampling.py",
    "tasks/rules/statistics/uncertainty.py": "tests/tasks/rules/statistics/test_uncertainty.py",
    "tasks/rules/statistics/weaknesses.py": "tests/tasks/rules/statistics/test_weaknesses.py",
    "tasks/rules/stopping.py": "tests/tasks/rules/stopping",
    "tasks/rules/cascades/": "tests/tasks/rules/cascades",
    "tasks/rules/text/": "tests/tasks/rules/text tests/tasks/rules/test_verdict.py",
    "tasks/rules/verdict.py": "tests/tasks/rules/test_verdict.py tests/tasks/rules/test_groups.py",
    "tasks/rules/identity.py": (
        "tests/tasks/rules/test_identity.py tests/tasks/rules/test_identity_values.py"
    ),
    "tasks/rules/records.py": "tests/tasks/run/test_identity_values.py tests/tasks/benchmarks",
    "tasks/rules/conversation.py": (
        "tests/tasks/rules/test_conversation.py tests/tasks/rules/test_quoting.py "
        "tests/tasks/rules/test_evidence.py"
    ),
    "tasks/rules/evidence.py": "tests/tasks/rules/test_evidence.py",
    "tasks/rules/hardness.py": "tests/tasks/rules/test_hardness.py tests/tasks/hard_subset",
    "tasks/rules/panels.py": "tests/tasks/rules/test_panels.py",
    "tasks/rules/variants.py": "tests/tasks/rules/test_variants.py",
    "tasks/llm/limiter.py": "tests/tasks/llm/limits tests/tasks/llm/test_outcomes.py",
    "tasks/llm/ledger/ledger.py": "tests/tasks/llm/ledger",
    "tasks/llm/ledger/entries.py": "tests/tasks/llm/ledger",
    "tasks/llm/ledger/pruning.py": "tests/tasks/llm/ledger",
    "tasks/llm/replies.py": "tests/tasks/llm/test_outcomes.py",
    "tasks/llm/request.py": (
        "tests/tasks/run/test_identity_values.py tests/tasks/llm/ledger/test_ledger.py"
    ),
    "tasks/llm/reading.py": "tests/tasks/llm/transport tests/tasks/llm/test_embedded.py",
    "tasks/llm/failures.py": "tests/tasks/llm/limits tests/tasks/llm/test_outcomes.py",
    "tasks/llm/usage.py": "tests/tasks/llm/test_usage.py",
    "sql/marts/": "",
    "sql/intermediate/": "",
    # Cases that the rows of `tests/golden` do not have, such as probabilities and neighbours.
    "sql/intermediate/agreement/calibration_bins.sql": "tests/tasks/aggregate/test_calibration.py",
    "sql/intermediate/agreement/calibration_figures.sql": (
        "tests/tasks/aggregate/test_calibration.py"
    ),
    "sql/intermediate/agreement/neighbour_changes.sql": "tests/tasks/aggregate/test_neighbours.py",
    "sql/intermediate/agreement/agreement_figures.sql": _MODEL_RULES,
    "sql/intermediate/annotations/annotator_labels.sql": _MODEL_RULES,
    "sql/intermediate/leaderboards/random_parts.sql": _MODEL_RULES,
    "sql/intermediate/leaderboards/ranking_positions.sql": _MODEL_RULES,
    "sql/intermediate/reviews/current_reviews.sql": _MODEL_RULES,
    "sql/intermediate/scores/decided_points.sql": _MODEL_RULES,
    "sql/intermediate/scores/rubric_criteria.sql": _MODEL_RULES,
    "sql/intermediate/scores/rubric_weights.sql": _MODEL_RULES,
    "sql/intermediate/verdicts/control_nights.sql": _MODEL_RULES,
    "sql/marts/conditions/condition_differences.sql": _MODEL_RULES,
    "sql/marts/costs/run_costs.sql": _MODEL_RULES,
    "sql/marts/judges/graders.sql": _MODEL_RULES,
    "sql/marts/judges/judge_drift.sql": _MODEL_RULES,
    "sql/marts/leaderboards/severity_leaderboard.sql": _MODEL_RULES,
}
"""Source -> the tests that can detect a change in it; results of SQL are also compared with the
rows of `tests/golden`.
"""
PARTS = {"rules": "tasks/rules/", "llm": "tasks/llm/", "sql": "sql/"}
"""Part -> the folder that its mutants change."""


@dataclass(frozen=True)
class Mutant:
    """A change of one line, which is identified by its text, so that it is found even if it was
    moved.

    Attributes:
        file: the file of the line when the set was made.
        before: the line, without indentation.
        after: the line that replaces it.
        nth: the index of the line among equal lines of the file, from 0.
        equivalent_because: why no test can notice the change; empty if one can.
    """

    file: str
    before: str
    after: str
    nth: int = 0
    equivalent_because: str = field(default="", compare=False)

    def applied(self, root: Path) -> tuple[Path, str] | None:
        """Return the file that has the line now, and its changed text; None if no file has the
        line.
        """
        paths = [root / self.file]
        for folder in ("tasks", "sql", "warehouse"):
            paths += sorted((root / folder).rglob("*" + self.suffix))
        for path in paths:
            if not path.is_file():
                continue
            lines = path.read_text().split("\n")
            indices = [
                i for i, line in enumerate(lines) if line.strip() == self.before
            ]
            if len(indices) > self.nth:
                index = indices[self.nth]
                lines[index] = lines[index].replace(self.before, self.after)
                return path, "\n".join(lines)
        return None

    @property
    def suffix(self) -> str:
        """The kind of file: .py or .sql."""
        return Path(self.file).suffix

    @property
    def part(self) -> str:
        """The part of the source that it belongs to."""
        [part] = [
            part for part, folder in PARTS.items() if self.file.startswith(folder)
        ]
        return part

    def as_row(self) -> dict[str, Any]:
        """Return the mutant as an object of JSON."""
        return asdict(self)

    @property
    def tests(self) -> list[str]:
        """The tests that can detect it; none for most SQL: its results are compared."""
        sources = [source for source in TESTS if self.file.startswith(source)]
        return TESTS[max(sources, key=len)].split()
