"""HTTP below LiteLLM: redirects are refused and bodies are bounded.

LiteLLM creates its own clients, which follow redirects and read bodies of any size; so do the
libraries behind Apprise. Their classes are patched once per process, when the first exchange
begins, to use the current exchange; outside of an exchange they work as before.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from tasks.llm.exchange import CURRENT, Exchange


@contextmanager
def watched(exchange: Exchange | None = None) -> Iterator[Exchange]:
    """Make all requests of this task and its subtasks one exchange, until the block ends."""
    from tasks.llm.patches import patch_libraries  # the import of the libraries takes a second

    patch_libraries()

    exchange = exchange or Exchange()
    token = CURRENT.set(exchange)
    try:
        yield exchange
    finally:
        CURRENT.reset(token)
