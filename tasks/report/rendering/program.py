"""A hash of this program, which changes with anything that pages and data files are made of."""

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

ROOT = Path(__file__).parents[3]
"""The folder of all packages."""
PACKAGES = ("expectations", "flows", "sql", "tasks", "warehouse")
_LIBRARIES = ("duckdb", "isal", "jinja2", "nh3", "pyromark")
"""The libraries whose version may change the content or the form of a page or data file."""


@cache
def hash_of_program(root: Path = ROOT) -> str:
    """Return a hash of the program's files, and of the versions of `_LIBRARIES`."""
    program_hash = hashlib.sha256()
    for path in program_files(root):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        program_hash.update(f"{path.relative_to(root).as_posix()} {content}\n".encode())
    for library in _LIBRARIES:
        program_hash.update(f"{library} {version(library)}\n".encode())
    return program_hash.hexdigest()


def program_files(root: Path = ROOT) -> Iterator[Path]:
    """Yield all files of the packages except compiled ones.

    All files count, since a list of those that a report needs would miss a new one. Of
    `warehouse`, whose folder may also contain data, only the modules are yielded.
    """
    for package in PACKAGES:
        patterns = ("*.py", "*/*.py") if package == "warehouse" else ("**/*",)
        for pattern in patterns:
            for path in sorted((root / package).glob(pattern)):
                if path.is_file() and path.suffix != ".pyc":
                    yield path
