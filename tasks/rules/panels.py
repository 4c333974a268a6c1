"""The vote of a panel: several judges, or several repetitions of one judge, that decide together.

A majority bounds the harm of a bad member, which a mean does not.
"""

from collections.abc import Sequence


def majority_value(votes: Sequence[float | None]) -> float | None:
    """Return the value that a majority agrees on; None if there is none.

    More than half of all members are at or below it, and more than half at or above it: of 0, 0.5
    and 1 that is 0.5.

    Args:
        votes: the decision of each member; None for one that failed, which agrees to no value.
    """
    for value in {vote for vote in votes if vote is not None}:
        n_at_most = sum(vote is not None and vote <= value for vote in votes)
        n_at_least = sum(vote is not None and vote >= value for vote in votes)
        if 2 * min(n_at_most, n_at_least) > len(votes):
            return value
    return None
