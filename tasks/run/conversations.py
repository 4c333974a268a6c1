"""The assembled conversations, read back for those who send them."""

from collections.abc import Iterable
from dataclasses import dataclass

from tasks.rules.conversation import Message
from tasks.run.missing_work import Scope
from warehouse import Reader


@dataclass(frozen=True)
class Conversation:
    """A task's conversation: its identity and its messages in order."""

    conversation_id: str
    messages: tuple[Message, ...]


def conversations_of(reader: Reader, scope: Scope, task_ids: Iterable[str]) -> dict[str, Conversation]:
    """The conversations of some tasks, by task id; a task that was not assembled is not among them."""
    rows = reader.rows(
        """
        select task_id, conversation_id, list(role order by position) as roles, list(content order by position) as texts
        from messages inner join tasks using (benchmark, dataset_revision, task_id, conversation_id)
        where benchmark = ? and dataset_revision = ? and list_contains(?, task_id)
        group by task_id, conversation_id
        """,
        [*scope.key.values(), sorted(set(task_ids))],
    )
    return {
        row["task_id"]: Conversation(row["conversation_id"], tuple(zip(row["roles"], row["texts"], strict=True)))
        for row in rows
    }
