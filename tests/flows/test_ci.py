"""The workflow for CI in the operations guide: its shell steps, as a runner starts them."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.faults.behaviours import prompt_of
from tests.faults.server import FaultServer, HttpResponse, is_judge_request
from tests.flows.conftest import PRBENCH, PROJECT, Command
from tests.kit import endpoint

pytestmark = pytest.mark.slow
GUIDE = (PROJECT / "flows" / "operations.md").read_text()
[WORKFLOW] = re.findall(
    r"^```yaml\n(name: .*?)```",
    GUIDE,
    re.DOTALL | re.MULTILINE,
)
JOB = yaml.safe_load(WORKFLOW)["jobs"]["evaluate"]
STEPS = {step["name"]: step["run"] for step in JOB["steps"] if "run" in step}


def candidate_fails(request, _: int) -> HttpResponse:
    """Responses name their model; the judge decides that the candidate meets nothing, and that the
    others meet all.
    """
    if not is_judge_request(request):
        return HttpResponse(f"A response by {request['model']}.")
    is_met = "A response by candidate." not in prompt_of(request)
    verdict = {"explanation": "as the test says", "criteria_met": is_met}
    return HttpResponse(json.dumps(verdict))


@pytest.fixture
def checkout(command: Command, provider: FaultServer) -> Command:
    """A checkout with a configuration, whose models respond."""
    provider.behaviour = candidate_fails
    priced = {
        "price": {"input_usd_per_mtok": 0.01, "output_usd_per_mtok": 0.01},
        "max_tokens": 100,
    }
    baseline = endpoint("baseline", provider.api_base, **priced)
    candidate = endpoint("candidate", provider.api_base, **priced)
    fresh = endpoint(
        "fresh",
        provider.api_base,
        resample="nightly",
        **priced,
    )
    command.configure(
        dataset={"source": "sample"},
        models=[baseline, candidate, fresh],
        judges=[endpoint("judge", provider.api_base, **priced)],
    )
    return command


def run_step(name: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a step as GitHub does; `uv run` starts the installed command."""
    bash = shutil.which("bash")
    assert bash is not None
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    uv = tools / "uv"
    uv.write_text('#!/bin/sh\nshift\nexec "$@"\n')
    uv.chmod(0o755)
    environment = {
        **os.environ,
        **JOB["env"],
        "OPENAI_API_KEY": "a-key",
    }
    environment["PATH"] = os.pathsep.join(
        [str(tools), str(PRBENCH.parent), os.environ["PATH"]]
    )
    environment["GITHUB_STEP_SUMMARY"] = str(folder / "summary.md")
    return subprocess.run(
        [bash, "-e", "-c", STEPS[name]],
        cwd=folder,
        env=environment,
        text=True,
        capture_output=True,
        check=False,
    )


@pytest.mark.long  # `tests/flows/cli/test_regressions.py` shows the exit code without a checkout
def test_a_pull_request_with_a_worse_candidate_fails_and_its_summary_says_why(
    checkout,
):
    evaluated = run_step("Evaluate", checkout.folder)
    compared = run_step("Compare", checkout.folder)

    assert evaluated.returncode == 0, evaluated.stderr
    assert compared.returncode == 3, compared.stderr
    assert "exit code 3 (worse): candidate is " in compared.stderr
    summary = (checkout.folder / "summary.md").read_text()
    assert "## Comparison of baseline with candidate" in summary
    assert "Worse: candidate is " in summary


@pytest.mark.long
def test_a_night_without_a_drop_succeeds_after_an_earlier_one(checkout):
    checkout(
        "nightly",
        "--night",
        "2026-01-01",
        "--warehouse",
        JOB["env"]["PRBENCH_WAREHOUSE"],
    )

    night = run_step("Night", checkout.folder)

    assert night.returncode == 0, night.stderr
    summary = (checkout.folder / "summary.md").read_text()
    assert "No score is significantly worse." in summary
    assert "| fresh 2026-01-01 → fresh " in summary


def test_each_shell_step_of_the_workflow_is_one_that_is_run_here():
    assert STEPS.keys() == {"Evaluate", "Compare", "Night"}
