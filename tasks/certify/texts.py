"""Checking texts against the hashes of a certificate."""

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True)
class Texts:
    """How many texts of each kind were compared with their hashes, and which differ."""

    n_checked: dict[str, int] = field(default_factory=dict)
    differing: list[str] = field(default_factory=list)


def check_texts(folder: Path, benchmark: str, texts: tuple[Path, ...]) -> Texts:
    return Texts()
