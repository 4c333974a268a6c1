"""A run that must call a model without a key is refused immediately; a run without calls is not."""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tasks.config.job import Job
from tasks.rules.errors import UsageError
from tasks.run.judge_configs import target_of
from tasks.run.run_context import CALLED_KINDS, refuse_unready
from tasks.run.writing import STAGES
from tests.kit import Patch, admitted, criterion, job_on, response, written
from warehouse import Warehouse

PROJECT = Path(__file__).parents[3]


@pytest.fixture
def job(tmp_path: Path, monkeypatch: Patch) -> Job:
    """A job with a hosted model and judge, on an empty warehouse and without any key."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    endpoint = {"name": "openai/gpt-4o-mini"}
    return job_on(
        "sample",
        tmp_path,
        models=[endpoint | {"label": "mini"}],
        judges=[endpoint | {"label": "judge"}],
    )


def test_a_missing_key_is_named_before_anything_starts(job: Job, monkeypatch: Patch) -> None:
    with pytest.raises(UsageError) as refused:
        refuse_unready(job)
    assert str(refused.value) == "model mini: OPENAI_API_KEY is not set; export it"
    assert not Warehouse(job.warehouse).database.exists()
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    assert refuse_unready(job) is None


def test_only_the_key_of_what_is_called_is_needed(job: Job) -> None:
    with pytest.raises(UsageError, match="judge judge: OPENAI_API_KEY is not set"):
        refuse_unready(job, ("judge",))
    own = {"models": (job.settings.models[0].model_copy(update={"name": "hosted_vllm/own"}),)}
    local = job.model_copy(update={"settings": job.settings.model_copy(update=own)})
    assert refuse_unready(local, ("model",)) is None


@pytest.mark.parametrize(
    "own", [{"api_base": "http://localhost:1/v1"}, {"headers": {"X-Team": "evals"}}]
)
def test_an_endpoint_of_ones_own_needs_a_key_only_if_its_client_does(
    tmp_path: Path, monkeypatch: Patch, own: dict[str, object]
) -> None:
    for name in ("OPENAI_API_KEY", "MISTRAL_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert (
        refuse_unready(job_on("sample", tmp_path, models=[{"name": "mistral/small", **own}]))
        is None
    )
    with pytest.raises(UsageError, match="OPENAI_API_KEY is not set"):
        refuse_unready(job_on("sample", tmp_path, models=[{"name": "openai/gpt-4o-mini", **own}]))


def test_a_judge_that_cannot_decide_is_refused_before_the_run(tmp_path: Path) -> None:
    judge = {
        "name": "ai21/jamba",
        "kind": "decisions",
        "headers": {"X-Team": "evals"},
    }
    with pytest.raises(
        UsageError, match=r"LiteLLM cannot ask ai21/ for decisions; it can ask .*openai"
    ):
        refuse_unready(job_on("sample", tmp_path, judges=[judge]))


def split_of(job: Job, *task_ids: str) -> None:
    """Put these tasks into the sample's split, admitted, with a criterion each."""
    tables = admitted(task_ids, "sample") | {
        "criteria": [criterion(task_id, 0, 5) for task_id in task_ids]
    }
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
        "sample", folder, judges=[judge], rubric_writer={"name": "openai/gpt-4o-mini"}, **settings
    )


def test_a_writer_of_rubrics_needs_its_key_if_a_judge_asks(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    job = judged_by("augmented", tmp_path)
    split_of(job, "t0")
    for kinds in (CALLED_KINDS, STAGES["derive"].calls):
        with pytest.raises(UsageError, match=r"^rubric_writer: OPENAI_API_KEY is not set"):
            refuse_unready(job, kinds)
    assert refuse_unready(job, STAGES["judge"].calls) is None
    assert refuse_unready(judged_by("original", tmp_path)) is None


def test_a_failure_that_is_not_retried_needs_a_key_only_when_it_is_to_be_retried(job: Job) -> None:
    split_of(job, "t0")
    assert refuse_unready(job, STAGES["judge"].calls) is None  # there is no response to judge
    model = job.settings.models[0]
    failed = response(
        "t0", model.label, status="refused", model_config_hash=target_of(model).config_hash
    )
    written(job.warehouse, {"responses": [failed]}, job.data.revision).publish()
    assert refuse_unready(job) is None
    with pytest.raises(UsageError, match="model mini: OPENAI_API_KEY is not set"):
        refuse_unready(job.model_copy(update={"retry_failed": True}))


def test_a_database_of_another_version_is_not_asked_before_the_run(
    job: Job, monkeypatch: Patch
) -> None:
    split_of(job, "t0")
    monkeypatch.setattr("warehouse.warehouse.stamp", lambda: "of other code")
    assert refuse_unready(job) is None


@pytest.mark.slow
def test_the_env_file_that_is_read_is_the_one_that_litellm_reads(tmp_path: Path) -> None:
    code = (
        "import os; from tasks.llm.environment import filled_in; from tasks.llm.variables import"
        " env_file, variable; own = variable('OPENAI_API_KEY'); print(filled_in('Bearer"
        " ${TEAM_TOKEN}')); os.environ.pop('OPENAI_API_KEY', None); import litellm; print(own,"
        " os.environ.get('OPENAI_API_KEY')); os.environ['LITELLM_MODE'] = 'PRODUCTION';"
        " print(env_file())"
    )
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "litellm").symlink_to(Path(str(find_spec("litellm").origin)).parent)
    (tmp_path / ".env").write_text(
        "OPENAI_API_KEY=from-the-file\nTEAM_TOKEN=also\n", encoding="utf-8"
    )
    environ = {
        name: value
        for name, value in os.environ.items()
        if name not in {"OPENAI_API_KEY", "LITELLM_MODE"}
    }
    locations = os.pathsep.join([str(tmp_path / "lib"), str(PROJECT)])
    printed = subprocess.run(
        [sys.executable, "-c", code],
        env=environ | {"PYTHONPATH": locations, "LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    )
    assert printed.stdout.splitlines() == ["Bearer also", "from-the-file from-the-file", "None"]
