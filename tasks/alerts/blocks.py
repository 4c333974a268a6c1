"""Notification blocks of Prefect's, by the name under which they are saved on its server."""

import asyncio
import inspect
from typing import Any

from tasks.alerts.causes import NotDelivered, of_connection
from tasks.llm.transport.watching import watched
from tasks.llm.transport.wire import Redirected


async def notify(name: str, body: str, subject: str) -> None:
    """Have a block, `type/name`, notify whoever it notifies.

    Raises:
        NotDelivered: there is no such block, Prefect's server does not answer, or the block failed.
    """
    import httpx
    from prefect.blocks.abstract import NotificationBlock

    block = await _loaded(name)
    if not isinstance(block, NotificationBlock):
        raise NotDelivered("it is a block that notifies nobody", may_pass=False)
    try:
        with watched() as exchange, block.raise_on_failure():  # some only log their failures otherwise
            await _notified(block, body, subject)
    except Redirected as error:
        raise NotDelivered(f"the block was answered {error}", may_pass=False) from error
    except httpx.HTTPStatusError as error:
        raise _answered("the block was answered", error.response.status_code) from error
    except httpx.TransportError as error:
        raise of_connection(error) from error
    except Exception as error:
        if isinstance(exchange.fault, Redirected):
            raise NotDelivered(f"the block was answered {exchange.fault}", may_pass=False) from exchange.fault
        # Any code may be behind a block; its texts may hold its address.
        raise NotDelivered(f"the block failed ({type(error).__name__})", may_pass=True) from error


async def _loaded(name: str) -> Any:
    import httpx
    import prefect.blocks.notifications  # noqa: F401 - so that Prefect knows the classes of its own blocks
    from prefect.blocks.core import Block

    try:
        return await Block.aload(name)
    except httpx.HTTPStatusError as error:
        raise _answered("Prefect's server answered", error.response.status_code) from error
    except (httpx.TransportError, RuntimeError) as error:
        raise NotDelivered("Prefect's server cannot be reached, or the block is broken", may_pass=True) from error
    except ValueError as error:
        raise NotDelivered("Prefect's server has no such block", may_pass=False) from error


async def _notified(block: Any, body: str, subject: str) -> None:
    """Blocks of one's own may notify in either style."""
    if hasattr(block, "anotify"):
        await block.anotify(body, subject)
    elif inspect.iscoroutinefunction(block.notify):
        await block.notify(body, subject)
    else:
        await asyncio.to_thread(block.notify, body, subject)


def _answered(what: str, status: int) -> NotDelivered:
    return NotDelivered(f"{what} {status}", may_pass=status == 429 or status >= 500)
