"""The folders of `tasks/llm`: each imports only lower ones."""

import ast
from pathlib import Path

import tasks.llm

LLM = Path(tasks.llm.__file__).parent
LEVELS = ({"transport"}, {""}, {"ledger", "limits"}, {"batches", "live"})
"""Lowest first; the empty name stands for the modules beside the folders."""


def folder_of(module: str) -> str:
    """The folder of a module such as `tasks.llm.ledger.merge`."""
    name = module.split(".")[2]
    return name if (LLM / name).is_dir() else ""


def imports() -> set[tuple[str, str]]:
    """Pairs of folders, the first of which imports the second; without the public face, which imports all."""
    found = set()
    for path in LLM.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or path == LLM / "__init__.py":
                continue
            module = node.module or ""
            for used in [f"{module}.{node.names[0].name}"] if module == "tasks.llm" else [module]:
                if used.startswith("tasks.llm."):
                    here = path.relative_to(LLM).parts
                    found.add((here[0] if len(here) > 1 else "", folder_of(used)))
    return found


def test_no_folder_imports_one_beside_or_above_it() -> None:
    level = {folder: number for number, folders in enumerate(LEVELS) for folder in folders}
    assert level.keys() == {folder for pair in imports() for folder in pair}
    assert [] == [pair for pair in imports() if pair[0] != pair[1] and level[pair[0]] <= level[pair[1]]]
