"""The run, in a process forked for it.

A process that makes calls needs many seconds for its imports. So one process imports everything,
starts no Python thread, and forks itself for every run (`python -m tests.faults.kills`). Such a run
is a full `prbench run`, from the arguments to the exit code, except that a few lines here call the
stages' functions instead of Prefect.
"""

import contextlib
import importlib
import json
import os
import resource
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any


def _stages(job: Any, order: Mapping[str, Any]) -> list[Any]:
    """Run both stages, in small batches; a limit on file size holds from the start, or once the
    ledger is open.
    """
    from tests import kit

    opened = kit.open_run_context

    @contextlib.asynccontextmanager
    async def limited(job):
        async with opened(job) as context:
            with _file_bytes(order.get("file_bytes_when_calling")):
                yield context

    kit.open_run_context = limited
    with _file_bytes(order.get("file_bytes_at_start")):
        return [kit.sampled(job, size=8), kit.judged(job, size=4)]


@contextlib.contextmanager
def _file_bytes(limit: int | None) -> Iterator[None]:
    """Limit the size of files, as if the disk were full, until the block ends; None: no limit."""
    usual_limit, highest_limit = resource.getrlimit(resource.RLIMIT_FSIZE)
    if limit is None:
        limit = usual_limit
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, highest_limit))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (usual_limit, highest_limit))


def _shift_clock(by_s: float):
    clock_s = time.time
    clock_ns = time.time_ns
    time.time = lambda: clock_s() + by_s
    time.time_ns = lambda: clock_ns() + int(by_s * 1e9)


def _be_a_run(order: dict[str, Any]):
    """Run as the order says, then end this process."""
    import flows.cli.main
    import flows.execution
    import flows.work

    def without_prefect(job, _name, **_options):
        execution = flows.execution.execute(job, lambda: _stages(job, order))
        path = order.get("modules")
        if path:
            Path(path).write_text("\n".join(sys.modules), encoding="utf-8")
        return execution

    os.setsid()
    for descriptor, path in ((0, os.devnull), (1, os.devnull), (2, order["log"])):
        os.dup2(
            os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644), descriptor
        )
    _shift_clock(order.get("clock_s", 0.0))
    flows.work.execute_flow = without_prefect
    sys.argv = ["prbench", "run", "--config", order["config"]]
    sys.argv += ["--warehouse", order["warehouse"], "-q"]
    flows.cli.main.entry()


def be_the_stage():
    """Import what a run needs; then, for each line on standard input, fork a run, poll one, or
    import more.
    """
    for name in (
        "flows.cli.main",
        "flows.execution",
        "tests.kit",
        "tasks.llm.litellm_setup",
    ):
        importlib.import_module(name)
    sys.modules["tasks.llm.litellm_setup"].litellm()
    assert threading.active_count() == 1
    print(json.dumps("ready"), flush=True)
    with sys.modules["tests.kit"].few_published("leaderboard"):
        for line in sys.stdin:
            command, argument = json.loads(line)
            print(json.dumps(_result(command, argument)), flush=True)


def _result(command: str, argument: Any) -> int | None:
    """Do what a line says; return the id of a started process, or the exit code of a polled
    one.
    """
    if command == "start":
        pid = os.fork()
        if pid == 0:
            _be_a_run(argument)
        return pid
    if command == "poll":
        has_ended, status = os.waitpid(argument, os.WNOHANG)
        return os.waitstatus_to_exitcode(status) if has_ended else None
    _import_what_is_listed(Path(argument))
    return None


def _import_what_is_listed(path: Path):
    for name in path.read_text(encoding="utf-8").splitlines():
        # Some listed modules cannot be imported by name.
        with contextlib.suppress(Exception):
            importlib.import_module(name)
    assert threading.active_count() == 1
