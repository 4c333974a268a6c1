"""The size of the code: a budget of code lines for each folder, which goes up only with a reason."""

import ast
import io
import math
import tokenize
from collections import Counter
from pathlib import Path

from tests.kit import ROOT, tracked_files

BUDGETS = {
    "expectations": 175, "flows": 1679, "flows/cli": 1995, "flows/report_server": 496, "flows/run": 429,
    "flows/server": 314, "sql": 235, "sql/cookbook": 283, "sql/figures": 1705, "sql/intermediate": 2243,
    "sql/marts": 804, "sql/queries": 1365, "sql/report": 372, "sql/warehouse": 90, "tasks": 157, "tasks/aggregate":
    40, "tasks/alerts": 377, "tasks/analyses": 719, "tasks/benchmarks": 687, "tasks/bundles": 326, "tasks/cascade":
    168, "tasks/certify": 578, "tasks/check": 136, "tasks/compare": 647, "tasks/config": 566, "tasks/console": 136,
    "tasks/dataset": 335, "tasks/drift": 201, "tasks/exports": 1152, "tasks/figures": 2654, "tasks/hard_subset":
    194, "tasks/imports": 2016, "tasks/judge": 885, "tasks/llm": 3076, "tasks/maintain": 333, "tasks/measures": 435,
    "tasks/plan": 528, "tasks/prompts": 31, "tasks/report": 2839, "tasks/results": 177, "tasks/rules": 2310,
    "tasks/run": 1158, "tasks/sample": 68, "tasks/stopping": 189, "tests": 528, "tests/benchmarks": 1611,
    "tests/expectations": 119, "tests/faults": 1280, "tests/flows": 4374, "tests/golden": 191, "tests/mutants": 246,
    "tests/tasks": 17469, "tests/warehouse": 1179, "warehouse": 2035, "warehouse/samples": 4,
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


def test_no_folder_is_larger_than_its_budget_and_one_that_became_smaller_has_a_lower_one() -> None:
    sizes: Counter[str] = Counter()
    for file in tracked_files():
        if not file.parts[0].startswith(".") and file.suffix in {".py", *COMMENTS}:
            sizes["/".join(file.parts[: 2 if len(file.parts) > 2 else 1])] += code_lines(ROOT / file)

    assert {} == {folder: size for folder, size in sizes.items() if size > BUDGETS.get(folder, 0)}
    assert {} == {folder: sizes[folder] for folder, budget in BUDGETS.items() if sizes[folder] < budget - SLACK}
