"""The architecture: imports go downwards only, and everything is where the documents say."""

import ast
import importlib.metadata
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import sql
from tasks.benchmarks import benchmark_names, load_benchmark
from tasks.check import expectations_of
from tests.kit import ROOT, tracked_files

PACKAGES = ("flows", "tasks", "sql", "expectations", "warehouse")
TASKS_LEVELS = (
    {"rules"},
    {"benchmarks", "prompts", "console"},
    {"config"},
    {"dataset", "llm", "stopping"},
    {"bundles", "measures", "run"},
    {"check", "compare"},
    {
        "ingest",
        "assemble",
        "sample",
        "judge",
        "aggregate",
        "hard_subset",
        "analyses",
        "cascade",
    },
    {"drift", "alerts", "imports", "maintain", "plan"},
    {"figures"},
    {"report"},
    {"exports"},
    {"certify", "results"},
)
"""The folders of `tasks/`, and stages of one module, lowest first: each uses only lower ones.

The stages share a level: none imports another.
"""
ABOVE_CALLS = [f"tasks.{folder}" for level in TASKS_LEVELS[4:] for folder in level]
ITSELF = ""
"""The modules of a part that are in none of its folders."""

FLOWS_LEVELS = (
    {"run", "server"},
    {"recorded", "execution", "report"},
    {"ui"},
    {"stage_runs"},
    {"stages"},
    {"analyses", "pipeline"},
    {"work"},
    {"nightly"},
    {"deployments", "report_server"},
    {"serving"},
    {"cli"},
)
"""The modules and folders of `flows/`, lowest first."""

LEVELS: dict[str, tuple[set[str], ...]] = {
    "flows": FLOWS_LEVELS,
    "tasks": (*TASKS_LEVELS, {ITSELF}),
    "tasks.llm": ({ITSELF}, {"ledger"}, {"calls"}, {"senders"}),
    "tasks.report": ({"rendering"}, {"drilldown"}, {ITSELF}),
}
"""Part -> its folders, lowest first: each uses only lower ones."""

ONLY: dict[str, set[str]] = {
    "tasks.rules": {"tasks.rules", "numpy", "scipy"},
    "tasks.benchmarks": {"tasks.benchmarks", "tasks.rules"},
    "tasks.prompts": {"tasks.prompts", "tasks.rules"},
    "warehouse": {"warehouse", "sql", "duckdb", "numpy", "polars", "pyarrow"},
    "sql": {"sql", "duckdb", "yaml"},  # DuckDB splits queries into tokens
    "expectations": {"expectations", "great_expectations"},
}
"""Part -> what it may import besides the standard library."""

NEVER: dict[str, set[str]] = {
    "tasks.benchmarks": {"socket", "urllib", "http", "asyncio"},
    "tasks.llm": {"duckdb", "prefect", "warehouse", "expectations", "sql", "flows", *ABOVE_CALLS},
    "tasks": {"flows", "great_expectations"},
    "flows": {"litellm", "great_expectations", "expectations"},
}
"""Part -> what it may not import."""

ONLY_IN = {
    "litellm": "tasks.llm",
    "ray": "tasks.llm.senders",
    "fsspec": "tasks.bundles.stores",
    "great_expectations": "expectations",
    "flows": "flows",
    "rich.console": "tasks.console.printing",
}
"""Library or part -> the only part that may import it."""

DEFAULT_BENCHMARK = "prbench"
"""Benchmark with the same name as the command."""
ALWAYS_THERE = {
    "pyproject.toml",
    "README.md",
    "flows",
    "tasks",
    "sql",
    "expectations",
    "tests",
    "warehouse",
}
ALSO_ALLOWED = {"LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "prbench.example.yaml"}


def module_name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def imports_of(path: Path) -> set[str]:
    """Every module that a file imports, at its top or inside a function, with `from a import b` as
    `a.b`.
    """
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names |= {f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names}
    return names


@cache
def modules() -> dict[str, set[str]]:
    """Every module, with its imports."""
    return {
        module_name(path): imports_of(path)
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
    }


def is_in(name: str, part: str) -> bool:
    return name == part or name.startswith(f"{part}.")


def modules_in(part: str) -> Iterator[tuple[str, str]]:
    """(module, imported name) of every import in a part."""
    return (
        (name, used) for name, imports in modules().items() if is_in(name, part) for used in imports
    )


def is_standard(name: str) -> bool:
    # Our own packages take precedence over the standard library.
    return name.partition(".")[0] in sys.stdlib_module_names


def test_no_part_imports_what_it_must_not() -> None:
    wrong = [
        f"{name} imports {used}"
        for name, imports in modules().items()
        for used in imports
        if any(is_in(name, part) and any(is_in(used, bad) for bad in NEVER[part]) for part in NEVER)
        or any(is_in(used, library) and not is_in(name, ONLY_IN[library]) for library in ONLY_IN)
        or (
            not is_standard(used)
            and any(
                is_in(name, part) and not any(is_in(used, allowed) for allowed in ONLY[part])
                for part in ONLY
            )
        )
    ]

    assert set(PACKAGES) <= {name.split(".")[0] for name in modules()}
    assert wrong == []


def folder_in(part: str, name: str) -> str:
    """The folder or one-module stage of a part that a module, or a name imported from it, belongs
    to.
    """
    folder = name.removeprefix(f"{part}.").partition(".")[0]
    return folder if any(folder in level for level in LEVELS[part]) else ITSELF


@pytest.mark.parametrize("part", LEVELS)
def test_every_folder_has_a_level(part: str) -> None:
    root = ROOT / part.replace(".", "/")
    known = set().union(*LEVELS[part])
    folders = {path.parent.name for path in root.glob("*/__init__.py")}
    modules = {path.stem for path in root.glob("*.py")} - {"__init__"}

    assert folders <= known
    assert known - {ITSELF} <= folders | modules
    if ITSELF not in known:
        assert modules <= known


@pytest.mark.parametrize("part", LEVELS)
def test_no_folder_imports_one_beside_or_above_it(part: str) -> None:
    level = {folder: number for number, folders in enumerate(LEVELS[part]) for folder in folders}
    wrong = [
        f"{name} imports {used}"
        for name, used in modules_in(part)
        # A part's `__init__` may import from everywhere in the part, to export it.
        if name != part and is_in(used, part)
        for here, there in [(folder_in(part, name), folder_in(part, used))]
        if here != there and level[here] <= level[there]
    ]

    assert wrong == []


def test_nothing_but_its_own_module_and_templates_names_a_benchmark_of_the_family() -> None:
    names = [name for name in benchmark_names() if name != DEFAULT_BENCHMARK]
    assert len(names) > 1
    for name in names:
        own = {
            ROOT / "tasks" / "benchmarks" / f"{name}.py",
            *(ROOT / "tasks" / "prompts").glob(f"{name}_*.txt"),
        }
        naming = [
            path.relative_to(ROOT).as_posix()
            for package in PACKAGES
            for path in (ROOT / package).rglob("*")
            if path.suffix in {".py", ".sql", ".yml", ".html", ".js", ".css", ".txt"}
            and path not in own
            and name in path.read_text(encoding="utf-8").lower()
        ]
        assert naming == [], name


def test_no_import_is_relative() -> None:
    assert [
        f"{name} imports {used}"
        for name, imports in modules().items()
        for used in imports
        if used[0] == "."
    ] == []


def test_no_two_modules_import_each_other_at_their_top() -> None:
    circles = [
        (name, other)
        for name, imports in modules().items()
        for other in modules()
        if name < other
        and any(is_in(used, other) for used in imports)
        and any(is_in(used, name) and not is_in(used, other) for used in modules()[other])
        and not is_in(other, name)
    ]

    assert circles == []


def test_no_flow_is_named_like_something_that_can_be_imported() -> None:
    # Prefect's loader puts `flows/` first on the path, so such a name would hide the other module.
    taken = {
        *PACKAGES,
        "tests",
        *importlib.metadata.packages_distributions(),
        *sys.stdlib_module_names,
    }
    names = {
        path.stem for path in (ROOT / "flows").iterdir() if path.suffix == ".py" or path.is_dir()
    }

    assert names & taken == set()


def test_the_top_level_holds_exactly_what_it_should() -> None:
    visible = {file.parts[0] for file in tracked_files() if not file.parts[0].startswith(".")}

    assert visible >= ALWAYS_THERE
    assert visible <= ALWAYS_THERE | ALSO_ALLOWED


def test_every_folder_with_python_is_a_package() -> None:
    folders = {
        file.parent
        for file in tracked_files()
        if file.suffix == ".py" and not file.parts[0].startswith(".")
    }
    assert [folder for folder in folders if not (ROOT / folder / "__init__.py").is_file()] == []


def test_every_table_that_an_expectation_looks_at_is_a_query_of_its_name() -> None:
    tables = {
        each.table for name in benchmark_names() for each in expectations_of(load_benchmark(name))
    }

    assert sorted(sql.queries("checks")) == sorted(tables)


def test_no_private_name_of_a_module_is_imported() -> None:
    wrong = [
        f"{name} imports {used}"
        for name, imports in modules().items()
        for used in imports
        if used.partition(".")[0] in PACKAGES
        and re.search(r"\._[a-z][^.]*$", used)
        and used not in modules()
    ]

    assert wrong == []


PATHS = r"`((?:\.\./)*\w[\w./-]+/[\w.-]+\.(?:py|sql|yml)|(?:flows|sql|tasks|tests)/[\w./-]+/)`"


def test_documents_and_docstrings_name_only_files_and_folders_that_exist() -> None:
    files = tracked_files()
    known = {str(path) for file in files for path in (file, *file.parents)}
    gone = []
    for file in files:
        if file.suffix not in {".md", ".py", ".sql", ".yml"}:
            continue
        text = (ROOT / file).read_text(encoding="utf-8")
        named = re.findall(PATHS, text) if file.name != "CHANGELOG.md" else []
        gone += [f"{file}: {name}" for name in named if not is_known(name.rstrip("/"), known)]
        links = (
            re.findall(r"\]\((?!https?:|#)([^)#\s]+)[^)]*\)", text) if file.suffix == ".md" else []
        )
        gone += [f"{file}: {link}" for link in links if not (ROOT / file.parent / link).exists()]

    assert gone == []


def is_known(name: str, known: set[str]) -> bool:
    """Return whether the path of a file or folder in the checkout is this one or ends with it."""
    tail = re.sub(r"^(\.\./|\./)+", "", name)
    return any(path == tail or path.endswith(f"/{tail}") for path in known)
