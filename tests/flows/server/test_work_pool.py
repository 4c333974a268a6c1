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
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from flows.server import PrefectServer
from tests.faults.server import FaultServer
from tests.flows.conftest import PROJECT, Command
from tests.flows.prefect_server import UNUSED
from tests.kit import until

pytestmark = [pytest.mark.slow, pytest.mark.long]
_GUIDE = (PROJECT / "flows" / "operations.md").read_text(encoding="utf-8")
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

    def step(self, number: int, *others: tuple[str, str]) -> str:
        """The commands of a step, with names of the guide replaced; each of them must occur."""
        of_step = {
            1: [("sudo -u postgres", f"env PGHOST={self.folder} PGUSER=postgres")],
            2: [(" -o prefect", "")],
            3: [("/var/run/postgresql", str(self.folder)), ("4200", str(self.port))],
            5: [("/etc/prbench.env", str(self.folder / "prbench.env"))],
        }
        commands = STEPS[str(number)]
        for named, here in (*of_step.get(number, []), *others):
            assert named in commands
            commands = commands.replace(named, here)
        commands = commands.replace("/etc/prefect.secret", str(self.folder / "prefect.secret"))
        commands = commands.replace("https://prefect.example.org", f"http://127.0.0.1:{self.port}")
        return commands.replace(".venv/bin/", "").replace("$HOME", str(self.folder))

    def environment(self, home: str) -> dict[str, str]:
        """The environment of a machine: without the tests' own server, and with its own folder for
        Prefect.
        """
        own = {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")}
        path = f"{Path(sys.executable).parent}:{_PROGRAMS[-1].parent}:{own['PATH']}"
        quick = {f"PREFECT_SERVER_SERVICES_{name}_ENABLED": "false" for name in UNUSED}
        quick["PREFECT_WORKER_QUERY_SECONDS"] = "1"
        return {
            **own,
            **quick,
            "PATH": path,
            "PREFECT_HOME": str(self.folder / home),
        }

    def do(self, commands: str) -> str:
        """Run commands to their end."""
        shell = ["bash", "-euo", "pipefail", "-c", commands]
        shown = {
            "stdout": subprocess.PIPE,
            "stderr": subprocess.STDOUT,
            "text": True,
            "timeout": 300,
        }
        done = subprocess.run(
            shell,
            cwd=self.project,
            env=self.environment("client"),
            check=False,
            **shown,
        )
        assert done.returncode == 0, f"{commands}\n{done.stdout}"
        return done.stdout

    @contextmanager
    def running(self, name: str, commands: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
        """Run commands as one of the machines; the last one keeps running: yield its process and
        its log.
        """
        before, _, last = commands.strip().rpartition("\n")
        log = self.folder / f"{name}.log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                ["bash", "-euc", f"{before}\nexec {last}"],
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


def ended(process: subprocess.Popen[bytes]) -> None:
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
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"]
        shutil.chown(folder, "postgres", "postgres")
    programs = _PROGRAMS[-1].parent
    data = folder / "postgres"
    make = [programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync"]
    subprocess.run(
        [*as_user, *make],
        check=True,
        capture_output=True,
        cwd=folder,
    )
    options = ["-k", folder, "-c", "listen_addresses=", "-c", "fsync=off"]
    with (folder / "postgres.log").open("wb") as log:
        server = subprocess.Popen(
            [*as_user, programs / "postgres", "-D", data, *options], stderr=log, cwd=folder
        )
    try:
        until((folder / ".s.PGSQL.5432.lock").exists)
        yield
    finally:
        server.send_signal(signal.SIGINT)
        server.wait(30)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    if not _PROGRAMS:
        pytest.skip("PostgreSQL is not installed: `apt-get install postgresql`")
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        pytest.skip(
            "PostgreSQL does not run as root, and there is no `setpriv` to run it as another user"
        )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="prbench-") as folder:
        (Path(folder) / "prbench.env").write_text(
            "OPENAI_API_KEY=of-this-machine\n", encoding="utf-8"
        )
        yield World(Path(folder), tmp_path, port)


def test_the_steps_for_several_machines_work_and_another_worker_continues(
    world: World, provider: FaultServer
) -> None:
    command = Command(world.project)
    model = {
        "name": "hosted_vllm/pinned",
        "label": "pinned",
        "api_base": provider.api_base,
    }
    command.configure(
        dataset={"source": "sample"},
        models=[model],
        judges=[],
        warehouse="data",
    )
    with ExitStack() as started:
        started.enter_context(postgres(world.folder))
        world.do(world.step(1))
        world.do(world.step(2))
        _, log = started.enter_context(world.running("server", world.step(3)))
        assert PrefectServer(f"http://127.0.0.1:{world.port}/api").is_ready(180), log.read_text()
        world.do(world.step(4))
        refused = httpx.get(f"http://127.0.0.1:{world.port}/api/work_pools/prbench")
        assert refused.status_code == httpx.codes.UNAUTHORIZED
        machines = {}
        for name in ("one", "two"):
            commands = world.step(5, ("$(hostname)", name))
            machines[name] = started.enter_context(world.running(name, commands))
        logs = {name: log for name, (_, log) in machines.items()}
        until(lambda: all("started!" in log.read_text() for log in logs.values()))
        first = backfilled_by(logs, world, "sample-fin-1")
        ended(machines[first][0])
        second = backfilled_by(logs, world, "sample-leg-2")
        query = (
            "select state_name from flow_run where parent_task_run_id is null and not"
            " auto_scheduled"
        )
        assert world.do(f"psql -h {world.folder} -U prefect -Atc '{query}'").split() == [
            "Completed",
            "Completed",
        ]

    assert {first, second} == {"one", "two"}
    rows = command.sql("select task_id, trial from responses order by task_id")
    assert rows == [
        {"task_id": "sample-fin-1", "trial": 2},
        {"task_id": "sample-leg-2", "trial": 2},
    ]
    assert command.sql("select distinct outcome from runs") == [{"outcome": "done"}]


def backfilled_by(logs: Mapping[str, Path], world: World, task: str) -> str:
    """Start a run that fills in one task, and return the machine whose worker took it."""
    before = {name: log.read_text() for name, log in logs.items()}
    access = "\n".join(line for line in world.step(5).splitlines() if "PREFECT_API" in line)
    done = world.do(
        f"""{access}\n{world.step(6).strip()} --watch-interval 1 --param 'tasks=["{task}"]'"""
    )
    assert "Completed" in done
    new = {name: log.read_text().removeprefix(before[name]) for name, log in logs.items()}
    # Both workers may see the run at the same time; the server gives it to one.
    won = [
        name
        for name, text in new.items()
        if text.count("submitting flow run") > text.count("Aborted submission")
    ]
    assert len(won) == 1
    return won[0]
