"""Assemble: build the conversations of admitted tasks in the form that is sent to a model.

`messages` (a view of the written `message_rows`) holds each conversation exactly as it is sent to
models. Reference texts come before the prompt of their turn.

`conversation_id` is a hash of the messages. A task whose conversation has not changed keeps its
responses under a new configuration. Scratchpad and canary are not in the rows that this stage
reads, so they are never sent.

Exports build conversations that are not assembled yet (`complete_conversations`), so an export can
directly follow an import.
"""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

from tasks.config.job import Job
from tasks.rules.conversation import build_messages
from tasks.rules.identity import conversation_id
from tasks.rules.records import Turn
from tasks.run.missing_work import Conversation, WantedTasks, conversations_of, wanted_tasks
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse


def assemble(job: Job) -> StageReport:
    """Write the messages of every wanted task that has none."""
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        tasks = wanted_tasks(job, reader)
        turns = turns_to_assemble(reader, tasks)
    conversations = conversations_of_turns(turns)
    rows = []
    for task_id, conversation in conversations.items():
        for position, (role, content) in enumerate(conversation.messages):
            rows.append(
                {
                    **tasks.key,
                    "task_id": task_id,
                    "conversation_id": conversation.conversation_id,
                    "position": position,
                    "role": role,
                    "content": content,
                }
            )
    warehouse.write("message_rows", rows)
    warehouse.publish_results()
    n_built = len(conversations)
    n_present = len(tasks.task_ids) - n_built
    note = f"{n_built} conversations built, {n_present} already present"
    return StageReport("assemble", rows=n_built, notes=[note])


def complete_conversations(
    reader: Reader,
    tasks: WantedTasks,
    task_ids: Iterable[str],
) -> dict[str, Conversation]:
    """Return the conversations of some wanted tasks by task id: the stored ones, and for tasks
    without messages those that would be built.
    """
    tasks = tasks._replace(task_ids=tuple(sorted(set(task_ids))))
    conversations = conversations_of_turns(turns_to_assemble(reader, tasks))
    return conversations | conversations_of(reader, tasks, tasks.task_ids)


def turns_to_assemble(reader: Reader, tasks: WantedTasks) -> list[dict[str, Any]]:
    """Return the turns (prompt and response) of the wanted tasks that have no messages yet."""
    parameters = {**tasks.key, "tasks": list(tasks.task_ids)}
    return reader.query("queries/assemble/turns_to_assemble", parameters)


def conversations_of_turns(turns: Iterable[Mapping[str, Any]]) -> dict[str, Conversation]:
    """Return the conversations that consist of turns, by task id."""
    conversations = {}
    for task_id, rows in groupby(turns, key=lambda turn: turn["task_id"]):
        task_turns = []
        for row in rows:
            reference_texts = tuple(row["reference_texts"] or ())
            task_turns.append(Turn(row["prompt"], reference_texts, row["response"]))
        messages = build_messages(task_turns)
        conversations[task_id] = Conversation(conversation_id(messages), messages)
    return conversations
