"""How much a reader has to read: a budget of code lines for each folder, which goes up only with a reason."""

import ast
import io
import math
import tokenize
from collections import Counter
from pathlib import Path

from tests.test_architecture import ROOT, tracked_files

BUDGETS = {
    "expectations": 191, "flows": 1711, "flows/cli": 2243, "flows/report_server": 602, "flows/run": 463,
    "flows/server": 354, "sql": 235, "sql/cookbook": 296, "sql/figures": 1756, "sql/intermediate": 2171,
    "sql/marts": 771, "sql/queries": 1304, "sql/report": 369, "sql/warehouse": 72, "tasks": 171, "tasks/aggregate":
    54, "tasks/alerts": 393, "tasks/analyses": 787, "tasks/benchmarks": 738, "tasks/bundles": 414, "tasks/cascade":
    179, "tasks/certify": 526, "tasks/check": 145, "tasks/compare": 657, "tasks/config": 574, "tasks/console": 141,
    "tasks/dataset": 408, "tasks/drift": 203, "tasks/exports": 1212, "tasks/figures": 2747, "tasks/hard_subset":
    293, "tasks/imports": 2180, "tasks/judge": 606, "tasks/llm": 3140, "tasks/maintain": 340, "tasks/measures": 362,
    "tasks/plan": 499, "tasks/prompts": 31, "tasks/report": 3213, "tasks/results": 193, "tasks/rules": 2194,
    "tasks/run": 1162, "tasks/sample": 83, "tasks/stopping": 186, "tests": 489, "tests/benchmarks": 2241,
    "tests/expectations": 138, "tests/faults": 2020, "tests/flows": 7241, "tests/golden": 220, "tests/mutants": 252,
    "tests/tasks": 24296, "tests/warehouse": 1828, "warehouse": 2204, "warehouse/samples": 4,
}  # fmt: skip
"""Folder of two levels -> its code lines at most: comments, docstrings and blank lines cost nothing, a line of more
than 120 characters counts as two."""
SLACK = 40
"""A folder that is smaller than its budget by more than that takes a lower budget."""
NO_CODE = {
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING,
    tokenize.ENDMARKER,
}  # fmt: skip
COMMENTS = {".sql": ("--",), ".js": ("//", "/*", "*"), ".css": ("/*", "*"), ".html": ("<!--", "{#")}


def code_lines(path: Path) -> int:
    text = path.read_text(encoding="utf-8")
    lines = text.splitlines()
    if path.suffix == ".py":
        tokens = [each for each in tokenize.generate_tokens(io.StringIO(text).readline) if each.type not in NO_CODE]
        held = {number for each in tokens for number in range(each.start[0], each.end[0] + 1)} - docstrings(text)
        return sum(each.string == ";" for each in tokens) + sum(worth(lines[number - 1]) for number in held)
    return sum(worth(line) for line in lines if line.strip() and not line.strip().startswith(COMMENTS[path.suffix]))


def worth(line: str) -> int:
    return max(1, math.ceil(len(line) / 120))


def docstrings(text: str) -> set[int]:
    texts = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
    ]
    return {number for node in texts for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)}


def size_of_folders() -> Counter[str]:
    sizes: Counter[str] = Counter()
    for file in tracked_files():
        if not file.parts[0].startswith(".") and file.suffix in {".py", *COMMENTS}:
            sizes["/".join(file.parts[: 2 if len(file.parts) > 2 else 1])] += code_lines(ROOT / file)
    return sizes


def test_no_folder_is_larger_than_its_budget() -> None:
    assert {} == {folder: size for folder, size in size_of_folders().items() if size > BUDGETS.get(folder, 0)}


def test_a_folder_that_became_smaller_has_a_lower_budget() -> None:
    sizes = size_of_folders()

    assert {} == {folder: sizes[folder] for folder, budget in BUDGETS.items() if sizes[folder] < budget - SLACK}
