"""Reading replies again that an earlier version of the parser read: what becomes of a stored row."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tasks.rules.text.characters import shows_nothing
from tasks.rules.verdict import Verdict, VerdictError

PARSER_VERSION = 2
"""How replies are read, judges' and candidates'; with a new number, what is stored is read again
(tasks/maintain/reread.py).

Version 2 leaves thinking out only where a reply starts with it, takes a decision only where nothing else stands, and
calls an answer empty in which a reader sees nothing.
"""

_TAG = re.compile(r"<(/?)(think|thinking|reasoning|reason)>", re.IGNORECASE)
_SPACE = " \t\r\n"
_DECISIONS = ('"criteria_met"', '"verdict"')

Evidence = tuple[str, ...]


def may_differ(text: str) -> bool:
    """Whether a reply may be one that this version reads otherwise than the one before; most are surely none."""
    if shows_nothing(text) or text.strip() != text.strip(_SPACE):
        return True
    if any(text.count(key) > 1 for key in _DECISIONS):
        return True
    tags = list(_TAG.finditer(text))
    if not tags:
        return False
    is_plain = len(tags) == 2 and not text[: tags[0].start()].strip() and (tags[0][1], tags[1][1]) == ("", "/")
    is_pair = tags[0][2].lower() == tags[-1][2].lower() and all(tag[0].isascii() for tag in tags)
    return not (is_plain and is_pair) or shows_nothing(text[tags[-1].end() :])


@dataclass(frozen=True)
class JudgeReplies:
    """What a judge's replies on one verdict say: decisions, evidence, and why the first one says neither."""

    verdicts: Sequence[Verdict]
    evidence: Sequence[Evidence]
    cause: str | None

    @classmethod
    def of(
        cls, texts: Sequence[str], as_verdict: Callable[[str], Verdict], as_evidence: Callable[[str], Evidence]
    ) -> "JudgeReplies":
        """Read replies, oldest first; each is a decision, evidence on a chunk of a long answer, or neither."""
        verdicts: list[Verdict] = []
        evidence: list[Evidence] = []
        cause = None
        for text in texts:
            try:
                verdicts.append(as_verdict(text))
                continue
            except VerdictError as error:
                why = f"{error}; reply: {text[:300]!r}"
            try:
                evidence.append(as_evidence(text))
            except VerdictError:
                cause = cause or why
        return cls(verdicts, evidence, cause)

    def lost_evidence(self, stored: Sequence[Evidence]) -> list[bool]:
        """For each stored evidence whether no reply says it any more; of equal ones it is not known which.

        Where every reply can be read, one that is missing was deleted, which says nothing.
        """
        is_short = Counter(stored) - Counter(self.evidence)
        return [self.cause is not None and found in is_short for found in stored]

    def again(self, stored: Verdict | None) -> Verdict | str | None:
        """What takes the place of a stored decision (None: a failure): another one, a cause of failure, or nothing."""
        if stored in self.verdicts or (stored is not None and self.cause is None):
            return None
        return self.verdicts[0] if self.verdicts else (None if stored is None else self.cause)


def answer_again(stored: str | None, readings: Sequence[str]) -> str | None:
    """What takes the place of a stored answer (None: an empty one), given what its replies say now; None: nothing.

    An empty text is an answer that has become empty.
    """
    said = [text for text in readings if text]
    if stored in readings or not readings or (stored is None and not said):
        return None
    return said[0] if said else ""
