"""Notification blocks of Prefect, by the name under which they are saved on its server."""

import asyncio
import inspect
from typing import Any

from tasks.alerts.causes import NotDelivered, of_status
from tasks.alerts.message import Message


def notify(name: str, message: Message) -> bool:
    """Send a message through the block `type/name`.

    Raises:
        NotDelivered: there is no such block, or Prefect's server does not answer.
    """
    from prefect.blocks.abstract import NotificationBlock

    block = _loaded(name)
    if not isinstance(block, NotificationBlock):
        raise NotDelivered("this block cannot send notifications", may_pass=False)
    if (apprise := getattr(block, "_apprise_client", None)) is not None:
        for plugin in apprise:
            plugin.redirects = False
    with block.raise_on_failure():  # some only log their failures otherwise
        done: Any = block.notify(message.body, message.title)
        if inspect.iscoroutine(done):
            asyncio.run(done)
    return True


def _loaded(name: str) -> Any:
    import httpx
    import prefect.blocks.notifications  # noqa: F401 - so that Prefect knows the classes of its own blocks
    from prefect.blocks.core import Block

    try:
        return asyncio.run(Block.aload(name))
    except httpx.HTTPStatusError as error:
        raise of_status(error.response.status_code) from error
    except (httpx.TransportError, RuntimeError) as error:
        raise NotDelivered("Prefect's server cannot be reached, or the block is broken", may_pass=True) from error
    except ValueError as error:
        raise NotDelivered("Prefect's server has no such block", may_pass=False) from error
