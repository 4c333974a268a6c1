"""Numbers as people read them."""

import pytest

from tasks.rules.text.numbers import (
    coverage_text,
    list_text,
    number,
    rank_notes,
    true_minus,
)


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (-0.1234, "z.3f", "−0.123"),
        (-0.0001, "z.3f", "0.000"),
        (0.25, "+z.3f", "+0.250"),
        (-1234.5, "z,.1f", "−1,234.5"),
        (-5, "+g", "−5"),
    ],
)
def test_a_number_has_a_true_minus_sign_and_none_before_a_rounded_zero(
    value, form, text
):
    assert number(value, form) == text


def test_in_a_text_only_what_begins_a_number_is_a_minus_sign():
    text = "o4-mini of 2026-11-22 is -0.250 to -.1, gpt-5-high -low"

    assert (
        true_minus(text) == "o4-mini of 2026-11-22 is −0.250 to −.1, gpt-5-high -low"
    )


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.99999, "99.9%"),
        (1.0, "100.0%"),
        (0.57, "57.0%"),
        (45 / 5025, "0.8%"),
        (0.0, "0.0%"),
    ],
)
def test_a_coverage_is_rounded_down_so_that_only_a_complete_one_reads_100(
    share, text
):
    assert coverage_text(share) == text


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ("abca", "a, b, c"),
        ("abcd", "a, b, c, d"),
        ("abcdef", "a, b, c, d, and 2 more"),
    ],
)
def test_a_note_has_four_names_and_the_number_of_the_others(names, text):
    assert list_text(names) == text


def test_a_model_without_a_rank_is_noted_only_if_it_has_a_score():
    row = {"split": "legal", "rank": None, "n_tasks": 1, "n_tasks_ranked": 0}
    rows = [
        {**row, "model": "m", "mean_score": 0.5},
        {**row, "model": "n", "mean_score": None},
    ]

    [note] = rank_notes(rows)

    assert note.startswith("No rank: m on legal (1 task). ")
