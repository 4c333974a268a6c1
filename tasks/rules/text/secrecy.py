"""Secrets in a configuration: names that mark one, and values that refer to the environment."""

import re
from collections.abc import Iterator
from typing import Any

REFERENCE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
"""A reference to a variable of the environment."""
_SECRET_NAME = re.compile(
    r"api.?key|access.?key|authori[sz]ation|password|passwd|passphrase|secret|credential|cookie"
    r"|bearer|(?:^|[^a-z])(?:auth|pwd|jwt|pat)(?:$|[^a-z])|auth.?token|(?:^|[^a-z])(?:key|token)$"
    r"|(?-i:(?<=[a-z])(?:Key|Token|Auth)$)",
    re.IGNORECASE,
)
_NO_SECRET = re.compile(
    r"(?:bos|eos|pad|stop|unk|end|mask|cls|sep)_token|(?:prompt_)?cache_key", re.IGNORECASE
)
"""Parameters of models whose names only look like secrets."""
_SCHEME = re.compile(r"[A-Za-z]{0,12}")
"""A word before a secret, such as Bearer."""


def is_secret_name(name: str) -> bool:
    """Return whether a header, parameter or field of this name is a secret."""
    return _SECRET_NAME.search(name) is not None and _NO_SECRET.fullmatch(name) is None


def is_reference(value: str) -> bool:
    """Return whether a value comes from the environment; a word such as Bearer may precede it."""
    words = re.split(r"[\s:=,;]+", REFERENCE.sub(" ", value))
    return REFERENCE.search(value) is not None and all(map(_SCHEME.fullmatch, words))


def secrets_in(value: Any, path: str = "", *, is_secret: bool = False) -> Iterator[tuple[str, Any]]:
    """Yield the values of a nested mapping under names of secrets, with their paths."""
    if isinstance(value, dict):
        for name, inner in value.items():
            if name == "properties":  # in a JSON schema it has the names of an object's fields
                continue
            inner_path = f"{path}.{name}" if path else str(name)
            is_inner_secret = is_secret or is_secret_name(str(name))
            yield from secrets_in(inner, inner_path, is_secret=is_inner_secret)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from secrets_in(inner, path, is_secret=is_secret)
    elif is_secret and value is not None and not isinstance(value, bool):
        yield path, value


def literal_secret(value: Any, path: str) -> str | None:
    """Return the path of the first literal secret in a nested mapping."""
    for leaf_path, leaf in secrets_in(value, path):
        if not isinstance(leaf, str) or not is_reference(leaf):
            return leaf_path
    return None
