"""The known name that a mistyped one is near to."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """What to add to a message about an unknown key: the nearest known one in brackets; nothing where none is near."""
    near = get_close_matches(name, list(known), n=1)
    return f" (did you mean `{near[0]}`?)" if near else ""
