"""A command needs what it calls, and nothing of what only other commands call."""

import resource
import subprocess
import sys
from dataclasses import replace

import pytest

from tasks.llm import embedded
from tests.faults.server import FaultServer, well_behaved
from tests.flows.conftest import PRBENCH, Command
from tests.flows.test_pipeline import settings

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
    assert 1 == len(provider.book)
    command.configure(dataset={"source": "sample"}, models=[model], judges=[{"name": EMBEDDED}])
    assert f"{EMBEDDED}: not installed" in command("run", "--warehouse", "data", code=2).stderr


def test_a_command_without_calls_needs_no_endpoint_variable(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOT_SET_ANYWHERE", raising=False)
    model = {"name": "hosted_vllm/a", "label": "a", "api_base": "${NOT_SET_ANYWHERE}"}
    command.configure(dataset={"source": "sample"}, models=[model])
    command("ingest", "--warehouse", "data")
    refused = command("sample", "--warehouse", "data", code=2).stderr
    assert "the environment variable NOT_SET_ANYWHERE is not set" in refused


@pytest.mark.slow
@pytest.mark.parametrize(
    ("limit", "code", "most_in_hand", "line"),
    [
        ("-n 256", 0, 64, "limits.concurrency: 64 instead of 500, since `ulimit -n` is 256"),
        ("-S -n 256", 0, 500, ""),
        ("-n 18", 1, 0, "too many files are open: raise the limit of `ulimit -n`, or lower `limits.concurrency`"),
    ],
)
def test_a_run_needs_no_more_open_files_than_it_may_have(
    limit: str, code: int, most_in_hand: int, line: str, command: Command
) -> None:
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < 2_000:
        pytest.skip("no more files may be open here")
    with FaultServer(lambda request, number: replace(well_behaved(request, number), delay_s=2)) as server:
        command.configure(**settings(server, limits={"concurrency": 500}))
        run = f"ulimit {limit} && exec {PRBENCH} run --warehouse data"
        done = subprocess.run(["bash", "-c", run], cwd=command.folder, capture_output=True, text=True, check=False)
        assert code == done.returncode, done.stderr
        assert server.most_in_hand <= most_in_hand
    assert line in done.stderr
    assert (bool(line)) == "ulimit" in done.stderr
