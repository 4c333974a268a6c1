"""What `prbench serve` stops and in which order, seen in real processes without Prefect."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from tests.flows.conftest import PROJECT

_STOPPING = "stopping: waiting for runs under way"


class Supervised:
    """A supervisor in a process group of its own, as a terminal gives it one."""

    def __init__(self, folder: Path, how: str, engines_s: float = 30) -> None:
        self.book = folder / "book"
        self.book.touch()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.flows.supervised", self.book, how, str(engines_s)],
            cwd=PROJECT, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip

    def begun(self) -> "Supervised":
        until(lambda: self.lines or self.process.poll() is not None)
        assert self.process.poll() is None, self.process.communicate()
        return self

    @property
    def lines(self) -> list[str]:
        return self.book.read_text().splitlines()

    @property
    def is_running(self) -> bool:
        """Whether the run is still under way; a process that has ended has no arguments, if it is there at all."""
        arguments = Path(f"/proc/{self.lines[0].split()[-1]}/cmdline")
        try:
            return bool(arguments.read_bytes())
        except (FileNotFoundError, ProcessLookupError):
            return False

    def interrupt(self) -> None:
        """Ctrl-C in the terminal."""
        os.killpg(self.process.pid, signal.SIGINT)

    def ended(self, timeout_s: float = 20) -> tuple[int, str]:
        """The exit code, and what was said."""
        said = self.process.communicate(timeout=timeout_s)[1]
        return self.process.returncode, said


def until(condition: Callable[[], object], timeout_s: float = 20) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline_s, "it did not come so far"
        time.sleep(0.02)


def test_ctrl_c_ends_the_run_first_and_then_what_started_it(tmp_path: Path) -> None:
    supervised = Supervised(tmp_path, "polite").begun()
    supervised.interrupt()
    supervised.process.send_signal(signal.SIGINT)  # as a parent does that passes on what it gets
    code, said = supervised.ended()
    assert (code, supervised.lines[1:]) == (0, ["run ended", "work ended"])
    assert said.startswith(_STOPPING)
    assert len(said.splitlines()) == 1


def test_a_run_that_does_not_end_is_killed_when_its_time_is_over(tmp_path: Path) -> None:
    supervised = Supervised(tmp_path, "stubborn", engines_s=1).begun()
    supervised.process.terminate()
    assert supervised.ended()[0] == 0
    assert supervised.lines[1:] == ["work ended"]
    assert not supervised.is_running


def test_a_second_signal_does_not_wait_and_leaves_nothing_behind(tmp_path: Path) -> None:
    supervised = Supervised(tmp_path, "stubborn").begun()
    supervised.interrupt()
    time.sleep(1.2)
    assert supervised.is_running
    supervised.interrupt()
    assert supervised.ended(timeout_s=5)[0] == 0
    assert not supervised.is_running


def test_what_a_killed_supervisor_leaves_ends_in_the_same_order(tmp_path: Path) -> None:
    supervised = Supervised(tmp_path, "polite").begun()
    supervised.process.kill()
    until(lambda: len(supervised.lines) == 3)
    assert supervised.lines[1:] == ["run ended", "work ended"]


def test_work_that_ends_by_itself_is_an_error_of_one_line_and_its_run_ends_in_order(tmp_path: Path) -> None:
    supervised = Supervised(tmp_path, "dying").begun()
    assert supervised.ended() == (1, "what ran the deployments ended by itself (exit code 7); start it again\n")
    assert supervised.lines[1:] == ["run ended"]


def test_what_the_work_says_is_wrong_is_told_with_its_exit_code(tmp_path: Path) -> None:
    assert Supervised(tmp_path, "refusing").ended() == (2, "the deployment is another's\n")
