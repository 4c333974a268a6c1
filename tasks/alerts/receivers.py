"""What sends a message to each kind of receiver, by Apprise or by a block of Prefect."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

from tasks.alerts import blocks
from tasks.alerts.attempt import Send
from tasks.alerts.causes import NotDelivered
from tasks.alerts.message import Message
from tasks.config.operations import Email, Receiver
from tasks.llm import filled_in

if TYPE_CHECKING:
    from apprise import AppriseAsset, NotifyBase

_LEFT_OUT = {"version": "", "attachments": "", "type": ""}
"""Keys that Apprise would add to a webhook's JSON."""


def sends(receiver: Receiver, message: Message, timeout_s: float) -> list[Send]:
    """What sends a message to a receiver; mail goes to each address by itself, so that only failed ones are retried."""
    send = partial(_send, message=message, timeout_s=timeout_s)
    if receiver.prefect is not None:
        return [partial(blocks.notify, receiver.prefect, message)]
    if receiver.email is not None:
        return [partial(send, partial(_mail, receiver.email, to)) for to in receiver.email.to]
    if receiver.apprise is not None:
        return [partial(send, partial(_by_url, receiver.apprise))]
    if receiver.slack is not None:
        chat = _LEFT_OUT | {"title": "", "message": "text"}
        return [partial(send, partial(_hook, receiver.slack, chat), body=message.as_chat)]
    return [partial(send, partial(_hook, receiver.webhook or "", _LEFT_OUT | message.as_json))]


def call(address: str, timeout_s: float) -> bool:
    """Call an address, which may refer to the environment."""
    import requests

    with requests.get(
        filled_in(address).strip(), timeout=2 * timeout_s, verify=_authorities(), stream=True, allow_redirects=False
    ) as answer:
        return answer.ok


def _send(
    service: "Callable[[AppriseAsset], NotifyBase | None]",
    message: Message,
    timeout_s: float,
    body: str | None = None,
) -> bool:
    from apprise import Apprise, AppriseAsset, NotifyFormat

    asset = AppriseAsset(app_id="prbench", app_desc="prbench", http_redirects=False, async_mode=False)
    plugin = service(asset)
    if plugin is None:
        raise NotDelivered("Apprise does not know such an address, or lacks a package for it", may_pass=False)
    plugin.redirects = False  # whatever its address says
    plugin.optional = False  # a failure is a failure
    plugin.socket_connect_timeout = plugin.socket_read_timeout = 2 * timeout_s  # the attempt ends before
    if plugin.verify_certificate:
        plugin.verify_certificate = _authorities()  # type: ignore[assignment]  # handed to `requests` as it is
    apprise = Apprise(asset=asset)
    apprise.add(plugin)
    return apprise.notify(body or message.body, message.title, body_format=NotifyFormat.TEXT) is True


def _authorities() -> bool | str:
    """How `requests` verifies certificates: by its own authorities, or those that OpenSSL is configured to use."""
    return os.environ.get("SSL_CERT_FILE") or True


def _by_url(url: str, asset: "AppriseAsset") -> "NotifyBase | None":
    from apprise import Apprise

    return Apprise.instantiate(filled_in(url).strip(), asset=asset)


def _hook(address: str, payload: Mapping[str, object], asset: "AppriseAsset") -> "NotifyBase":
    from apprise.plugins.custom_json import NotifyJSON

    parts = urlsplit(filled_in(address).strip())
    if parts.scheme not in {"http", "https"}:
        raise NotDelivered("it has no valid address that begins with http:// or https://", may_pass=False)
    user, _, host = parts.netloc.rpartition("@")
    name, _, password = user.partition(":")
    path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path
    return NotifyJSON(  # type: ignore[no-untyped-call]  # Apprise's plugins have no types
        asset=asset, secure=parts.scheme == "https", host=host, fullpath=path, user=name, password=password,
        payload=payload,
    )  # fmt: skip


def _mail(email: Email, to: str, asset: "AppriseAsset") -> "NotifyBase":
    from apprise.plugins.email import NotifyEmail

    return NotifyEmail(  # type: ignore[no-untyped-call]  # as above
        asset=asset, format="text", smtp_host=email.host, host=email.host, port=email.port,
        secure_mode={"starttls": "starttls", "tls": "ssl", "none": "insecure"}[email.security],
        user=quote(filled_in(email.user or "")), password=quote(filled_in(email.password or "")),
        from_addr=email.sender, targets=to, headers={"Auto-Submitted": "auto-generated"},
    )  # fmt: skip
