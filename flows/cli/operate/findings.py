"""What `prbench doctor` finds, and whether an address answers."""

import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from tasks.llm import filled_in
from tasks.rules.errors import UsageError

_CONNECT_S = 3.0


@dataclass(frozen=True)
class Finding:
    """One thing that was checked; `is_ok` is None where doctor does not know. `is_damage`: stored data is damaged."""

    subject: str
    is_ok: bool | None
    detail: str
    is_damage: bool = False


def host_and_port(address: str) -> tuple[str, int]:
    """The host and port of a configured address; references to the environment are filled in.

    Raises:
        UsageError: a variable is not set, or the port is no port.
    """
    parts = urlsplit(filled_in(address))
    try:
        return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)
    except ValueError as error:
        raise UsageError(f"the address has no valid port ({error}); correct it in the configuration") from error


def answers(subject: str, host: str, port: int) -> Finding:
    """Whether something listens there."""
    try:
        with socket.create_connection((host, port), timeout=_CONNECT_S):
            return Finding(subject, True, f"{host}:{port} answers")
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        return Finding(
            subject, False, f"{host}:{port} cannot be reached ({why}); start the server or correct the address"
        )
