"""The architecture: imports go downwards only, and everything is where the documents say."""

import ast
import importlib.metadata
import re
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import combinations
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
    {"drift", "succession", "alerts", "imports", "maintain"},
    {"plan"},
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
    "tasks.llm": (
        {ITSELF},
        {"ledger"},
        {"calls"},
        {"senders"},
    ),
    "tasks.report": (
        {"rendering"},
        {"drilldown"},
        {ITSELF},
    ),
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
    "tasks.llm": {
        "duckdb",
        "prefect",
        "warehouse",
        "expectations",
        "sql",
        "flows",
        *ABOVE_CALLS,
    },
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
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def imports_of(path: Path) -> set[str]:
    """Every module that a file imports, also in functions, with `from a import b` as `a.b`."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            source = "." * node.level + (node.module or "")
            names |= {f"{source}.{alias.name}" for alias in node.names}
    return names


@cache
def modules() -> dict[str, set[str]]:
    """Every module, with its imports."""
    imports = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            imports[module_name(path)] = imports_of(path)
    return imports


def all_imports() -> Iterator[tuple[str, str]]:
    """(module, imported name) of every import."""
    for module, imports in modules().items():
        for imported_name in imports:
            yield module, imported_name


def is_in(name: str, part: str) -> bool:
    return name == part or name.startswith(f"{part}.")


def is_in_any(name: str, parts: Iterable[str]) -> bool:
    return any(is_in(name, part) for part in parts)


def is_standard(name: str) -> bool:
    # Our own packages take precedence over the standard library.
    return name.partition(".")[0] in sys.stdlib_module_names


def test_all_packages_have_modules():
    assert {name.split(".")[0] for name in modules()} == set(PACKAGES)


@pytest.mark.parametrize("part", NEVER)
def test_a_part_does_not_import_what_it_never_may(part):
    wrong = []
    for module, imported_name in all_imports():
        if is_in(module, part) and is_in_any(imported_name, NEVER[part]):
            wrong.append(f"{module} imports {imported_name}")

    assert wrong == []


@pytest.mark.parametrize("part", ONLY)
def test_a_part_imports_only_what_it_may(part):
    wrong = []
    for module, imported_name in all_imports():
        is_allowed = is_standard(imported_name) or is_in_any(
            imported_name, ONLY[part]
        )
        if is_in(module, part) and not is_allowed:
            wrong.append(f"{module} imports {imported_name}")

    assert wrong == []


@pytest.mark.parametrize("library", ONLY_IN)
def test_a_library_is_imported_in_its_part_only(library):
    wrong = []
    for module, imported_name in all_imports():
        if is_in(imported_name, library) and not is_in(module, ONLY_IN[library]):
            wrong.append(f"{module} imports {imported_name}")

    assert wrong == []


def folder_in(part: str, name: str) -> str:
    """The folder or module of a part that a module, or a name imported from it, belongs to."""
    folder = name.removeprefix(f"{part}.").partition(".")[0]
    return folder if any(folder in level for level in LEVELS[part]) else ITSELF


@pytest.mark.parametrize("part", LEVELS)
def test_every_folder_has_a_level(part):
    root = ROOT / part.replace(".", "/")
    names = set().union(*LEVELS[part])
    folders = {path.parent.name for path in root.glob("*/__init__.py")}
    modules = {path.stem for path in root.glob("*.py")} - {"__init__"}

    assert folders <= names
    assert names - {ITSELF} <= folders | modules
    if ITSELF not in names:
        assert modules <= names


@pytest.mark.parametrize("part", LEVELS)
def test_no_folder_imports_one_beside_or_above_it(part):
    level_of = {}
    for level, folders in enumerate(LEVELS[part]):
        level_of |= dict.fromkeys(folders, level)

    wrong = []
    for module, imported_name in all_imports():
        # A part's `__init__` may import from everywhere in the part, to export it.
        if (
            module == part
            or not is_in(module, part)
            or not is_in(imported_name, part)
        ):
            continue
        folder = folder_in(part, module)
        imported_folder = folder_in(part, imported_name)
        if (
            folder != imported_folder
            and level_of[folder] <= level_of[imported_folder]
        ):
            wrong.append(f"{module} imports {imported_name}")

    assert wrong == []


OTHER_BENCHMARKS = [name for name in benchmark_names() if name != DEFAULT_BENCHMARK]
TEXT_SUFFIXES = {".py", ".sql", ".yml", ".html", ".js", ".css", ".txt"}


def program_texts() -> Iterator[tuple[Path, str]]:
    """Every text file of the packages below the checkout, with its text."""
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*"):
            if path.suffix in TEXT_SUFFIXES:
                yield path.relative_to(ROOT), path.read_text()


def test_there_are_several_benchmarks_of_the_family():
    assert len(OTHER_BENCHMARKS) > 1


@pytest.mark.parametrize("name", OTHER_BENCHMARKS)
def test_nothing_but_its_own_module_and_templates_names_a_benchmark_of_the_family(
    name,
):
    files = [path for path, text in program_texts() if name in text.lower()]
    foreign_files = []
    for path in files:
        is_template = path.match(f"tasks/prompts/{name}_*.txt")
        if path != Path(f"tasks/benchmarks/{name}.py") and not is_template:
            foreign_files.append(path)

    assert foreign_files == []


def test_no_import_is_relative():
    relative_imports = [names for names in all_imports() if names[1].startswith(".")]

    assert relative_imports == []


def imports_something_of(module: str, imported_module: str) -> bool:
    """Return whether a module imports something of another one, and not only of a module inside
    itself.
    """
    names = [name for name in modules()[module] if is_in(name, imported_module)]
    return not all(is_in(name, module) for name in names)


def test_no_two_modules_import_each_other():
    circles = []
    for module, other_module in combinations(sorted(modules()), 2):
        is_parent = is_in(other_module, module)
        is_user = imports_something_of(module, other_module)
        if is_user and not is_parent and imports_something_of(other_module, module):
            circles.append((module, other_module))

    assert circles == []


def test_no_flow_is_named_like_something_that_can_be_imported():
    # Prefect's loader puts `flows/` first on the path, so such a name would hide the other module.
    taken = {
        *PACKAGES,
        "tests",
        *importlib.metadata.packages_distributions(),
        *sys.stdlib_module_names,
    }
    names = {
        path.stem
        for path in (ROOT / "flows").iterdir()
        if path.suffix == ".py" or path.is_dir()
    }

    assert names & taken == set()


def test_the_top_level_holds_exactly_what_it_should():
    visible = {
        file.parts[0] for file in tracked_files() if not file.parts[0].startswith(".")
    }

    assert visible >= ALWAYS_THERE
    assert visible <= ALWAYS_THERE | ALSO_ALLOWED


def test_every_folder_with_python_is_a_package():
    folders = set()
    for file in tracked_files():
        if file.suffix == ".py" and not file.parts[0].startswith("."):
            folders.add(file.parent)

    no_packages = [
        folder for folder in folders if not (ROOT / folder / "__init__.py").is_file()
    ]

    assert no_packages == []


def test_every_table_that_an_expectation_looks_at_is_a_query_of_its_name():
    tables = set()
    for name in benchmark_names():
        for expectation in expectations_of(load_benchmark(name)):
            tables.add(expectation.table)

    assert sorted(sql.queries("checks")) == sorted(tables)


def test_no_private_name_of_a_module_is_imported():
    wrong = []
    for module, name in all_imports():
        is_ours = name.partition(".")[0] in PACKAGES
        is_private = re.search(r"\._[a-z][^.]*$", name) is not None
        if is_ours and is_private and name not in modules():
            wrong.append(f"{module} imports {name}")

    assert wrong == []


PATHS = r"`((?:\.\./)*\w[\w./-]+/[\w.-]+\.(?:py|sql|yml)|(?:flows|sql|tasks|tests)/[\w./-]+/)`"


def test_documents_and_docstrings_name_only_files_and_folders_that_exist():
    files = tracked_files()
    paths = set()
    for file in files:
        paths.update(str(path) for path in (file, *file.parents))

    dead_names = []
    for file in files:
        is_text = file.suffix in {".md", ".py", ".sql", ".yml"}
        if not is_text or file.name == "CHANGELOG.md":
            continue
        for name in re.findall(PATHS, (ROOT / file).read_text()):
            if not is_path_in(paths, name.rstrip("/")):
                dead_names.append(f"{file}: {name}")

    assert dead_names == []


def is_path_in(paths: set[str], name: str) -> bool:
    """Return whether the path of a file or folder in the checkout is this one or ends with it."""
    tail = re.sub(r"^(\.\./|\./)+", "", name)
    return any(path == tail or path.endswith(f"/{tail}") for path in paths)


def test_documents_link_only_to_files_that_exist():
    dead_links = []
    for file in tracked_files():
        if file.suffix == ".md":
            text = (ROOT / file).read_text()
            for link in re.findall(r"\]\((?!https?:|#)([^)#\s]+)[^)]*\)", text):
                if not (ROOT / file.parent / link).exists():
                    dead_links.append(f"{file}: {link}")

    assert dead_links == []
