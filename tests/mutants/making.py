"""Mutants: small changes of the source that a test should notice."""

import ast
import itertools
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeGuard

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
    "tasks/rules/statistics/sampling.py": "tests/tasks/rules/statistics/test_sampling.py",
    "tasks/rules/statistics/weaknesses.py": "tests/tasks/rules/statistics/test_weaknesses.py",
    "tasks/rules/stopping.py": "tests/tasks/rules/stopping",
    "tasks/rules/cascades/": "tests/tasks/rules/cascades",
    "tasks/rules/text/": "tests/tasks/rules/text tests/tasks/rules/test_verdict.py",
    "tasks/rules/verdict.py": "tests/tasks/rules/test_verdict.py tests/tasks/rules/test_groups.py",
    "tasks/rules/identity.py": "tests/tasks/rules/test_identity.py",
    "tasks/rules/records.py": "tests/tasks/rules/test_identity.py tests/tasks/benchmarks",
    "tasks/rules/conversation.py": (
        "tests/tasks/rules/test_conversation.py tests/tasks/rules/test_quoting.py "
        "tests/tasks/rules/test_evidence.py"
    ),
    "tasks/rules/evidence.py": "tests/tasks/rules/test_evidence.py",
    "tasks/rules/hardness.py": "tests/tasks/rules/test_hardness.py tests/tasks/hard_subset",
    "tasks/rules/variants.py": "tests/tasks/rules/test_variants.py",
    "tasks/llm/limiter.py": "tests/tasks/llm/limits tests/tasks/llm/test_outcomes.py",
    "tasks/llm/ledger/ledger.py": "tests/tasks/llm/ledger",
    "tasks/llm/ledger/entries.py": "tests/tasks/llm/ledger",
    "tasks/llm/ledger/pruning.py": "tests/tasks/llm/ledger",
    "tasks/llm/request.py": (
        "tests/tasks/rules/test_identity.py tests/tasks/llm/ledger/test_ledger.py"
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
PARTS = {"rules": ("tasks/rules/", 110), "llm": ("tasks/llm/", 40), "sql": ("sql/", 90)}
"""Part -> the folder that its mutants change, and how many `drawn` draws there."""
_SWAPS = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "/",
    ast.Div: "*",
    ast.And: "or",
    ast.Or: "and",
    ast.Is: "is not",
    ast.IsNot: "is",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.BitOr: "&",
    ast.BitAnd: "|",
}
_SQL_SWAPS = (
    (r" < ", " <= "),
    (r" <= ", " < "),
    (r" > ", " >= "),
    (r" >= ", " > "),
    (r" = ", " <> "),
    (r" <> ", " = "),
    (r" \+ ", " - "),
    (r" - ", " + "),
    (r"\band\b", "or"),
    (r"\bor\b", "and"),
    (r"\bmin\(", "max("),
    (r"\bmax\(", "min("),
    (r"\bavg\(", "max("),
    (r"\bsum\(", "max("),
    (r"\binner join\b", "left join"),
    (r"\bleft join\b", "inner join"),
    (r"\bnot\b ", ""),
    (r"\bleast\(", "greatest("),
    (r"\bgreatest\(", "least("),
    (r"\b0\b", "1"),
    (r"\b1\b", "2"),
    (r"\bnulls last\b", "nulls first"),
    (r" desc\b", " asc"),
    (r"\bis null\b", "is not null"),
)


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
            lines = path.read_text(encoding="utf-8").split("\n")
            indices = [i for i, line in enumerate(lines) if line.strip() == self.before]
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
        return next(
            part for part, (folder, _) in PARTS.items() if self.file.startswith(folder)
        )

    def as_row(self) -> dict[str, Any]:
        """Return the mutant as an object of JSON."""
        return asdict(self)

    @property
    def tests(self) -> list[str]:
        """The tests that can detect it; none for most SQL: its results are compared."""
        sources = [source for source in TESTS if self.file.startswith(source)]
        return TESTS[max(sources, key=len)].split()


def drawn(seed: int = 1) -> list[Mutant]:
    """Return a new set, drawn from all possible changes."""
    dice = random.Random(seed)
    mutants = []
    for folder, n_mutants in PARTS.values():
        paths = set()
        for source in TESTS:
            if source.startswith(folder):
                paths.update(_files(ROOT / source))
        possible = []
        for path in sorted(paths):
            possible += _possible(path)
        mutants += dice.sample(possible, n_mutants)
    return sorted(
        mutants, key=lambda mutant: (mutant.file, mutant.before, mutant.after)
    )


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    return [file for file in path.rglob("*.*") if file.suffix in {".py", ".sql"}]


def _possible(path: Path) -> Iterator[Mutant]:
    text = path.read_text(encoding="utf-8")
    changes = _sql_changes(text) if path.suffix == ".sql" else _python_changes(text)
    lines = text.split("\n")
    for number, line in sorted(set(changes)):
        original = lines[number].strip()
        nth = [earlier.strip() for earlier in lines[:number]].count(original)
        yield Mutant(str(path.relative_to(ROOT)), original, line.strip(), nth)


def _sql_changes(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.split("\n")):
        if line.strip().startswith("--"):
            continue
        for pattern, replacement in _SQL_SWAPS:
            changed = re.sub(pattern, replacement, line, count=1)
            if changed != line:
                yield number, changed


def _python_changes(text: str) -> Iterator[tuple[int, str]]:
    lines = text.split("\n")
    for node in ast.walk(ast.parse(text)):
        for left, operator, right in _operations(node):
            swap = _SWAPS.get(type(operator))
            if swap and left.end_lineno == right.lineno:
                start = left.end_col_offset or 0
                code = lines[right.lineno - 1][start : right.col_offset]
                changed = re.sub(r"[^\s()]+(\s+(in|not)\b)?", swap, code, count=1)
                yield _replaced(lines, right.lineno, start, right.col_offset, changed)
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            if isinstance(node.value, bool):
                changed = str(not node.value)
            else:
                changed = str(node.value + 1)
            yield _replaced(
                lines,
                node.lineno,
                node.col_offset,
                node.end_col_offset or 0,
                changed,
            )
        elif _is_negation(node) and node.lineno == node.operand.lineno:
            yield _replaced(
                lines,
                node.lineno,
                node.col_offset,
                node.operand.col_offset,
                "",
            )


def _is_negation(node: ast.AST) -> TypeGuard[ast.UnaryOp]:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _replaced(
    lines: Sequence[str],
    line_number: int,
    start: int,
    end: int,
    text: str,
) -> tuple[int, str]:
    """Return the index of a line, and the line with other text between two columns."""
    line = lines[line_number - 1]
    return line_number - 1, line[:start] + text + line[end:]


def _operations(node: ast.AST) -> Iterator[tuple[ast.expr, ast.AST, ast.expr]]:
    if isinstance(node, ast.Compare):
        yield from zip(
            [node.left, *node.comparators],
            node.ops,
            node.comparators,
            strict=False,
        )
    elif isinstance(node, ast.BinOp):
        yield node.left, node.op, node.right
    elif isinstance(node, ast.BoolOp):
        for left, right in itertools.pairwise(node.values):
            yield left, node.op, right
