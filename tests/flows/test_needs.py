"""A command needs what it calls, and nothing of what only other commands call."""

import sys

import pytest

from tasks.llm import embedded
from tests.faults.server import FaultServer
from tests.flows.conftest import Command

EMBEDDED = "embedded/smollm2-135m-instruct"


@pytest.fixture
def without_embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation without the embedded model."""
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    embedded.weights_hash.cache_clear()


@pytest.mark.usefixtures("without_embedded")
def test_a_rubric_writer_that_no_judge_asks_is_not_needed(command: Command, provider: FaultServer) -> None:
    model = {"name": "hosted_vllm/a", "label": "a", "api_base": provider.api_base}
    command.configure(dataset={"source": "sample"}, models=[model], rubric_writer={"name": EMBEDDED})
    command("run", "--limit", "1", "--warehouse", "data")
    assert len(provider.book) == 1
    command.configure(dataset={"source": "sample"}, models=[model], judges=[{"name": EMBEDDED}])
    assert f"{EMBEDDED}: not installed" in command("run", "--warehouse", "data", code=2).stderr


def test_a_command_that_calls_nobody_needs_no_variable_of_an_endpoint(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NOT_SET_ANYWHERE", raising=False)
    model = {"name": "hosted_vllm/a", "label": "a", "api_base": "${NOT_SET_ANYWHERE}"}
    command.configure(dataset={"source": "sample"}, models=[model])
    command("ingest", "--warehouse", "data")
    refused = command("sample", "--warehouse", "data", code=2).stderr
    assert "the environment variable NOT_SET_ANYWHERE is not set" in refused
