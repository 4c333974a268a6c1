"""Assemble: build the conversations of admitted tasks in the form that is sent to a model.

`messages` holds each conversation exactly as it is sent to models. Reference texts come before the
prompt of their turn.

`conversation_id` is a hash of the messages. A task whose conversation has not changed keeps its
responses under a new configuration. Scratchpad and canary are not in the rows that this stage
reads.

Exports build conversations that are not assembled yet (`complete_conversations`), so an export can
directly follow an import.
"""

from collections.abc import Iterable, Mapping
from itertools import groupby
from typing import Any

import sql
from tasks.config.job import Job
from tasks.rules.conversation import build_messages
from tasks.rules.identity import conversation_id
from tasks.rules.records import Turn
from tasks.run.missing_work import Conversation, WantedTasks, conversations_of, wanted_tasks
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse


def assemble(job: Job) -> StageReport:
    """Write the messages of every wanted task that has none; reference texts precede their user
    turn.

    It reads no rows with the scratchpad or the canary, so these are never sent.
    """
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        wanted = wanted_tasks(job, reader)
        turns = turns_to_assemble(reader, wanted)
    built = conversations_of_turns(turns)
    rows = [
        {
            **wanted.key,
            "task_id": task_id,
            "conversation_id": each.conversation_id,
            "position": position,
            "role": role,
            "content": content,
        }
        for task_id, each in built.items()
        for position, (role, content) in enumerate(each.messages)
    ]
    warehouse.write("message_rows", rows)
    warehouse.publish()
    note = f"{len(built)} conversations built, {len(wanted.task_ids) - len(built)} already present"
    return StageReport("assemble", rows=len(built), notes=[note])


def complete_conversations(
    reader: Reader, wanted: WantedTasks, task_ids: Iterable[str]
) -> dict[str, Conversation]:
    """Return the conversations of some wanted tasks, by task id, even of tasks that are not
    assembled yet.
    """
    some = wanted._replace(task_ids=tuple(sorted(set(task_ids))))
    return conversations_of_turns(turns_to_assemble(reader, some)) | conversations_of(
        reader, some, some.task_ids
    )


def turns_to_assemble(reader: Reader, wanted: WantedTasks) -> list[dict[str, Any]]:
    """Return the user turns of the wanted tasks that have no messages yet."""
    return reader.rows(
        sql.read("queries/assemble/turns_to_assemble"),
        {**wanted.key, "tasks": list(wanted.task_ids)},
    )


def conversations_of_turns(turns: Iterable[Mapping[str, Any]]) -> dict[str, Conversation]:
    """Return the conversations that consist of user turns, by task id."""
    built = {}
    for task_id, rows in groupby(turns, key=lambda turn: turn["task_id"]):
        turns_of_task = [
            Turn(row["prompt"], tuple(row["reference_texts"] or ()), row["response"])
            for row in rows
        ]
        messages = build_messages(turns_of_task)
        built[task_id] = Conversation(conversation_id(messages), tuple(messages))
    return built
