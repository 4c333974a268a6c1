"""The Prefect server that records runs: the one that Prefect's settings name, if it answers."""

import os
from pathlib import Path
from urllib.parse import urlsplit

from flows.server.own_server import answers, named_server
from tasks.console import notice

_NAME = "PREFECT_API_URL"


def may_know_a_server() -> bool:
    """Whether a server could be named, as far as that can be told without importing Prefect, which takes 3 s."""
    return bool(os.environ.get(_NAME)) or _settings_may_name_one()


def known_server() -> str | None:
    """Where the named server is, without a password; None if none is named or it does not answer, which is said."""
    named = named_server()
    if named is None:
        return None
    where = urlsplit(named).netloc.rpartition("@")[2]
    if answers(named):
        return where
    notice(f"Prefect's server at {where} does not answer; this run is not recorded there")
    return None


def _settings_may_name_one() -> bool:
    """Whether a file that Prefect reads settings from could name a server."""
    home = Path(os.environ.get("PREFECT_HOME") or "~/.prefect").expanduser()
    profiles = Path(os.environ.get("PREFECT_PROFILES_PATH") or home / "profiles.toml")
    signs = {profiles: _NAME, Path(".env"): _NAME, Path("prefect.toml"): "api", Path("pyproject.toml"): "[tool.prefect"}
    return any(
        path.is_file() and sign in path.read_text(encoding="utf-8", errors="replace") for path, sign in signs.items()
    )
