"""A token bucket: how much may be used a minute, such as requests or tokens."""

_WINDOW_S = 60.0
_BURST_S = 1.0


class TokenBucket:
    """A bucket that refills evenly. It may be drawn below zero and is then closed until it has refilled.

    So a request larger than the bucket goes through, and pays with a longer pause. In no minute is more granted than
    the limit, save for the last grant of it.
    """

    def __init__(self, per_minute: float | None, now_s: float) -> None:
        # The burst that a full bucket allows comes on top of what flows in: both together stay below the limit.
        self._rate = None if per_minute is None else per_minute / (_WINDOW_S + _BURST_S)
        self._most = 0.0 if self._rate is None else max(1.0, self._rate * _BURST_S)
        self._level, self._at_s = self._most, now_s

    def wait_s(self, now_s: float) -> float:
        """How long until something may be taken."""
        if self._rate is None:
            return 0.0
        self._refill(now_s)
        least = min(1.0, self._most)
        return max(0.0, (least - self._level) / self._rate)

    def take(self, amount: float, now_s: float) -> None:
        """Use some; a negative amount gives back what was taken in advance and not used."""
        self._refill(now_s)
        self._level = min(self._most, self._level - amount)

    def _refill(self, now_s: float) -> None:
        if self._rate is not None:
            self._level = min(self._most, self._level + (now_s - self._at_s) * self._rate)
            self._at_s = now_s
