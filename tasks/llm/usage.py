"""What calls use, in money and tokens."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Usage:
    """What a call uses, or may use at most; None where that is not known."""

    usd: float | None = None
    tokens: int | None = None


UNKNOWN = Usage()
NOTHING = Usage(0.0, 0)
