"""The benchmarks, one module each; a module is loaded when its benchmark is used.

An environment variable can name folders with further benchmarks (see `guide.md`).
"""

import os
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

from tasks.benchmarks.base import Benchmark
from tasks.rules.errors import UsageError, from_home
from tasks.rules.text.characters import hint_on, one_line

FOLDER = Path(__file__).parent
FOLDERS_VARIABLE = "PRBENCH_BENCHMARKS"
"""The environment variable that names folders of further benchmarks; all processes of a run need
it.
"""


def benchmark_names() -> list[str]:
    """Return the names of all benchmarks, sorted.

    Raises:
        UsageError: a folder of further benchmarks does not exist, or contains a name that is taken.
    """
    return sorted(_folders())


def folder_of(name: str) -> Path:
    """Return the folder that holds a benchmark's module.

    Raises:
        UsageError: no benchmark has this name.
    """
    folders = _folders()
    if name not in folders:
        raise UsageError(f"benchmark: there is no {name!r}{hint_on(name, folders)}")
    return folders[name]


def load_benchmark(name: str) -> Benchmark:
    """Return the benchmark of that name.

    Raises:
        UsageError: no benchmark has this name, or its module cannot be used.
    """
    folder = folder_of(name)
    if str(folder) not in __path__:
        __path__.append(str(folder))
    try:
        benchmark = import_module(f"{__name__}.{name}").BENCHMARK
    except Exception as error:
        cause = one_line(f"{type(error).__name__}: {error}")
        raise UsageError(f"{folder / name}.py: cannot be loaded ({cause})") from error
    if not isinstance(benchmark, Benchmark) or benchmark.name != name:
        raise UsageError(f"{folder / name}.py: BENCHMARK is not a Benchmark with the name {name!r}")

    templates = {
        grading: _located(folder, template) for grading, template in benchmark.gradings.items()
    }
    evidence_template = benchmark.evidence_template
    if evidence_template is not None:
        evidence_template = _located(folder, evidence_template)
    return replace(benchmark, gradings=templates, evidence_template=evidence_template)


def _located(folder: Path, template: str) -> str:
    """Return the path of a template next to the module, else its name, as a shipped template."""
    return str(folder / template) if (folder / f"{template}.txt").is_file() else template


def _folders() -> dict[str, Path]:
    folders = {}
    configured = os.environ.get(FOLDERS_VARIABLE, "").split(os.pathsep)
    for path in (str(FOLDER), *filter(None, configured)):
        folder = from_home(path, FOLDERS_VARIABLE)
        # Absolute, because a process that a schedule starts has another working directory.
        if not folder.is_absolute() or not folder.is_dir():
            raise UsageError(
                f"{FOLDERS_VARIABLE}: {path} is not the absolute path of a folder; correct it, or"
                " unset it"
            )
        for module in iter_modules([str(folder)]):
            name = module.name
            if name in folders:
                raise UsageError(
                    f"{folder / name}.py: there is a {name} already; give it another name"
                )
            if not name.startswith("_"):
                folders[name] = folder
    # The other modules of this folder.
    del folders["base"]
    del folders["rows"]
    return folders
