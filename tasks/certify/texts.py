"""Checking texts against the hashes of a certificate, and its ids against what they are hashes of."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from tasks.certify.given_texts import CONVERSATION, CRITERION, OF_RESPONSE, RESPONSE, given_texts
from tasks.certify.members import member_of
from tasks.rules.identity import response_id, verdict_id

Certified = dict[str, dict[tuple[Any, ...], set[Any]]]
"""Kind of text -> what it is of -> what is certified of it; one label of imported responses may be of several."""
_RESPONSE = ("task_id", "conversation_id", "model", "model_config_hash", "trial", "vintage")
_VERDICT = (
    "criterion_id", "criterion_hash", "judge", "judge_config_hash", "template_hash", "grading", "judge_trial",
)  # fmt: skip
"""What the ids of rows are hashes of, beside the data set and the response."""


@dataclass(frozen=True)
class Texts:
    """What came of texts that were given.

    Attributes:
        n_checked: kind of text -> how many were compared with the certificate.
        n_certified: the same kinds -> how many are certified.
        differing: those that are not what is certified, in words.
        missing: the certified ones of these kinds that were not given, in words.
        n_others: how many given ones are of something that the certificate does not have.
        by_hash: the given responses that are certified, by their hashes.
    """

    n_checked: dict[str, int]
    n_certified: dict[str, int]
    differing: list[str]
    missing: list[str]
    n_others: int
    by_hash: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def as_json(self) -> dict[str, Any]:
        """The result for machines, without the texts."""
        return {each.name: getattr(self, each.name) for each in fields(self) if each.name != "by_hash"}

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


@dataclass(frozen=True)
class Ids:
    """What came of computing ids again from what they are hashes of.

    Attributes:
        n_checked: kind of row -> how many ids were computed.
        n_unchecked: how many verdicts are on responses whose texts were not given.
        differing: the rows whose ids are others, in words.
    """

    n_checked: dict[str, int]
    n_unchecked: int
    differing: list[str]

    @property
    def lines(self) -> list[str]:
        """The result in words."""
        counts = " and ".join(f"{n} {kind}" for kind, n in self.n_checked.items())
        outcome = f"{len(self.differing)} differ" if self.differing else "all equal"
        found = [f"ids: of {counts} recomputed; {outcome}"]
        if self.n_unchecked:
            found.append(
                f"ids: of {self.n_unchecked} verdicts not recomputed, so the judge of these may be another one; that "
                "needs the texts of their responses (--texts)"
            )
        return found


_MOST_NAMED = 5
_SEVERAL = {CONVERSATION: "conversations", CRITERION: "criteria", RESPONSE: "responses"}


def check_texts(folder: Path, benchmark: str, revision: str, texts: Iterable[Path]) -> Texts:
    """Compare given texts with the hashes of an unpacked certificate."""
    certified = _certified(folder)
    checked: dict[str, set[tuple[Any, ...]]] = {}
    differing: dict[str, None] = {}
    n_others, by_hash = 0, {}
    for path in texts:
        for given in given_texts(path, benchmark, revision):
            values = certified[given.kind].get(given.of)
            if values is None:
                n_others += 1
                continue
            checked.setdefault(given.kind, set()).add(given.of)
            if given.value in values and given.text is not None:
                by_hash[given.value] = given.text
            if given.value not in values:
                differing.setdefault(f"{given.where}: {_named(given.kind, given.of)} is not what is certified")
    missing = [
        _named(kind, place) for kind, places in checked.items() for place in certified[kind] if place not in places
    ]
    return Texts(
        {kind: len(places) for kind, places in checked.items()},
        {kind: len(certified[kind]) for kind in checked},
        list(differing), missing, n_others, by_hash,
    )  # fmt: skip


def check_ids(folder: Path, benchmark: str, revision: str, texts: Mapping[str, str]) -> Ids:
    """Compute the ids of an unpacked certificate again; those of verdicts need the responses, given by their hashes."""
    differing: list[str] = []
    hashes: dict[str, str] = {}
    for row in _rows(folder, "responses"):
        hashes[row["response_id"]] = row["text_sha256"]
        if row["response_id"] != response_id(benchmark, revision, *(row[name] for name in _RESPONSE)):
            named = _named(RESPONSE, tuple(row[name] for name in OF_RESPONSE))
            differing.append(f"{named} does not have the id of its task, conversation, model, trial and vintage")
    n_checked, n_unchecked = 0, 0
    for row in _rows(folder, "verdicts"):
        text = texts.get(hashes.get(row["response_id"], ""))
        if text is None:
            n_unchecked += 1
            continue
        n_checked += 1
        if row["verdict_id"] != verdict_id(row["response_id"], text, *(row[name] for name in _VERDICT)):
            named = f"verdict of {row['judge']} on criterion {row['criterion_id']} of task {row['task_id']}"
            differing.append(f"{named} does not have the id of its response, criterion, judge, template and grading")
    return Ids({"responses": len(hashes), "verdicts": n_checked}, n_unchecked, differing)


def _certified(folder: Path) -> Certified:
    found: Certified = {CONVERSATION: {}, CRITERION: {}, RESPONSE: {}}
    for row in _rows(folder, "tasks"):
        found[CONVERSATION][row["task_id"],] = {row["conversation_id"]}
    for row in _rows(folder, "criteria"):
        value = tuple(row[name] for name in ("criterion_id", "content_hash", "category", "weight", "severity"))
        found[CRITERION][row["task_id"], row["position"]] = {value}
    for row in _rows(folder, "responses"):
        of = tuple(row[name] for name in OF_RESPONSE)
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
