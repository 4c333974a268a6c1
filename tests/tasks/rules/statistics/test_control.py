"""Control limits of a judge's agreement with its first verdicts."""

from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from tasks.rules.statistics.control import FALSE_ALARMS, least_agreeing, limits

Row = dict[str, Any]


def decided(label: str, n: int, n_agreeing: int, bar: float | None) -> Row:
    return {
        "night": label,
        "n_decided": n,
        "n_agreeing": n_agreeing,
        "min_agreement": bar,
    }


@st.composite
def nights(draw: st.DrawFn) -> list[Row]:
    labels = draw(
        st.lists(
            st.dates().map(str),
            min_size=1,
            max_size=8,
            unique=True,
        )
    )
    sizes = [draw(st.integers(0, 60)) for _ in labels]
    bar = draw(st.none() | st.floats(0.5, 1))
    return [
        decided(label, n, draw(st.integers(0, n)), bar)
        for label, n in zip(labels, sizes, strict=True)
    ]


def in_a_row(*counts: tuple[int, int], bar: float | None = None) -> list[Row]:
    """The limits of successive nights, each with its numbers of decided and of agreeing
    verdicts.
    """
    return limits(
        decided(f"2026-01-{day:02}", *each, bar) for day, each in enumerate(counts, start=1)
    )


def test_the_first_night_has_no_limits() -> None:
    assert {in_a_row((200, 20))[0][name] for name in ("centre", "lower_limit", "cause")} == {None}


def test_a_judge_that_decides_otherwise_from_a_night_on_is_out_of_control_from_that_night_on() -> (
    None
):
    result = in_a_row((200, 194), (200, 195), (200, 170), (200, 171), (200, 194))

    assert [each["cause"] for each in result] == [None, None, "limit", "limit", None]
    # Nights out of control do not lower the expected agreement.
    assert in_a_row((200, 194), (200, 195), (200, 194))[-1]["centre"] == result[-1]["centre"]


def test_the_limit_itself_is_in_control_and_one_less_is_not() -> None:
    least = least_agreeing(400, 390, 100)

    assert in_a_row((400, 390), (100, least))[-1]["cause"] is None
    assert in_a_row((400, 390), (100, least - 1))[-1]["cause"] == "limit"


def test_the_bar_holds_in_the_first_night_and_is_told_apart_from_the_limit() -> None:
    causes = [
        each["cause"] for each in in_a_row((100, 89), (100, 98), (100, 60), (100, 88), bar=0.9)
    ]

    assert causes == ["bar", None, "limit and bar", "bar"]


def test_a_night_without_a_decision_says_nothing_and_changes_nothing() -> None:
    first, nothing, last = in_a_row((50, 49), (0, 0), (50, 50), bar=0.5)

    assert first["cause"] is None
    assert nothing["cause"] is None
    assert nothing["lower_limit"] is None
    assert last["cause"] is None
    assert in_a_row((50, 49), (50, 50))[-1]["centre"] == last["centre"]


@given(nights(), st.randoms())
def test_the_order_of_judging_nights_does_not_matter(
    given_nights: list[Row], random: Random
) -> None:
    shuffled = list(given_nights)
    random.shuffle(shuffled)

    assert limits(given_nights) == limits(shuffled)
    assert sorted(night["night"] for night in given_nights) == [
        each["night"] for each in limits(shuffled)
    ]


@given(st.integers(1, 2000), st.floats(0, 1), st.integers(1, 300))
def test_the_limit_is_the_lowest_number_that_is_likely_enough(
    n_pooled: int, share: float, n: int
) -> None:
    agreeing = round(share * n_pooled)
    least = least_agreeing(n_pooled, agreeing, n)
    predicted = stats.betabinom(n, agreeing + 0.5, n_pooled - agreeing + 0.5)

    assert predicted.cdf(least) >= FALSE_ALARMS * (1 - 1e-6)
    assert least == 0 or predicted.cdf(least - 1) < FALSE_ALARMS * (1 + 1e-6)
