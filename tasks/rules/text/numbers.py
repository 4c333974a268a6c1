"""Numbers as people read them."""

import math
import re

SMALL_MARK = "°"
"""Marks an interval that may be too narrow."""
_MINUS = re.compile(r"(?<!\S)-(?=[\d.])")
"""A hyphen that begins a number; those within names and dates are something else."""


def number(value: float, form: str = "z.3f") -> str:
    """A number in one of Python's formats, with a true minus sign; `z` in the format leaves out that of a zero."""
    return true_minus(f"{value:{form}}")


def counted(number: int, singular: str, plural: str | None = None) -> str:
    """Return `1 task`, `2 tasks`; the plural is the singular with an s unless it is given."""
    return f"{number:,} {singular if number == 1 else plural or f'{singular}s'}"


def coverage_text(share: float | None) -> str:
    """A coverage in per cent, rounded down, so that only a complete one reads 100.0%; a dash where there is none."""
    return "–" if share is None else f"{math.floor(1000 * share + 1e-9) / 10:.1f}%"


def true_minus(text: str) -> str:
    """A text whose negative numbers have a true minus sign."""
    return _MINUS.sub("−", text)
