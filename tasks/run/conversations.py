"""The assembled conversations, read back for those who send them."""

from collections.abc import Iterable
from dataclasses import dataclass

import sql
from tasks.config import Model
from tasks.rules.conversation import Message
from tasks.run.missing_work import WantedTasks
from warehouse import Reader


@dataclass(frozen=True)
class Conversation:
    """A task's conversation: its identity and its messages in order."""

    conversation_id: str
    messages: tuple[Message, ...]


def conversations_of(reader: Reader, wanted: WantedTasks, task_ids: Iterable[str]) -> dict[str, Conversation]:
    """The conversations of some tasks, by task id; a task that was not assembled is not among them."""
    parameters = {**wanted.key, "tasks": sorted(set(task_ids))}
    rows = reader.rows(sql.read("questions/run/conversations"), parameters)
    return {
        row["task_id"]: Conversation(row["conversation_id"], tuple(zip(row["roles"], row["texts"], strict=True)))
        for row in rows
    }


def messages_to(model: Model, conversation: Conversation) -> tuple[Message, ...]:
    """What a model is sent: the conversation, with the model's system prompt in front where it has one."""
    prompt = model.system_prompt
    return conversation.messages if prompt is None else (("system", prompt), *conversation.messages)
