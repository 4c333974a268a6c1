"""The hash of the program, which decides whether a report is written again."""

import importlib
import shutil
import sys
import tomllib
from pathlib import Path

import pytest

from tasks.report.rendering.program import (
    PACKAGES,
    ROOT,
    hash_of_program,
    program_files,
)

FILES = (
    "flows/nightly.py",
    "sql/__init__.py",
    "sql/figures/overview.sql",
    "sql/marts/leaderboards/leaderboard.sql",
    "sql/report/drilldown.sql",
    "sql/schema.yml",
    "tasks/benchmarks/prbench.py",
    "tasks/figures/shown/judges.py",
    "tasks/report/assets/page.js",
    "tasks/report/assets/report.css",
    "tasks/report/templates/base.html",
    "tasks/rules/text/characters.py",
    "warehouse/columns.py",
)


@pytest.fixture
def program(tmp_path) -> Path:
    """A copy of some files of the program."""
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("name", FILES)
def test_a_change_in_any_file_of_the_program_changes_its_hash(program, name):
    before = hash_of_program(program)
    path = program / name
    path.write_text(path.read_text().replace(" ", "  ", 1))
    hash_of_program.cache_clear()

    assert hash_of_program(program) != before


def test_compiled_files_do_not_change_the_hash(program):
    before = hash_of_program(program)
    (program / "flows/__pycache__").mkdir()
    (program / "flows/__pycache__/nightly.cpython-313.pyc").write_bytes(b"compiled")
    hash_of_program.cache_clear()

    assert hash_of_program(program) == before


def test_data_in_a_checkout_does_not_change_the_hash(program):
    before = hash_of_program(program)
    (program / "warehouse/data/parts").mkdir(parents=True)
    (program / "warehouse/data/parts/responses.parquet").write_bytes(b"rows")
    (program / "warehouse/data/report.html").write_bytes(b"page")
    hash_of_program.cache_clear()

    assert hash_of_program(program) == before


def test_the_program_has_all_packages_that_are_installed():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())

    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert sorted(wheel["packages"]) == list(PACKAGES)


def test_the_program_has_everything_that_the_report_imports():
    importlib.import_module("tasks.report.build")
    imported = set()
    for name, module in sys.modules.items():
        # Other tests import benchmarks of their own, from elsewhere.
        if name.partition(".")[0] in PACKAGES and str(ROOT) in str(module.__file__):
            imported.add(Path(module.__file__))

    assert imported <= set(program_files())


def test_the_program_has_every_query():
    assert set((ROOT / "sql").rglob("*.sql")) <= set(program_files())
