"""Webhooks, and the call to a dead-man's switch."""

import re
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from tasks.alerts.causes import NotDelivered, of_connection
from tasks.llm.failures import retry_after_s
from tasks.llm.redaction import filled_in

if TYPE_CHECKING:
    import httpx

_WORD = re.compile(rb"[a-z_]{1,60}")
"""What Slack answers to a message that it does not take, such as `channel_is_archived`."""
_WORD_BYTES = 100


async def post(address: str, content: dict[str, Any]) -> None:
    """Send JSON to an address, which may refer to the environment.

    Raises:
        NotDelivered: it was not taken.
        UsageError: a variable of the address is not set.
    """
    await _request("POST", filled_in(address).strip(), content)


async def get(address: str) -> None:
    """Call an address; errors as of `post`."""
    await _request("GET", filled_in(address).strip(), None)


async def _request(method: str, address: str, content: dict[str, Any] | None) -> None:
    """The caller bounds the time of the whole, so httpx need not bound that of its parts."""
    import httpx

    try:
        async with (
            httpx.AsyncClient(timeout=None) as client,
            client.stream(method, address, json=content) as response,
        ):
            if not response.is_success:
                raise await _refusal(response, address)
    except (httpx.InvalidURL, httpx.UnsupportedProtocol) as error:
        raise NotDelivered("its address is none that begins with http:// or https://", may_pass=False) from error
    except httpx.RequestError as error:
        raise of_connection(error) from error


async def _refusal(response: "httpx.Response", address: str) -> NotDelivered:
    status = response.status_code
    cause = f"the server answered {status}{_phrase(status)}"
    if response.is_redirect:
        cause += "; redirects are not followed, configure where this one leads"
    word = (await anext(response.aiter_raw(_WORD_BYTES), b"")).strip()
    if _WORD.fullmatch(word) and word.decode() not in address:
        cause += f": {word.decode()}"
    headers = {name.lower(): value for name, value in response.headers.items()}
    return NotDelivered(
        cause, may_pass=status == 429 or status >= 500, retry_after_s=retry_after_s(headers, time.time())
    )


def _phrase(status: int) -> str:
    try:
        return f" ({HTTPStatus(status).phrase})"
    except ValueError:
        return ""
