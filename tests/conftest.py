"""Hooks and fixtures of all tests."""

import atexit
import os
import shutil
import signal
import sys
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import settings

# A law holds or does not; how long an example takes on a shared machine says nothing about it. The same examples every
# time, so that what passes once passes again; `HYPOTHESIS_PROFILE=search` looks for new ones.
settings.register_profile("shared-machine", deadline=None, derandomize=True, max_examples=50)
settings.register_profile("search", deadline=None, max_examples=1_000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "shared-machine"))

# A shell that starts the tests in the background has them, and all that they start, ignore Ctrl-C; some tests type it.
if threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Tests start some dozens of processes, each of which would compile its libraries for 8 s where bytecode is not kept.
if sys.dont_write_bytecode and not Path(str(pytest.__spec__.cached)).exists():
    folder = tempfile.mkdtemp(prefix="prbench-bytecode-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix = folder
    sys.dont_write_bytecode = False


pytest_plugins = ["tests.worlds"]

# Runs of these tests are recorded by no Prefect server; those about Prefect switch it on (`recording`).
os.environ["PRBENCH_PREFECT"] = "off"

_FIRST = ("test_golden.py", "test_provider_batches.py", "test_pipeline.py", "test_cascades.py", "test_recorded_runs.py")
"""Files that take minutes: they begin first, so that no process is left with one of them at the end."""
_SLOW = {"browser", "prefect_api", "world_job", "hostile_job", "research_job"}
"""A browser, a Prefect server, and the made-up warehouses of reports."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Sort the files, and mark as slow what needs a browser, a server or a large warehouse."""
    items.sort(key=lambda item: item.path.name not in _FIRST)
    for item in items:
        if _SLOW & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def _no_earlier_damage_notices() -> None:
    """Commands of this test report no damage that an earlier test found."""
    if "warehouse.files" in sys.modules:
        sys.modules["warehouse.files"].pop_notices()
