"""The vote of a panel."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rules.panels import majority_value

VOTES = st.lists(st.sampled_from([0.0, 0.5, 1.0, None]), min_size=3, max_size=9)


@pytest.mark.parametrize(
    ("votes", "expected"),
    [
        ((1.0, 1.0, 0.0), 1.0),
        ((0.0, 1.0, 0.0), 0.0),
        ((0.0, 0.5, 1.0), 0.5),
        ((0.0, 0.0, None), 0.0),
        ((0.0, 1.0, None), None),
        ((0.5, 1.0, None), None),
        ((1.0, None, None), None),
        ((None, None, None), None),
        ((0.0, 0.0, 0.5, 1.0, 1.0), 0.5),
        ((0.5, 0.5, 1.0, 1.0, None), None),
    ],
)
def test_a_value_needs_more_than_half_of_all_members_on_either_side(votes, expected):
    assert majority_value(votes) == expected


def median_if_certain(votes: Sequence[float | None]) -> float | None:
    """The median, if it is the same whatever the failed members would have said."""
    known = [vote for vote in votes if vote is not None]
    n_failed = len(votes) - len(known)
    medians = set()
    for filling in (0.0, 1.0):
        ordered = sorted([*known, *[filling] * n_failed])
        medians.add(ordered[len(ordered) // 2])
    return medians.pop() if len(medians) == 1 else None


@given(VOTES.filter(lambda votes: len(votes) % 2 == 1))
def test_it_is_the_median_that_no_failed_member_could_change(votes):
    assert majority_value(votes) == median_if_certain(votes)


@given(VOTES, st.randoms())
def test_the_order_of_the_members_does_not_count(votes, randomness):
    shuffled = list(votes)
    randomness.shuffle(shuffled)

    assert majority_value(votes) == majority_value(shuffled)
