"""Checking texts against the hashes of a certificate."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tasks.certify.given_texts import CONVERSATION, CRITERION, RESPONSE, given_texts
from tasks.certify.members import member_of

Certified = dict[str, dict[tuple[Any, ...], set[Any]]]
"""Kind of text -> what it is of -> what is certified of it; one label of imported responses may be of several."""


@dataclass(frozen=True)
class Texts:
    """What came of texts that were given.

    Attributes:
        n_checked: kind of text -> how many were compared with the certificate.
        n_certified: the same kinds -> how many are certified.
        differing: those that are not what is certified, in words.
        missing: the certified ones of these kinds that were not given, in words.
        n_others: how many given ones are of something that the certificate does not have.
    """

    n_checked: dict[str, int]
    n_certified: dict[str, int]
    differing: list[str]
    missing: list[str]
    n_others: int

    @property
    def lines(self) -> list[str]:
        """The result in words."""
        counts = ", ".join(f"{n} of {self.n_certified[kind]} {_SEVERAL[kind]}" for kind, n in self.n_checked.items())
        outcome = f"{len(self.differing)} differ" if self.differing else "all match"
        found = [f"texts: {counts or 'nothing'} checked; {outcome}"]
        if self.missing:
            more = f" and {len(self.missing) - _MOST_NAMED} more" if len(self.missing) > _MOST_NAMED else ""
            found.append(f"not given: {', '.join(self.missing[:_MOST_NAMED])}{more}")
        if self.n_others:
            found.append(f"{self.n_others} given texts are of tasks or models that are not certified")
        return found


_MOST_NAMED = 5
_SEVERAL = {CONVERSATION: "conversations", CRITERION: "criteria", RESPONSE: "responses"}


def check_texts(folder: Path, benchmark: str, revision: str, texts: Iterable[Path]) -> Texts:
    """Compare given texts with the hashes of an unpacked certificate."""
    certified = _certified(folder)
    checked: dict[str, set[tuple[Any, ...]]] = {}
    differing: dict[str, None] = {}
    n_others = 0
    for path in texts:
        for given in given_texts(path, benchmark, revision):
            values = certified[given.kind].get(given.of)
            if values is None:
                n_others += 1
                continue
            checked.setdefault(given.kind, set()).add(given.of)
            if given.value not in values:
                differing.setdefault(f"{given.where}: {_named(given.kind, given.of)} is not what is certified")
    missing = [
        _named(kind, place) for kind, places in checked.items() for place in certified[kind] if place not in places
    ]
    return Texts(
        {kind: len(places) for kind, places in checked.items()},
        {kind: len(certified[kind]) for kind in checked},
        list(differing), missing, n_others,
    )  # fmt: skip


def _certified(folder: Path) -> Certified:
    found: Certified = {CONVERSATION: {}, CRITERION: {}, RESPONSE: {}}
    for row in _rows(folder, "tasks"):
        found[CONVERSATION][row["task_id"],] = {row["conversation_id"]}
    for row in _rows(folder, "criteria"):
        value = tuple(row[name] for name in ("criterion_id", "content_hash", "category", "weight", "severity"))
        found[CRITERION][row["task_id"], row["position"]] = {value}
    for row in _rows(folder, "responses"):
        of = tuple(row[name] for name in ("task_id", "model", "trial", "vintage"))
        found[RESPONSE].setdefault(of, set()).add(row["text_sha256"])
    return found


def _rows(folder: Path, name: str) -> Iterator[dict[str, Any]]:
    with (folder / member_of(name)).open(encoding="utf-8") as file:
        yield from map(json.loads, file)


def _named(kind: str, of: tuple[Any, ...]) -> str:
    if kind == CONVERSATION:
        return f"conversation of task {of[0]}"
    if kind == CRITERION:
        return f"criterion {of[1]} of task {of[0]}"
    task, model, trial, vintage = of
    return f"response of {model} to task {task} (trial {trial}, vintage {vintage})"
