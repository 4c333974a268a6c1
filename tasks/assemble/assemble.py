"""Assemble: the conversations of admitted tasks, as they are sent to a model."""

from itertools import groupby
from typing import Any

import sql
from tasks.config import Job
from tasks.rules.conversation import build_messages
from tasks.rules.identity import conversation_id
from tasks.rules.records import Turn
from tasks.run import StageReport, WantedTasks, wanted_tasks
from warehouse import Reader, Warehouse


def assemble(job: Job) -> StageReport:
    """Write the messages of every wanted task that has none yet, each user turn with its reference texts in front.

    The scratchpad and the canary are not in the rows that this reads, and so cannot leave.
    """
    warehouse = Warehouse(job.warehouse)
    with warehouse.reader() as reader:
        wanted = wanted_tasks(job, reader)
        turns = turns_to_assemble(reader, wanted)
    rows: list[dict[str, Any]] = []
    n_made = 0
    for task_id, of_task in groupby(turns, key=lambda turn: turn["task_id"]):
        conversation = [Turn(row["prompt"], tuple(row["reference_texts"]), row["response"]) for row in of_task]
        rows += _message_rows({**wanted.key, "task_id": task_id}, conversation)
        n_made += 1
    warehouse.write("message_rows", rows)
    warehouse.publish()
    note = f"{n_made} conversations built, {len(wanted.task_ids) - n_made} already present"
    return StageReport("assemble", rows=n_made, notes=[note])


def turns_to_assemble(reader: Reader, wanted: WantedTasks) -> list[dict[str, Any]]:
    """The user turns of the wanted tasks that have no messages yet."""
    parameters = {**wanted.key, "tasks": list(wanted.task_ids)}
    return reader.rows(sql.read("questions/assemble/turns_to_assemble"), parameters)


def _message_rows(key: dict[str, str], conversation: list[Turn]) -> list[dict[str, Any]]:
    messages = build_messages(conversation)
    identity = conversation_id(messages)
    return [
        {**key, "conversation_id": identity, "position": position, "role": role, "content": content}
        for position, (role, content) in enumerate(messages)
    ]
