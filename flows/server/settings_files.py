"""The files that Prefect reads settings from, found without importing Prefect, which takes 3 s."""

import os
from pathlib import Path

_SIGNS = {Path("prefect.toml"): ("api", "profiles_path", "home"), Path("pyproject.toml"): ("[tool.prefect",)}
"""What a file mentions that names a server, or names the file of profiles or its folder: a profile may name one."""
_OF_VARIABLES = ("prefect_api_url", "prefect_profiles_path")
"""The same in a file that sets variables; another `..._API_KEY` is no sign."""


def settings_files() -> list[Path]:
    """The files that are there and from which Prefect reads settings in this folder."""
    return [path for path in _possible_files() if path.is_file() and (path.name != "pyproject.toml" or _has_sign(path))]


def may_name_a_server() -> bool:
    """Whether one of the files could name a server."""
    return any(map(_has_sign, settings_files()))


def _possible_files() -> list[Path]:
    home = Path(os.environ.get("PREFECT_HOME") or "~/.prefect").expanduser()
    profiles = Path(os.environ.get("PREFECT_PROFILES_PATH") or home / "profiles.toml")
    return [profiles, Path(".env"), *_SIGNS]


def _has_sign(path: Path) -> bool:
    text = path.read_text(encoding="utf-8", errors="replace").lower()
    return any(sign in text for sign in _SIGNS.get(path, _OF_VARIABLES))
