"""Making a request so that no redirect is followed and no reply is read without end."""

from collections.abc import Iterator
from contextlib import contextmanager

from tasks.llm.wire import Exchange, under_way


@contextmanager
def watched(exchange: Exchange | None = None) -> Iterator[Exchange]:
    """Everything that HTTP clients do inside, in this task and what it starts, is one exchange."""
    from tasks.llm.clients import guard

    guard()
    with under_way(exchange or Exchange()) as watched_one:
        yield watched_one
