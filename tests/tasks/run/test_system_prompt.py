"""A model's own system prompt: sent first, part of what a response is, and nothing that a judge reads."""

from pathlib import Path
from typing import Any

import pytest

from flows.run.arguments import Arguments
from flows.run.config import load_job
from tasks.config.models import Model
from tasks.plan.plan import plan
from tasks.rules.errors import UsageError
from tasks.run.judgings import target_of
from tests.faults.server import FaultServer
from tests.kit import job_on, judged, prepared, sampled
from warehouse import Warehouse

PROMPT = "Answer in one short sentence, and say 'indigo' first."


def models(server: FaultServer, **prompted: Any) -> list[dict[str, Any]]:
    at = {"api_base": server.api_base, "name": "hosted_vllm/candidate"}
    return [{**at, "label": "plain"}, {**at, "label": "prompted", **prompted}]


def settings(server: FaultServer, **prompted: Any) -> dict[str, Any]:
    judge = {"name": "hosted_vllm/judge", "api_base": server.api_base, "label": "judge"}
    return {"models": models(server, **prompted), "judges": [judge]}


def test_it_is_part_of_the_identity_only_where_it_is_set() -> None:
    plain = Model(name="openai/x")
    assert "system_prompt" not in target_of(plain).identity
    hashes = {target_of(Model(name="openai/x", system_prompt=prompt)).config_hash for prompt in (None, "a", "b")}
    assert len(hashes) == 3
    assert target_of(plain).config_hash in hashes


@pytest.mark.slow
def test_the_model_gets_it_before_the_conversation_and_the_judge_never(tmp_path: Path) -> None:
    with FaultServer() as server:
        job = job_on("sample", tmp_path, **settings(server, system_prompt=PROMPT))
        job = prepared(job.model_copy(update={"limit": 2}))
        sampled(job)
        judged(job)
        asked = list(server.book)
    to_models = [body["messages"] for body in asked if body["model"] == "candidate"]
    to_judges = [body["messages"] for body in asked if body["model"] == "judge"]

    prompted = [messages for messages in to_models if messages[0] == {"role": "system", "content": PROMPT}]
    plain = [messages for messages in to_models if messages[0]["role"] != "system"]
    assert (len(prompted), len(plain)) == (2, 2)
    assert sorted(map(str, plain)) == sorted(str(messages[1:]) for messages in prompted)
    assert to_judges
    assert not any("indigo" in str(messages) for messages in to_judges)
    with Warehouse(job.warehouse).reader() as reader:
        rows = reader.rows("select model, conversation_id, model_config_hash from responses order by model, task_id")
        assert reader.value("select count(*) from messages where content like '%indigo%'") == 0
    assert [row["conversation_id"] for row in rows[:2]] == [row["conversation_id"] for row in rows[2:]]
    assert len({row["model_config_hash"] for row in rows}) == 2


@pytest.mark.slow
def test_another_prompt_samples_again_and_the_same_makes_no_call(tmp_path: Path) -> None:
    with FaultServer() as server:
        job = job_on("sample", tmp_path, **settings(server, system_prompt=PROMPT))
        job = prepared(job.model_copy(update={"limit": 2}))
        sampled(job)
        n_calls = len(server.book)
        sampled(job)
        assert len(server.book) == n_calls
        changed = job_on("sample", tmp_path, **settings(server, system_prompt="Take your time.")).settings
        sampled(job.model_copy(update={"settings": changed}))
        assert len(server.book) == n_calls + 2


@pytest.mark.slow
def test_a_plan_counts_it(tmp_path: Path) -> None:
    with FaultServer() as server:
        job = job_on("sample", tmp_path, **settings(server, system_prompt="word " * 300))
        planned = {each.label: each for each in plan(prepared(job.model_copy(update={"limit": 2})))}

    more = planned["prompted"].prompt_tokens - planned["plain"].prompt_tokens
    assert 2 * 250 < more < 2 * 350


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("judges: [{name: openai/y, system_prompt: x}]", "judges[0].system_prompt: there is no such key"),
        ("rubric_writer: {name: openai/y, system_prompt: x}", "rubric_writer: `system_prompt` is for models that are"),
        ("models: [{name: openai/y, system_prompt: ''}]", "models[0].system_prompt: "),
    ],
)
def test_only_a_model_that_is_evaluated_has_one(tmp_path: Path, text: str, problem: str) -> None:
    file = tmp_path / "night.yaml"
    file.write_text(f"dataset: {{source: sample}}\n{text}\n")

    with pytest.raises(UsageError) as refused:
        load_job(Arguments(config=file))
    assert problem in str(refused.value)
