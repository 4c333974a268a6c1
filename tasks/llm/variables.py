"""Environment variables, with those of LiteLLM's `.env` file, and the refusal of those that no
request can use.
"""

import importlib.util
import os
import ssl
from collections.abc import Collection
from functools import cache
from pathlib import Path
from urllib.parse import urlsplit

from tasks.rules.errors import UsageError


def variable(name: str) -> str | None:
    """Return the value of an environment variable; None if it is not set."""
    if name not in os.environ:
        read_env_file()
    return os.environ.get(name)


@cache
def read_env_file() -> None:
    """Set the variables of LiteLLM's `.env` file now: keys are looked up before LiteLLM is
    imported.
    """
    file = env_file()
    if file:
        from dotenv import dotenv_values  # a dependency of LiteLLM

        # Prefect's settings are left out: recording of a run must not depend on whether a key was
        # looked up before.
        for name, value in dotenv_values(file).items():
            if value is not None and not name.startswith("PREFECT_"):
                os.environ.setdefault(name, value)


def env_file() -> Path | None:
    """Return the file that LiteLLM reads: the nearest `.env` in the folders above its own; None if
    there is none.
    """
    spec = importlib.util.find_spec("litellm")
    if os.environ.get("LITELLM_MODE", "DEV") != "DEV" or spec is None or spec.origin is None:
        return None
    for folder in Path(spec.origin).parents:
        file = folder / ".env"
        if file.is_file():
            return file
    return None


_FOLDER_OF_CERTIFICATES = "SSL_CERT_DIR"
_CERTIFICATES = ("SSL_CERT_FILE", _FOLDER_OF_CERTIFICATES, "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")
"""The variables that name certificates for every HTTPS request, of one library or another."""
_PROXIES = ("ALL_PROXY", "HTTP_PROXY", "HTTPS_PROXY")
_WEB: tuple[str, ...] = ("http", "https")


def refuse_unusable_network() -> None:
    """Refuse certificates and proxies with which every request would fail, even to this machine,
    without saying why.

    Raises:
        UsageError: a variable names certificates that cannot be read, or a proxy that no library
            here can use.
    """
    refuse_unreadable_certificates()
    for name, address in proxies().items():
        refuse_unusable_proxy(name, address)


def refuse_unreadable_certificates() -> None:
    """Refuse certificates that cannot be read.

    Raises:
        UsageError: a variable names nothing that exists, a folder instead of a file or the reverse,
            or a file without certificates.
    """
    for name in _CERTIFICATES:
        path = variable(name)
        flaw = _flaw_of_certificates(name, path) if path else None
        if flaw is not None:
            raise UsageError(
                f"{name} is {path}, which cannot be used ({flaw}); correct or unset it"
            )


def _flaw_of_certificates(name: str, path: str) -> str | None:
    """Return why the certificates that a variable names cannot be read; None if they can."""
    if name == _FOLDER_OF_CERTIFICATES:
        if any(Path(folder).is_dir() for folder in path.split(os.pathsep)):
            return None
        return "it is no folder" if Path(path).exists() else "it does not exist"
    if Path(path).is_dir():  # the libraries of the other variables also take a folder
        return "it is a folder" if name == "SSL_CERT_FILE" else None
    try:
        ssl.create_default_context(cafile=path)
    except FileNotFoundError:
        return "it does not exist"
    except OSError as error:
        return f"no certificate in it: {error}"
    return None


def proxies() -> dict[str, str]:
    """Return the address of each proxy that the environment names, by its variable; `http` is the
    default scheme.
    """
    read_env_file()
    addresses = {}
    for name in sorted(os.environ):
        address = os.environ[name]
        if name.upper() in _PROXIES and address:
            addresses[name] = address if "://" in address else f"http://{address}"
    return addresses


def refuse_unusable_proxy(name: str, address: str) -> None:
    """Refuse a proxy that no library here can use; SOCKS needs one that is not installed with this
    project.

    Raises:
        UsageError: its address has another scheme or no host, or is no address.
    """
    schemes = _WEB
    hint = ""
    if importlib.util.find_spec("socksio") is not None:
        schemes = (*_WEB, "socks5", "socks5h")
    elif address.startswith("socks5"):
        hint = "; SOCKS needs the package socksio"
    refuse_unusable_address(name, address, schemes, hint)


def refuse_unusable_address(
    name: str,
    address: str,
    schemes: Collection[str] = _WEB,
    hint: str = "",
) -> None:
    """Refuse an address from the environment that no request can use; it is not shown, for it may
    hold a secret.

    Raises:
        UsageError: it has none of these schemes or no host, or is no address; `hint` says more.
    """
    flaw = _flaw_of_address(address, schemes)
    if flaw is not None:
        raise UsageError(f"{name} cannot be used ({flaw}{hint}); correct or unset it")


def _flaw_of_address(address: str, schemes: Collection[str]) -> str | None:
    if not address.strip():
        return "it is blank"
    if address.split() != [address]:
        return "it contains a space or a line break"
    try:
        parts = urlsplit(address)
        parts.port  # noqa: B018 - raises an error if it is invalid
    except ValueError:
        return "its host or port is invalid"
    if parts.scheme not in schemes:
        beginnings = [f"{scheme}://" for scheme in schemes]
        return f"it does not begin with {' or '.join(beginnings)}"
    return None if parts.hostname else "it has no host"
