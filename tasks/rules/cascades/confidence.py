"""How sure a judge was of its decision, from the log-probabilities of the tokens that it wrote."""

import math
import re
from collections.abc import Sequence

from tasks.rules.verdict import TERNARY

Tokens = Sequence[tuple[str, float]]
"""The tokens of a reply with their log-probabilities."""
_BINARY = re.compile(r'(?<!\\)"criteria_met"\s*:\s*(true|false)')
_TERNARY = re.compile(r'(?<!\\)"verdict"\s*:\s*"([^"\\]*)"')


def confidence_of(tokens: Tokens, grading: str) -> float | None:
    """The probability that the judge gave the decision it wrote, from 0 to 1: that of the tokens that hold it together.

    The decision is the value after the last `"criteria_met":` (binary) or the word after the last `"verdict":`
    (ternary); an escaped key is a quotation. None where there is no such value, or a probability is none.
    """
    text = "".join(token for token, _ in tokens)
    found = list((_TERNARY if grading == TERNARY else _BINARY).finditer(text))
    if not found:
        return None
    start, end = found[-1].span(1)
    total, place = 0.0, 0
    for token, logprob in tokens:
        if place < end and place + len(token) > start:
            total += logprob
        place += len(token)
    return math.exp(total) if math.isfinite(total) and total <= 1e-6 else None
