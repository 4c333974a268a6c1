"""The whole command, killed and interrupted while its calls take long."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.faults.behaviours import HttpResponse, well_behaved
from tests.faults.kills.killing import MOST_COLD_GAP_S, Killing, provider
from tests.faults.kills.starting import command_started, configured, started_stages
from tests.faults.server import FaultServer

pytestmark = pytest.mark.slow


@pytest.mark.long
def test_a_command_that_is_killed_twice_loses_no_recorded_reply_and_ends_as_if_undisturbed(tmp_path: Path) -> None:
    with provider() as server:
        configured(tmp_path, server.api_base)
        undisturbed = started_stages().start
        killing = Killing(
            tmp_path, server, command_started, longest_s=2.0, share_from_start=0.0, start_undisturbed=undisturbed,
            most_gap_s=MOST_COLD_GAP_S,
        )  # fmt: skip
        figures = killing.kill(2)
    assert figures.kills == 2
    assert figures.again <= 2 * 8


@pytest.mark.long
def test_a_signal_ends_a_command_within_seconds_though_its_calls_take_long(tmp_path: Path) -> None:
    with FaultServer(lambda request, number: HttpResponse(well_behaved(request, number).text, delay_s=60)) as server:
        data = configured(tmp_path, server.api_base)
        run = command_started(tmp_path, data)
        deadline_s = time.monotonic() + 120
        while server.in_hand < 8:
            assert run.poll() is None, run.complaint
            assert time.monotonic() < deadline_s
            time.sleep(0.01)
        before_s = time.monotonic()
        os.kill(run.pid, signal.SIGINT)
        assert run.wait() == 130, run.complaint
        assert time.monotonic() - before_s < 30
        assert run.members() == []
        assert run.complaint == "interrupted: finished work is kept; run the same command again to continue\n"
