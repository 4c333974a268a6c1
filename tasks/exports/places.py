"""Places to write an export to."""

from pathlib import Path

from tasks.rules.errors import UsageError
from tasks.stores import Store
from warehouse import content_of


def refuse_filled(target: Path | Store) -> None:
    """Refuse a place that holds something.

    Raises:
        UsageError: it does.
    """
    if isinstance(target, Store):
        if target.files():
            raise UsageError(f"{target}: is not empty; name a new prefix")
    elif target.exists() and (not target.is_dir() or content_of(target)):
        raise UsageError(f"{target}: is not an empty folder; name a new one")
