"""How much code there is to read, and how dense it is: numbers that only go down, except in a
commit that says why.
"""

import ast
import io
import re
import tokenize
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tests.kit import ROOT, tracked_files

TOKENS = {
    "expectations": 1619,
    "flows": 17812,
    "flows/cli": 21758,
    "flows/report_server": 4535,
    "flows/run": 4160,
    "sql": 2209,
    "sql/cookbook": 3164,
    "sql/figures": 11250,
    "sql/intermediate": 16334,
    "sql/marts": 6052,
    "sql/queries": 9819,
    "sql/report": 2108,
    "sql/warehouse": 779,
    "tasks": 1592,
    "tasks/aggregate": 463,
    "tasks/alerts": 6450,
    "tasks/analyses": 8030,
    "tasks/benchmarks": 6510,
    "tasks/bundles": 2846,
    "tasks/cascade": 1807,
    "tasks/certify": 6086,
    "tasks/check": 1275,
    "tasks/compare": 7824,
    "tasks/config": 5589,
    "tasks/console": 2820,
    "tasks/dataset": 3279,
    "tasks/drift": 1945,
    "tasks/exports": 13345,
    "tasks/figures": 17029,
    "tasks/hard_subset": 2115,
    "tasks/imports": 23715,
    "tasks/judge": 8525,
    "tasks/llm": 37677,
    "tasks/maintain": 4475,
    "tasks/measures": 5027,
    "tasks/plan": 5756,
    "tasks/prompts": 295,
    "tasks/report": 39947,
    "tasks/results": 1750,
    "tasks/rules": 26762,
    "tasks/run": 13200,
    "tasks/sample": 679,
    "tasks/stopping": 2653,
    "tests": 8005,
    "tests/benchmarks": 21191,
    "tests/expectations": 1662,
    "tests/faults": 13589,
    "tests/flows": 63607,
    "tests/golden": 2469,
    "tests/mutants": 2760,
    "tests/tasks": 284922,
    "tests/warehouse": 12867,
    "warehouse": 14883,
    "warehouse/samples": 26,
}
"""Folder of two levels -> its maximum of tokens. Comments, docstrings and line breaks are no
tokens.
"""
TOKEN_SLACK = 300
"""A folder that is smaller than its maximum by more tokens than this gets a lower one."""

DENSE_CODE = {
    "assignment within an expression": 55,
    "comprehension within another": 118,
    "line over 100 characters": 21,
    "several values in one assignment": 2,
}
"""What makes the source hard to read at first sight -> its maximum of constructs, without tests."""
DENSE_SLACK = 10

LAYOUT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
WORD = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|\w+|[^\s\w]")
"""A token of SQL, of the report's scripts, styles and pages."""
COMMENT_STARTS = {
    ".sql": ("--",),
    ".js": ("//", "/*", "*"),
    ".css": ("/*", "*"),
    ".html": ("<!--", "{#"),
}


def code_files() -> Iterator[Path]:
    for file in tracked_files():
        if not file.parts[0].startswith(".") and file.suffix in {".py", *COMMENT_STARTS}:
            yield file


def folder_of(file: Path) -> str:
    depth = 2 if len(file.parts) > 2 else 1
    return "/".join(file.parts[:depth])


def docstring_lines(tree: ast.AST) -> set[int]:
    lines: set[int] = set()
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            lines.update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return lines


def python_tokens(text: str) -> Counter[int]:
    """The number of tokens of each line of code."""
    docstrings = docstring_lines(ast.parse(text))
    tokens: Counter[int] = Counter()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in LAYOUT and token.start[0] not in docstrings:
            tokens[token.start[0]] += 1
    return tokens


def n_tokens(file: Path) -> int:
    text = (ROOT / file).read_text(encoding="utf-8")
    if file.suffix == ".py":
        return python_tokens(text).total()
    lines = [
        line
        for line in text.splitlines()
        if not line.strip().startswith(COMMENT_STARTS[file.suffix])
    ]
    return len(WORD.findall("\n".join(lines)))


def dense_code(text: str) -> Iterator[str]:
    lines = text.splitlines()
    yield from (
        "formatting switched off" for line in lines if "fmt: skip" in line or "fmt: off" in line
    )
    yield from (
        "line over 100 characters" for number in python_tokens(text) if len(lines[number - 1]) > 100
    )
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.NamedExpr):
            yield "assignment within an expression"
        elif isinstance(node, ast.Assign):
            if isinstance(node.targets[0], ast.Tuple) and isinstance(node.value, ast.Tuple):
                yield "several values in one assignment"
        elif isinstance(node, COMPREHENSIONS) and holds_comprehension(node):
            yield "comprehension within another"


def holds_comprehension(node: ast.AST) -> bool:
    comprehensions = [part for part in ast.walk(node) if isinstance(part, COMPREHENSIONS)]
    return len(comprehensions) > 1


def test_no_folder_has_more_code_than_its_maximum_and_a_smaller_one_has_a_lower_maximum() -> None:
    sizes: Counter[str] = Counter()
    for file in code_files():
        sizes[folder_of(file)] += n_tokens(file)

    assert {folder: size for folder, size in sizes.items() if size > TOKENS.get(folder, 0)} == {}
    assert {
        folder: sizes[folder]
        for folder, most in TOKENS.items()
        if sizes[folder] < most - TOKEN_SLACK
    } == {}


def test_the_source_has_no_more_dense_places_than_its_maximum_and_fewer_lower_it() -> None:
    constructs: Counter[str] = Counter()
    for file in code_files():
        if file.suffix == ".py" and file.parts[0] != "tests":
            constructs.update(dense_code((ROOT / file).read_text(encoding="utf-8")))

    assert {
        what: count for what, count in constructs.items() if count > DENSE_CODE.get(what, 0)
    } == {}
    assert {
        what: constructs[what]
        for what, most in DENSE_CODE.items()
        if constructs[what] < most - DENSE_SLACK
    } == {}
