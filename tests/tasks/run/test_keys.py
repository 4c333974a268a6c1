"""A run that is to call a model whose key is not set is refused at once; one that has nothing to call is not."""

from pathlib import Path

import pytest

from tasks.config import Job
from tasks.rules.errors import UsageError
from tasks.run import refuse_unready
from tests.builders import job_on, row
from warehouse import Warehouse


@pytest.fixture
def job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    """A job with a hosted model and judge, on an empty warehouse and without any key."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    endpoint = {"name": "openai/gpt-4o-mini"}
    return job_on("sample", tmp_path, models=[endpoint | {"label": "mini"}], judges=[endpoint | {"label": "judge"}])


def test_a_missing_key_is_named_before_anything_starts(job: Job) -> None:
    with pytest.raises(UsageError) as refused:
        refuse_unready(job)
    assert str(refused.value) == "model mini: OPENAI_API_KEY is not set; export the key of the provider (and 1 more)"
    assert not Warehouse(job.warehouse).database.exists()


def test_only_the_key_of_what_is_called_is_needed(job: Job) -> None:
    with pytest.raises(UsageError, match="judge judge: OPENAI_API_KEY is not set"):
        refuse_unready(job, ("judge",))
    own = {"models": (job.settings.models[0].model_copy(update={"name": "hosted_vllm/own"}),)}
    local = job.model_copy(update={"settings": job.settings.model_copy(update=own)})
    assert refuse_unready(local, ("model",)) is None


def test_a_key_that_is_set_is_enough(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key")
    assert refuse_unready(job) is None


def test_where_nothing_is_left_to_call_no_key_is_needed(job: Job) -> None:
    # The only task of the split is not admitted.
    member = row("split_members", dataset_revision=job.data.revision, split="sample", task_id="t0", position=0)
    Warehouse(job.warehouse).write("split_members", [member])
    Warehouse(job.warehouse).publish()
    assert refuse_unready(job) is None


@pytest.mark.parametrize("own", [{"api_base": "http://localhost:1/v1"}, {"headers": {"X-Team": "evals"}}])
def test_an_endpoint_of_ones_own_needs_no_key_of_the_provider(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own: dict[str, object]
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert refuse_unready(job_on("sample", tmp_path, models=[{"name": "openai/gpt-4o-mini", **own}])) is None
