"""The size of the code: a budget of code lines for each folder, which goes up only with a reason."""

import ast
import io
import math
import tokenize
from collections import Counter
from pathlib import Path

from tests.kit import ROOT, tracked_files

BUDGETS = {
    "expectations": 168, "flows": 1476, "flows/cli": 1821, "flows/report_server": 487, "flows/run": 390,
    "flows/server": 294, "sql": 235, "sql/cookbook": 283, "sql/figures": 1705, "sql/intermediate": 2243,
    "sql/marts": 804, "sql/queries": 1360, "sql/report": 372, "sql/warehouse": 90, "tasks": 130,
    "tasks/aggregate": 40, "tasks/alerts": 353, "tasks/analyses": 700, "tasks/benchmarks": 679, "tasks/bundles": 320,
    "tasks/cascade": 168, "tasks/certify": 540, "tasks/check": 132, "tasks/compare": 647, "tasks/config": 565,
    "tasks/console": 130, "tasks/dataset": 334, "tasks/drift": 195, "tasks/exports": 1064, "tasks/figures": 2654,
    "tasks/hard_subset": 194, "tasks/imports": 1940, "tasks/judge": 796, "tasks/llm": 2967, "tasks/maintain": 323,
    "tasks/measures": 442, "tasks/plan": 519, "tasks/prompts": 31, "tasks/report": 2836, "tasks/results": 177,
    "tasks/rules": 2315, "tasks/run": 1105, "tasks/sample": 57, "tasks/stopping": 186, "tests": 640,
    "tests/benchmarks": 1611, "tests/expectations": 119, "tests/faults": 1275, "tests/flows": 4288,
    "tests/golden": 197, "tests/mutants": 246, "tests/tasks": 17352, "tests/warehouse": 1179, "warehouse": 1973,
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
