"""Strings that try to do something where a page shows them, and how they get into a world's texts and names."""

import json
from dataclasses import dataclass
from pathlib import Path

ATTACKS = tuple(json.loads(Path(__file__).with_name("attacks.json").read_text(encoding="utf-8")))
"""Scripts in elements, attributes, comments and links, templates, addresses, and text that only looks odd.

Every script sets `window.attacked`, and every address is on `evil.invalid`: a page on which the one is defined, or that
asks for the other, was harmed.
"""

_NAMES = (28, 0, 25, 6, 26, 24, 27, 1, 22, 20, 5, 21)
"""Places in ATTACKS of those that names get first: each of another kind."""


@dataclass
class Taint:
    """Puts the next attack behind every text that it is given; without `is_hostile` texts stay as they are."""

    is_hostile: bool
    n_given: int = 0
    n_named: int = 0

    def __call__(self, text: str) -> str:
        """A text with the next attack behind it."""
        if not self.is_hostile:
            return text
        self.n_given += 1
        return f"{text} {ATTACKS[self.n_given % len(ATTACKS)]}"

    def name(self, name: str) -> str:
        """A name with an attack in front of it; the first ones get attacks of different kinds."""
        if not self.is_hostile:
            return name
        self.n_named += 1
        attack = ATTACKS[_NAMES[(self.n_named - 1) % len(_NAMES)]]
        return attack if attack == "__proto__" and self.n_named == 1 else f"{attack}{name}"
