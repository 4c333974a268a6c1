"""A model's own system prompt: sent first, part of a response's identity, and hidden from
judges.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from tasks.config.job import Job
from tasks.plan.plan import plan
from tests.faults.server import FaultServer
from tests.kit import (
    endpoint,
    few_published,
    job_on,
    judged,
    prepared,
    prepared_sample,
    rows_in,
    sampled,
)

pytestmark = pytest.mark.slow
PROMPT = "Reply in one short sentence, and say 'indigo' first."
N_TASKS = 2


@pytest.fixture(scope="module")
def server() -> Iterator[FaultServer]:
    with FaultServer() as running:
        yield running


@pytest.fixture(scope="module")
def job(server: FaultServer, tmp_path_factory) -> Job:
    """A job with a model without and the same one with the prompt, sampled and judged."""
    plain = endpoint("plain", server.api_base, name="hosted_vllm/candidate")
    prompted = plain | {"label": "prompted", "system_prompt": PROMPT}
    job = job_on(
        "sample",
        tmp_path_factory.mktemp("prompted"),
        models=[plain, prompted],
        judges=[endpoint("judge", server.api_base)],
    )
    job = prepared(job).model_copy(update={"limit": N_TASKS})
    with few_published():
        sampled(job)
        judged(job)
    return job


def messages_to(model: str, server: FaultServer) -> list[Any]:
    return [
        request["messages"] for request in server.book if request["model"] == model
    ]


def test_a_model_gets_its_system_prompt_before_the_conversation(job, server):
    prompt = {"role": "system", "content": PROMPT}
    conversations = messages_to("candidate", server)
    prompted = [messages for messages in conversations if messages[0] == prompt]

    assert len(conversations) == 2 * N_TASKS
    assert len(prompted) == N_TASKS
    for messages in prompted:
        assert messages[1:] in conversations


def test_a_judge_never_sees_the_system_prompt(job, server):
    prompts = messages_to("judge", server)

    assert prompts
    assert "indigo" not in str(prompts)


def test_a_system_prompt_is_part_of_the_response_and_not_of_the_conversation(job):
    [identities] = rows_in(
        job,
        "select count(distinct conversation_id) as conversations,"
        " count(distinct model_config_hash) as models from responses",
    )

    assert identities == {"conversations": N_TASKS, "models": 2}
    assert rows_in(job, "from messages where content like '%indigo%'") == []


def test_the_plan_counts_the_tokens_of_a_system_prompt(job):
    unsampled_job = job.model_copy(update={"warehouse": prepared_sample()})
    planned_rows = plan(unsampled_job)
    n_tokens = {planned.label: planned.prompt_tokens or 0 for planned in planned_rows}

    n_tokens_of_prompt = (n_tokens["prompted"] - n_tokens["plain"]) / N_TASKS
    assert 5 < n_tokens_of_prompt < 25
