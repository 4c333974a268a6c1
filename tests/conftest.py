"""Hooks and fixtures of all tests."""

import atexit
import gc
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Generator, Iterator
from pathlib import Path

import duckdb
import pytest
from hypothesis import settings

# No deadline: the time of an example on a shared machine says nothing about the property. The same
# examples every time, so that a passing test passes again; `HYPOTHESIS_PROFILE=search` looks for
# new ones.
settings.register_profile(
    "shared-machine",
    deadline=None,
    derandomize=True,
    max_examples=30,
)
settings.register_profile("search", deadline=None, max_examples=1_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "shared-machine"))

# As in commands: the default takes a sixth of the time of imports.
gc.set_threshold(50_000)

# Small queries gain nothing from a second thread, but processes of tests that share two cores wait
# for it.
_connect = duckdb.connect
duckdb.connect = lambda *args, config=None, **kwargs: _connect(
    *args,
    config={"threads": 1} | (config or {}),
    **kwargs,
)

# Processes that a shell starts in the background ignore Ctrl-C, but some tests send it to processes
# that they start.
if (
    threading.current_thread() is threading.main_thread()
    and signal.getsignal(signal.SIGINT) is signal.SIG_IGN
):
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests start dozens of processes; without stored bytecode, each would spend 8 s on compiling its
# libraries.
if sys.dont_write_bytecode and not Path(str(pytest.__spec__.cached)).exists():
    folder = tempfile.mkdtemp(prefix="prbench-bytecode-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = folder
    sys.dont_write_bytecode = False


pytest_plugins = ["tests.worlds"]


def pytest_collection_finish():
    """Let the collector of garbage pass over modules and collected tests, which all stay."""
    gc.freeze()


# No Prefect server records the runs of these tests; tests about Prefect enable it (`recording`).
os.environ["PRBENCH_PREFECT"] = "off"

_FIRST = {
    f"test_{name}.py"
    for name in (
        "golden",
        "recorded_runs",
        "pipeline",
        "groups",
        "nights",
        "provider_batches",
        "stopping",
        "serve",
        "pages",
        "pages_in_browser",
        "cascades",
        "kills",
        "overview",
        "damage",
        "increments",
        "report_news",
        "drift",
        "label_forecast",
        "removal",
        "damaged_parts",
        "installed",
        "work",
        "secrets",
        "readme",
    )
}
"""Files that take minutes: they start first, so that no process still runs one of them at the end.
"""
_SLOW = {"browser", "prefect_api", "world_job", "hostile_job", "research_job"}
"""Fixtures with a browser, a Prefect server, or a made-up warehouse for reports."""


def pytest_collection_modifyitems(items: list[pytest.Item]):
    """Sort the files, and mark as slow what needs a browser, a server or a large warehouse."""
    items.sort(key=lambda item: item.path.name not in _FIRST)
    for item in items:
        if _SLOW & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def _no_earlier_damage_notices() -> Iterator[None]:
    """Forget the notices of a test at its end: commands of later ones must not report damage that
    it found.
    """
    yield
    if "warehouse.files" in sys.modules:
        sys.modules["warehouse.files"].pop_notices()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[
    None,
    pytest.TestReport,
    pytest.TestReport,
]:
    """Escape lone surrogates in captured output, which processes of tests cannot send to each
    other.
    """
    report = yield
    report.sections = [
        (title, text.encode(errors="backslashreplace").decode())
        for title, text in report.sections
    ]
    return report
