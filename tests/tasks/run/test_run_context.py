"""A run that must call a model without a key is refused immediately; a run without calls is not."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tasks.config.job import Job
from tasks.config.settings import Limits
from tasks.rules.errors import UsageError
from tasks.run.judge_configs import target_of
from tasks.run.run_context import CALLED_KINDS, refuse_unready
from tasks.run.writing import STAGES
from tests.kit import ROOT, admitted, criterion, job_on, response, written
from warehouse import Warehouse

pytestmark = pytest.mark.usefixtures("without_scores")


@pytest.fixture
def job(tmp_path, monkeypatch) -> Job:
    """A job with a hosted model and judge, on an empty warehouse and without any key."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    endpoint = {"name": "openai/gpt-4o-mini"}
    return job_on(
        "sample",
        tmp_path,
        models=[endpoint | {"label": "mini"}],
        judges=[endpoint | {"label": "judge"}],
    )


def test_a_missing_key_is_named_before_anything_starts(job):
    with pytest.raises(
        UsageError, match=r"\Amodel mini: OPENAI_API_KEY is not set; export it\Z"
    ):
        refuse_unready(job)
    assert not Warehouse(job.warehouse).database.exists()


def test_a_variable_without_a_value_is_missing(job, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    monkeypatch.setenv("TEAM", "")
    headers = {"headers": {"X-Team": "${TEAM}"}}
    model = job.settings.models[0].model_copy(update=headers)

    with pytest.raises(UsageError, match="TEAM is not set"):
        refuse_unready(job.with_settings(models=[model]))


def test_a_job_with_all_keys_is_not_refused(job, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")

    refuse_unready(job)


def test_only_the_key_of_what_is_called_is_needed(job):
    model = job.settings.models[0].model_copy(update={"name": "hosted_vllm/own"})
    local = job.with_settings(models=(model,))

    refuse_unready(local, ("model",))
    with pytest.raises(UsageError, match="judge judge: OPENAI_API_KEY is not set"):
        refuse_unready(local, ("judge",))


@pytest.mark.parametrize(
    "settings",
    [{"api_base": "http://localhost:1/v1"}, {"headers": {"X-Team": "evals"}}],
)
def test_an_endpoint_of_ones_own_needs_a_key_only_if_its_client_does(
    tmp_path,
    monkeypatch,
    settings,
):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("MISTRAL_API_KEY", raising=False)
    mistral = {"name": "mistral/small", **settings}
    openai = {"name": "openai/gpt-4o-mini", **settings}

    refuse_unready(job_on("sample", tmp_path, models=[mistral]))
    with pytest.raises(UsageError, match="OPENAI_API_KEY is not set"):
        refuse_unready(job_on("sample", tmp_path, models=[openai]))


def test_a_judge_that_cannot_decide_is_refused_before_the_run(tmp_path):
    judge = {
        "name": "ai21/jamba",
        "kind": "decisions",
        "headers": {"X-Team": "evals"},
    }

    message = r"LiteLLM cannot ask ai21/ for decisions; it can ask .*openai"
    with pytest.raises(UsageError, match=message):
        refuse_unready(job_on("sample", tmp_path, judges=[judge]))


def store_task(job: Job):
    """Put a task into the sample's split, admitted, with one criterion."""
    tables = admitted(["t0"], "sample") | {"criteria": [criterion("t0", 0, 5)]}
    written(job.warehouse, tables, job.data.revision).publish()


def judged_by(rubric: str, folder: Path, **settings: Any) -> Job:
    """A job in which only the rubric writer needs a key: the judge is a local server."""
    judge = {
        "name": "hosted_vllm/judge",
        "label": "judge",
        "api_base": "http://localhost:1/v1",
        "rubric": rubric,
    }
    return job_on(
        "sample",
        folder,
        judges=[judge],
        rubric_writer={"name": "openai/gpt-4o-mini"},
        **settings,
    )


def test_a_cap_asks_for_the_prices_of_what_is_called_alone(job, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    unpriced = job.settings.models[0].model_copy(update={"name": "hosted_vllm/own"})
    capped = job.with_settings(models=(unpriced,), limits=Limits(max_usd=1.0))

    refuse_unready(capped, ("judge",))
    with pytest.raises(UsageError, match="model mini: has no known price"):
        refuse_unready(capped, ("model",))


@pytest.mark.parametrize("kinds", [CALLED_KINDS, STAGES["derive"].calls])
def test_a_writer_of_rubrics_needs_its_key_if_a_judge_needs_its_rubrics(
    kinds,
    tmp_path,
    monkeypatch,
):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    job = judged_by("augmented", tmp_path)
    store_task(job)

    refuse_unready(job, STAGES["judge"].calls)
    refuse_unready(judged_by("original", tmp_path), kinds)
    with pytest.raises(
        UsageError, match=r"^rubric_writer: OPENAI_API_KEY is not set"
    ):
        refuse_unready(job, kinds)


def test_a_judge_without_a_response_to_judge_needs_no_key(job):
    store_task(job)

    refuse_unready(job, STAGES["judge"].calls)


def test_a_failure_that_is_not_retried_needs_a_key_only_when_it_is_to_be_retried(job):
    store_task(job)
    model = job.settings.models[0]
    failure = response(
        "t0",
        model.label,
        status="refused",
        model_config_hash=target_of(model).config_hash,
    )
    written(job.warehouse, {"responses": [failure]}, job.data.revision).publish()

    refuse_unready(job)
    with pytest.raises(UsageError, match="model mini: OPENAI_API_KEY is not set"):
        refuse_unready(job.model_copy(update={"retry_failed": True}))


def test_a_database_of_another_version_is_not_read_before_the_run(job, monkeypatch):
    store_task(job)
    monkeypatch.setattr("warehouse.warehouse.stamp", lambda: "of other code")

    refuse_unready(job)


READING_ENV_FILES = """
import os

from tasks.llm.redaction import filled_in
from tasks.llm.variables import env_file, variable

own_key = variable("OPENAI_API_KEY")
print(filled_in("Bearer ${TEAM_TOKEN}"))
os.environ.pop("OPENAI_API_KEY", None)
import litellm

print(own_key, os.environ.get("OPENAI_API_KEY"))
os.environ["LITELLM_MODE"] = "PRODUCTION"
print(env_file())
"""


@pytest.mark.slow
def test_the_env_file_that_is_read_is_the_one_that_litellm_reads(tmp_path):
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "litellm").symlink_to(
        Path(str(find_spec("litellm").origin)).parent
    )
    (tmp_path / ".env").write_text(
        "OPENAI_API_KEY=from-the-file\nTEAM_TOKEN=also\n",
        encoding="utf-8",
    )
    environment = dict(os.environ)
    environment.pop("OPENAI_API_KEY", None)
    environment.pop("LITELLM_MODE", None)
    environment["PYTHONPATH"] = os.pathsep.join([str(tmp_path / "lib"), str(ROOT)])
    environment["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

    process = subprocess.run(
        [sys.executable, "-c", READING_ENV_FILES],
        env=environment,
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )

    assert process.stdout.splitlines() == [
        "Bearer also",
        "from-the-file from-the-file",
        "None",
    ]
