"""A Prefect server that stops in the middle of a recorded run: the run ends like one that nothing records."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from flows.server.own_server import OwnServer
from tests.faults.server import Answer, FaultServer, Request, is_judging, well_behaved
from tests.flows.conftest import PRBENCH
from tests.flows.prefect_server import serving_prefect
from tests.sharing import shared_folder

pytestmark = pytest.mark.slow

GIVEN_UP = "the rest of this run is not recorded in Prefect"
FIGURES = """
    select model, judge, split, score_name, vintage, mean_score, ci_low, ci_high, n_tasks, coverage
    from leaderboard order by all
"""


@dataclass(frozen=True)
class Ended:
    """A finished `prbench run`: what it said, what it asked of the provider, and what it left."""

    code: int
    errors: list[str]
    n_calls: int
    figures: list[dict[str, Any]]
    outcomes: list[dict[str, Any]]
    has_report: bool


class Provider:
    """A model provider; the Prefect server gets a signal when the first criterion is judged."""

    prefect: OwnServer | None = None
    sent: signal.Signals | None = None

    def __call__(self, request: Request, number: int) -> Answer:
        if self.prefect and self.prefect.process and self.sent and is_judging(request):
            self.prefect.process.send_signal(self.sent)
        return well_behaved(request, number)


def without_prefect(**more: str) -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if not name.startswith("PREFECT_")} | more


def prbench(folder: Path, *arguments: str, **named: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [PRBENCH, *arguments], cwd=folder, env=without_prefect(PREFECT_HOME=str(folder), **named), capture_output=True,
        text=True, check=False,
    )  # fmt: skip


def run(folder: Path, provider: Provider, prefect: OwnServer | None = None) -> Ended:
    named = {"PREFECT_API_URL": prefect.url, "PREFECT_API_AUTH_STRING": prefect.secret} if prefect else {}
    with FaultServer(provider) as server:
        endpoint = {"name": "hosted_vllm/candidate", "api_base": server.api_base}
        settings = {
            "dataset": {"source": "sample"}, "warehouse": "data",
            "models": [{**endpoint, "label": "a"}, {**endpoint, "label": "b"}], "judges": [{**endpoint, "label": "j"}],
        }  # fmt: skip
        (folder / "prbench.yaml").write_text(yaml.safe_dump(settings), encoding="utf-8")
        done = prbench(folder, "run", **named)
        n_calls = len(server.book)
    figures, outcomes = (
        json.loads(prbench(folder, "sql", query, "--json").stdout)
        for query in (FIGURES, "select outcome, responses_made, verdicts_made from runs")
    )
    has_report = any(folder.rglob("prbench/index.html"))
    return Ended(done.returncode, done.stderr.splitlines(), n_calls, figures, outcomes, has_report)


@pytest.fixture(scope="module")
def unrecorded(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """The same run without a server."""
    return run(tmp_path_factory.mktemp("unrecorded"), Provider())


@pytest.fixture
def prefect(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OwnServer]:
    home = tmp_path / "prefect"
    home.mkdir()
    with serving_prefect(home, shared_folder(tmp_path_factory)) as server:
        try:
            yield server
        finally:
            assert server.process is not None
            server.process.kill()


@pytest.mark.parametrize("sent", [signal.SIGKILL, pytest.param(signal.SIGSTOP, marks=pytest.mark.long)])
def test_a_run_whose_prefect_server_stops_ends_like_one_without_and_says_so_in_one_line(
    sent: signal.Signals, tmp_path: Path, prefect: OwnServer, unrecorded: Ended
) -> None:
    provider = Provider()
    provider.prefect, provider.sent = prefect, sent
    ended = run(tmp_path, provider, prefect)

    assert (ended.code, ended.n_calls) == (unrecorded.code, unrecorded.n_calls), ended.errors
    assert ended.figures == unrecorded.figures
    assert ended.outcomes == unrecorded.outcomes
    assert ended.has_report
    assert unrecorded.has_report
    assert [line for line in ended.errors if "Prefect" in line] == [
        f"Prefect records this run: {prefect.url.removeprefix('http://').removesuffix('/api')}",
        next(line for line in ended.errors if GIVEN_UP in line),
    ]
    assert words(ended) - {"Prefect", "Prefect's"} == words(unrecorded)


def words(ended: Ended) -> set[str]:
    """The first word of every line of standard error."""
    return {line.split()[0] for line in ended.errors if line}
