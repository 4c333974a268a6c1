"""The size of the code: a budget of code lines for each folder, which goes up only with a reason."""

import ast
import io
import math
import tokenize
from collections import Counter
from pathlib import Path

from tests.kit import ROOT, tracked_files

BUDGETS = {
    "expectations": 155, "flows": 1587, "flows/cli": 1595, "flows/report_server": 386, "flows/run": 341,
    "flows/server": 0, "sql": 211, "sql/cookbook": 272, "sql/figures": 1454, "sql/intermediate": 1836,
    "sql/marts": 657, "sql/queries": 1014, "sql/report": 283, "sql/warehouse": 77, "tasks": 117,
    "tasks/aggregate": 40, "tasks/alerts": 312, "tasks/analyses": 631, "tasks/benchmarks": 649, "tasks/bundles": 287,
    "tasks/cascade": 147, "tasks/certify": 501, "tasks/check": 117, "tasks/compare": 466, "tasks/config": 532,
    "tasks/console": 126, "tasks/dataset": 315, "tasks/drift": 148, "tasks/exports": 902, "tasks/figures": 2013,
    "tasks/hard_subset": 167, "tasks/imports": 1700, "tasks/judge": 687, "tasks/llm": 2589, "tasks/maintain": 284,
    "tasks/measures": 373, "tasks/plan": 446, "tasks/prompts": 27, "tasks/report": 2422, "tasks/results": 155,
    "tasks/rules": 1914, "tasks/run": 921, "tasks/sample": 53, "tasks/stopping": 203, "tests": 660,
    "tests/benchmarks": 1611, "tests/expectations": 119, "tests/faults": 1275, "tests/flows": 4253,
    "tests/golden": 197, "tests/mutants": 244, "tests/tasks": 17360, "tests/warehouse": 1155, "warehouse": 1517,
    "warehouse/samples": 4,
}  # fmt: skip
"""Folder of two levels -> its maximum of code lines: comments, docstrings and blank lines do not count; a line of more
than 120 characters counts as two."""
SLACK = 40
"""If a folder is smaller than its budget by more lines than this, its budget must be lowered."""
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
