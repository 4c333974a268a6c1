"""The operations guide: each of its commands is run here as it stands, or by the test that is named."""

import re
import shlex

import pytest

from tests.faults.server import FaultServer
from tests.flows.conftest import PROJECT, Command

pytestmark = pytest.mark.slow

GUIDE = (PROJECT / "flows" / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```console\n(.*?)```", GUIDE, re.DOTALL)
LINES = [line.removeprefix("$ ") for block in BLOCKS for line in block.splitlines()]
ELSEWHERE = {"prefect deployment run": "server/test_serve.py"}
"""How a command begins that another test runs, and where."""


def settings(server: FaultServer) -> dict[str, object]:
    at = {"api_base": server.api_base, "timeout_s": 20}
    return {
        "dataset": {"source": "sample"},
        "models": [
            {"name": "hosted_vllm/pinned", "label": "pinned", **at},
            {"name": "hosted_vllm/fresh", "label": "fresh", "resample": "nightly", **at},
        ],
        "judges": [{"name": "hosted_vllm/judge", "label": "judge", **at}],
        "drift": {"verdicts": 10},
    }


def runs_elsewhere(line: str) -> bool:
    plain = line.partition("uv run ")[2]
    return any(plain.startswith(beginning) for beginning in ELSEWHERE)


def test_the_guide_has_commands_and_the_other_tests_are_there() -> None:
    assert len(LINES) > 20
    assert all("uv run " in line for line in LINES)
    assert all((PROJECT / "tests" / "flows" / file).exists() for file in ELSEWHERE.values())


def test_every_command_of_the_guide_works_as_it_stands(command: Command, provider: FaultServer) -> None:
    command.configure(**settings(provider))
    for line in LINES:
        if runs_elsewhere(line):
            continue
        arguments = shlex.split(line, comments=True)
        assert arguments[:3] == ["uv", "run", "prbench"], line
        own = [] if "--warehouse" in arguments else ["--warehouse", "data"]
        command(*arguments[3:], *own)
    assert (command.folder / "restored" / "prbench.duckdb").exists()
    assert (command.folder / "shared" / "manifest.json").exists()
