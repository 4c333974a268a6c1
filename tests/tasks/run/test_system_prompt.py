"""A model's own system prompt: sent first, part of a response's identity, and hidden from
judges.
"""

from typing import Any

import pytest

from tasks.config.job import Job
from tasks.plan.plan import plan
from tests.faults.server import FaultServer
from tests.kit import endpoint, job_on, judged, prepared, rows_in, sampled

pytestmark = pytest.mark.usefixtures("without_scores")
PROMPT = "Reply in one short sentence, and say 'indigo' first."


@pytest.fixture
def job(server: FaultServer, tmp_path) -> Job:
    """A job with a model without and the same one with the prompt, on two tasks."""
    plain = endpoint("plain", server.api_base, name="hosted_vllm/candidate")
    prompted = {
        **plain,
        "label": "prompted",
        "system_prompt": PROMPT,
    }
    judge = endpoint("judge", server.api_base)
    configured = job_on("sample", tmp_path, models=[plain, prompted], judges=[judge])
    return prepared(configured.model_copy(update={"limit": 2}))


def messages_to(model: str, server: FaultServer) -> list[Any]:
    return [request["messages"] for request in server.book if request["model"] == model]


@pytest.mark.slow
def test_a_model_gets_its_system_prompt_before_the_conversation(job, server):
    sampled(job)

    prompt = {"role": "system", "content": PROMPT}
    conversations = messages_to("candidate", server)
    prompted = [messages for messages in conversations if messages[0] == prompt]
    assert len(conversations) == 4
    assert len(prompted) == 2
    for messages in prompted:
        assert messages[1:] in conversations


@pytest.mark.slow
def test_a_judge_never_sees_the_system_prompt(job, server):
    sampled(job)
    judged(job)

    prompts = messages_to("judge", server)
    assert prompts
    assert "indigo" not in str(prompts)


@pytest.mark.slow
def test_a_system_prompt_is_part_of_the_response_and_not_of_the_conversation(job):
    sampled(job)

    [identities] = rows_in(
        job,
        "select count(distinct conversation_id) as conversations,"
        " count(distinct model_config_hash) as models from responses",
    )
    assert identities == {"conversations": 2, "models": 2}
    assert rows_in(job, "from messages where content like '%indigo%'") == []


@pytest.mark.slow
def test_the_plan_counts_the_tokens_of_a_system_prompt(job):
    n_tokens = {planned.label: planned.prompt_tokens or 0 for planned in plan(job)}

    assert 2 * 5 < n_tokens["prompted"] - n_tokens["plain"] < 2 * 25
