"""Beginning and ending an exchange: what HTTP clients do in between is watched."""

from collections.abc import Iterator
from contextlib import contextmanager

from tasks.llm.transport.wire import CURRENT, Exchange


@contextmanager
def watched(exchange: Exchange | None = None) -> Iterator[Exchange]:
    """Everything that clients do inside, in this task and what it starts, is one exchange."""
    from tasks.llm.transport import clients  # imports three HTTP clients, which whoever only reads does not need

    clients.guard()
    exchange = exchange or Exchange()
    token = CURRENT.set(exchange)
    try:
        yield exchange
    finally:
        CURRENT.reset(token)
