"""The Prefect server that records runs: the one that Prefect's settings name, else the one of `prbench serve`."""

import os
from pathlib import Path

from flows.server.own_server import OwnServer, is_locked, named_server, url_on

_NAME = "PREFECT_API_URL"


def may_know_a_server() -> bool:
    """Whether a server could be known, as far as that can be told without importing Prefect, which takes 3 s."""
    return bool(os.environ.get(_NAME)) or _settings_may_name_one() or running_server() is not None


def use_known_server() -> str | None:
    """Have Prefect talk to the server that is named or is running here, if there is one, and give its address."""
    if named := named_server():
        return named
    server = running_server()
    if server is None:
        return None
    server.use()
    return server.url


def running_server() -> OwnServer | None:
    """The server of this user that `prbench serve` keeps: it holds a lock on the file with its secret."""
    for path in sorted((_home() / "prbench").glob("server-*.secret")):
        with path.open("rb", buffering=0) as file:
            port, secret = path.stem.removeprefix("server-"), file.read().decode()
            if port.isdecimal() and secret and is_locked(file):
                return OwnServer(url_on(int(port)), secret)
    return None


def _settings_may_name_one() -> bool:
    """Whether a file that Prefect reads settings from could name a server."""
    profiles = Path(os.environ.get("PREFECT_PROFILES_PATH") or _home() / "profiles.toml")
    signs = {profiles: _NAME, Path(".env"): _NAME, Path("prefect.toml"): "api", Path("pyproject.toml"): "[tool.prefect"}
    return any(
        path.is_file() and sign in path.read_text(encoding="utf-8", errors="replace") for path, sign in signs.items()
    )


def _home() -> Path:
    return Path(os.environ.get("PREFECT_HOME") or "~/.prefect").expanduser()
