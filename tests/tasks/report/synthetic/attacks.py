"""Strings that attack a page that shows them, and how they get into a world's texts and names."""

import json
from dataclasses import dataclass
from pathlib import Path

ATTACKS = tuple(json.loads(Path(__file__).with_name("attacks.json").read_text()))
"""Attacks: scripts in elements, attributes, comments and links, templates, addresses, and harmless
odd text.

Every script sets `window.attacked`, and every address is on `evil.invalid`: an attack succeeded if
a page defines the one or requests the other.
"""

_NAMES = (28, 0, 25, 6, 26, 24, 27, 1, 22, 20, 5, 21)
"""Indices in ATTACKS of the attacks for the first names, each of a different kind."""


@dataclass
class Taint:
    """Appends the next attack to every given text; without `is_hostile` texts stay as they are."""

    is_hostile: bool
    n_given: int = 0
    n_named: int = 0

    def __call__(self, text: str) -> str:
        """Return a text with the next attack appended."""
        if not self.is_hostile:
            return text
        self.n_given += 1
        return f"{text} {ATTACKS[self.n_given % len(ATTACKS)]}"

    def name(self, name: str) -> str:
        """Return a name with an attack in front of it; the first names get attacks of different
        kinds.
        """
        if not self.is_hostile:
            return name
        self.n_named += 1
        attack = ATTACKS[_NAMES[(self.n_named - 1) % len(_NAMES)]]
        return (
            attack
            if attack == "__proto__" and self.n_named == 1
            else f"{attack}{name}"
        )
