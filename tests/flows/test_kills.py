"""The whole command, killed and interrupted while its calls take long."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.faults.answers import Answer, well_behaved
from tests.faults.kills import Killing, command_started, configured, provider
from tests.faults.server import FaultServer

pytestmark = pytest.mark.slow


@pytest.mark.usefixtures("prefect_api")
def test_a_command_that_is_killed_twice_loses_no_recorded_reply_and_ends_as_if_undisturbed(tmp_path: Path) -> None:
    with provider() as server:
        configured(tmp_path, server.api_base)
        figures = Killing(tmp_path, server, command_started, ("group",), 2.0, 0.0).kill(2)
    assert figures.kills == 2
    assert figures.again <= 2 * 8


@pytest.mark.usefixtures("prefect_api")
@pytest.mark.parametrize(("stop", "processes"), [(signal.SIGINT, 2), (signal.SIGTERM, 1)])
def test_a_signal_ends_a_command_within_seconds_though_its_calls_take_long(
    tmp_path: Path, stop: signal.Signals, processes: int
) -> None:
    with FaultServer(lambda request, number: Answer(well_behaved(request, number).text, delay_s=30)) as server:
        data = configured(tmp_path, server.api_base, processes=processes)
        run = command_started(tmp_path, data)
        deadline_s = time.monotonic() + 120
        while server.in_hand < 8:
            assert run.poll() is None, run.complaint
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
        before_s = time.monotonic()
        os.kill(run.pid, stop)
        assert run.wait() == 130, run.complaint
        assert time.monotonic() - before_s < 12
        assert run.members() == []
        assert run.complaint == "interrupted: what was finished is kept; the same command goes on from here\n"
