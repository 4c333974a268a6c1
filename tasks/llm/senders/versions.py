"""What a process runs: the versions that have to be the same wherever attempts of one run are made."""

import hashlib
import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path

_LIBRARIES = ("litellm", "openai", "httpx", "aiohttp", "pydantic", "ray")
_CODE = Path(__file__).parents[2]


@cache
def versions() -> Mapping[str, str]:
    """Python, the libraries that an attempt goes through, and a hash of this project's own code."""
    return {
        "Python": platform.python_version(),
        **{name: version(name) for name in _LIBRARIES},
        "prbench": _code_hash(_CODE),
    }


def differing(own: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """What differs between two processes, as `litellm 1.106.2 there, 1.106.0 here`."""
    names = sorted(own.keys() | other.keys())
    return [
        f"{name} {other.get(name, 'missing')} there, {own.get(name, 'missing')} here"
        for name in names
        if own.get(name) != other.get(name)
    ]


def _code_hash(folder: Path) -> str:
    files = sorted(path for path in folder.rglob("*.py"))
    digest = hashlib.sha256()
    for path in files:
        digest.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes() + b"\0")
    return digest.hexdigest()[:12]
