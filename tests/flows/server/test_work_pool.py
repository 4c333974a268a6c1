"""The steps of the guide for several machines, as written there: PostgreSQL, a Prefect server, a
pool, two workers.

All of it is on one machine here, so the address is the server's own, without a proxy.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from flows.server import PrefectServer
from tests.flows.conftest import PROJECT, Command
from tests.flows.prefect_server import UNUSED
from tests.kit import endpoint, until

pytestmark = [pytest.mark.slow, pytest.mark.long]
_GUIDE = (PROJECT / "flows" / "operations.md").read_text()
_SECTION = _GUIDE.partition("## Several machines\n")[2].partition("\n## ")[0]
STEPS = dict(re.findall(r"\*\*(\d)\. .*?```sh\n(.*?)```", _SECTION, re.DOTALL))
_PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))


@dataclass(frozen=True)
class World:
    """Folders, and the replacements for names in the guide."""

    folder: Path
    """For PostgreSQL and the secret: other users cannot enter pytest's folders."""
    project: Path
    port: int

    def step(self, number: int, host: str = "one") -> str:
        """The commands of a step on a host, with names of the guide replaced; each of them must
        occur.
        """
        replacements = {
            1: {"sudo -u postgres": f"env PGHOST={self.folder} PGUSER=postgres"},
            2: {" -o prefect": ""},
            3: {"/var/run/postgresql": str(self.folder), "4200": str(self.port)},
            5: {
                "/etc/prbench.env": str(self.folder / "prbench.env"),
                "$(hostname)": host,
            },
        }
        commands = STEPS[str(number)]
        for name, replacement in replacements.get(number, {}).items():
            assert name in commands
            commands = commands.replace(name, replacement)
        replacements_everywhere = {
            "/etc/prefect.secret": str(self.folder / "prefect.secret"),
            "https://prefect.example.org": f"http://127.0.0.1:{self.port}",
            ".venv/bin/": "",
            "$HOME": str(self.folder),
        }
        for name, replacement in replacements_everywhere.items():
            commands = commands.replace(name, replacement)
        return commands

    def environment(self, home: str) -> dict[str, str]:
        """The environment of a machine: without the tests' own server, and with its own folder for
        Prefect.
        """
        environment = {}
        for name, value in os.environ.items():
            if not name.startswith("PREFECT_"):
                environment[name] = value
        for name in UNUSED:
            environment[f"PREFECT_SERVER_SERVICES_{name}_ENABLED"] = "false"
        environment["PREFECT_WORKER_QUERY_SECONDS"] = "1"
        environment["PREFECT_HOME"] = str(self.folder / home)
        programs = f"{Path(sys.executable).parent}:{_PROGRAMS[-1].parent}"
        environment["PATH"] = f"{programs}:{environment['PATH']}"
        return environment

    def do(self, commands: str) -> str:
        """Run commands to their end."""
        process = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", commands],
            cwd=self.project,
            env=self.environment("client"),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=300,
            check=False,
        )
        assert process.returncode == 0, f"{commands}\n{process.stdout}"
        return process.stdout

    @contextmanager
    def running(
        self,
        name: str,
        commands: str,
    ) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
        """Run commands as one of the machines; the last one keeps running: yield its process and
        its log.
        """
        preparation, _, last_command = commands.strip().rpartition("\n")
        log = self.folder / f"{name}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                ["bash", "-euc", f"{preparation}\nexec {last_command}"],
                cwd=self.project,
                env=self.environment(name),
                stdout=file,
                stderr=file,
                start_new_session=True,
            )
        try:
            yield process, log
        finally:
            ended(process)


def ended(process: subprocess.Popen[bytes]):
    """End a process, and those that it started if it does not end in time."""
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def postgres(folder: Path) -> Iterator[None]:
    """A PostgreSQL server on a socket in the folder.

    It refuses to run as root; for root the user is `postgres`.
    """
    as_user = []
    if os.geteuid() == 0:
        as_user = [
            "setpriv",
            "--reuid=postgres",
            "--regid=postgres",
            "--clear-groups",
        ]
        shutil.chown(folder, "postgres", "postgres")
    programs = _PROGRAMS[-1].parent
    data = folder / "postgres"
    make = [
        programs / "initdb",
        "-D",
        data,
        "-U",
        "postgres",
        "-A",
        "trust",
        "--no-sync",
    ]
    subprocess.run(
        [*as_user, *make],
        check=True,
        capture_output=True,
        cwd=folder,
    )
    options = ["-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"]
    with (folder / "postgres.log").open("wb") as log:
        server = subprocess.Popen(
            [*as_user, programs / "postgres", "-D", data, *options],
            stderr=log,
            cwd=folder,
        )
    try:
        until((folder / ".s.PGSQL.5432.lock").exists)
        yield
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)


@pytest.fixture
def world(tmp_path) -> Iterator[World]:
    if not _PROGRAMS:
        pytest.skip("PostgreSQL is not installed: `apt-get install postgresql`")
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip(
            "PostgreSQL does not run as root, and there is no `setpriv` to run it as another user"
        )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="prbench-") as folder:
        (Path(folder) / "prbench.env").write_text("OPENAI_API_KEY=of-this-machine\n")
        yield World(Path(folder), tmp_path, port)


def test_the_steps_for_several_machines_work_and_another_worker_continues(
    world, provider
):
    command = Command(world.project)
    model = endpoint("pinned", provider.api_base)
    command.configure(
        dataset={"source": "sample"},
        models=[model],
        judges=[],
        warehouse="data",
    )
    with (
        prefect_server_of(world) as url,
        world.running("one", world.step(5, "one")) as (process_one, log_one),
        world.running("two", world.step(5, "two")) as (process_two, log_two),
    ):
        without_secret = httpx.get(f"{url}/work_pools/prbench")
        processes = {"one": process_one, "two": process_two}
        logs = {"one": log_one, "two": log_two}
        until(lambda: all("started!" in log.read_text() for log in logs.values()))
        first_machine = backfilled_by(logs, world, "sample-fin-1")
        ended(processes.pop(first_machine))
        second_machine = backfilled_by(logs, world, "sample-leg-2")
        states = world.do(
            f"psql -h {world.folder} -U prefect -Atc '{STATES_OF_RUNS}'"
        )

    assert without_secret.status_code == httpx.codes.UNAUTHORIZED
    assert list(processes) == [second_machine]
    assert states.split() == ["Completed", "Completed"]
    responses = command.sql("select task_id, trial from responses order by task_id")
    assert responses == [
        {"task_id": "sample-fin-1", "trial": 2},
        {"task_id": "sample-leg-2", "trial": 2},
    ]
    assert command.sql("select distinct outcome from runs") == [{"outcome": "done"}]


STATES_OF_RUNS = """
    select state_name
    from flow_run
    where parent_task_run_id is null and not auto_scheduled
"""


@contextmanager
def prefect_server_of(world: World) -> Iterator[str]:
    """Start a Prefect server with a work pool, as steps 1 to 4 do, and yield its address."""
    url = f"http://127.0.0.1:{world.port}/api"
    with postgres(world.folder):
        world.do(world.step(1))
        world.do(world.step(2))
        with world.running("server", world.step(3)) as (_, log):
            assert PrefectServer(url).wait_until_ready(180), log.read_text()
            world.do(world.step(4))
            yield url


def backfilled_by(logs: Mapping[str, Path], world: World, task: str) -> str:
    """Start a run that fills in one task, and return the machine whose worker took it."""
    n_chars = {name: len(log.read_text()) for name, log in logs.items()}
    step_lines = world.step(5).splitlines()
    access = "\n".join(line for line in step_lines if "PREFECT_API" in line)
    start = (
        f"""{world.step(6).strip()} --watch-interval 1 --param 'tasks=["{task}"]'"""
    )
    assert "Completed" in world.do(f"{access}\n{start}")
    machines = []
    for name, log in logs.items():
        text = log.read_text()[n_chars[name] :]
        # Both workers may see the run at the same time; the server gives it to one.
        if text.count("submitting flow run") > text.count("Aborted submission"):
            machines.append(name)
    [machine] = machines
    return machine
