"""A sender as the driver sees it, with a made-up process in Ray's place."""

import asyncio
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from tasks.llm.replies import Reply
from tasks.llm.senders.cluster import Node
from tasks.llm.senders.pool import RemoteSender
from tasks.llm.senders.process import Equipment


class Messages:
    """What is sent to one method: the answers are given later."""

    def __init__(self) -> None:
        self.answers: list[Future[Any]] = []

    def remote(self) -> "Messages":
        self.answers.append(Future())
        return self

    def future(self) -> "Future[Any]":
        return self.answers[-1]


class Process:
    """A process that sends what it is given."""

    def __init__(self) -> None:
        self.outcomes = Messages()


def test_the_attempts_that_a_sender_has_made_are_counted_and_a_late_answer_disturbs_nobody() -> None:
    async def work() -> int:
        process = Process()
        sender = RemoteSender(process, Node("a", "first", 1), Equipment(1, {}, {}, 0.0))
        receiving = asyncio.create_task(sender.receive(lambda: None))
        while not process.outcomes.answers:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0)
        process.outcomes.answers[0].set_result((5.0, [(1, Reply("ok")), (2, Reply("ok"))]))
        while len(process.outcomes.answers) < 2:  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0)
        receiving.cancel()
        with suppress(asyncio.CancelledError):
            await receiving
        process.outcomes.answers[1].set_result((10.0, []))  # as Ray's client does: it raises for one that is cancelled
        return sender.state.n_made

    assert asyncio.run(work()) == 2
