"""A model's own system prompt: sent first, part of a response's identity, and hidden from
judges.
"""

from pathlib import Path

import pytest

from tasks.config.models import Model
from tasks.plan.plan import plan
from tasks.run.judge_configs import target_of
from tests.faults.server import FaultServer
from tests.kit import endpoint, job_on, judged, prepared, sampled
from warehouse import Warehouse

PROMPT = "Reply in one short sentence, and say 'indigo' first."


def test_it_is_part_of_the_identity_only_where_it_is_set() -> None:
    plain, *others = (
        target_of(Model(name="openai/x", system_prompt=prompt)) for prompt in (None, "a", "b")
    )
    assert "system_prompt" not in plain.identity
    assert len({each.config_hash for each in (plain, *others)}) == 3


@pytest.mark.slow
@pytest.mark.usefixtures("without_scores")
def test_the_model_gets_it_before_the_conversation_and_the_judge_never(tmp_path: Path) -> None:
    with FaultServer() as server:
        plain = endpoint("plain", server.api_base, name="hosted_vllm/candidate")
        models = [
            plain,
            {
                **plain,
                "label": "prompted",
                "system_prompt": PROMPT,
            },
        ]
        job = job_on("sample", tmp_path, models=models, judges=[endpoint("judge", server.api_base)])
        job = prepared(job.model_copy(update={"limit": 2}))
        planned = {each.label: each for each in plan(job)}
        sampled(job)
        judged(job)
        prompts_sent = list(server.book)
    to_models = [body["messages"] for body in prompts_sent if body["model"] == "candidate"]
    to_judges = [body["messages"] for body in prompts_sent if body["model"] == "judge"]

    prompted = [
        messages for messages in to_models if messages[0] == {"role": "system", "content": PROMPT}
    ]
    others = [messages for messages in to_models if messages[0]["role"] != "system"]
    assert len(prompted) == 2
    assert len(others) == 2
    assert sorted(map(str, others)) == sorted(str(messages[1:]) for messages in prompted)
    more = planned["prompted"].prompt_tokens - planned["plain"].prompt_tokens
    assert 2 * 5 < more < 2 * 25  # the plan counts it
    assert to_judges
    assert not any("indigo" in str(messages) for messages in to_judges)
    with Warehouse(job.warehouse).reader() as reader:
        rows = reader.rows(
            "select model, conversation_id, model_config_hash from responses order by model,"
            " task_id"
        )
        assert reader.value("select count(*) from messages where content like '%indigo%'") == 0
    assert [row["conversation_id"] for row in rows[:2]] == [
        row["conversation_id"] for row in rows[2:]
    ]
    assert len({row["model_config_hash"] for row in rows}) == 2
