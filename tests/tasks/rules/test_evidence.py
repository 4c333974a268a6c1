"""Evidence: the prompt, how the reply is read, and the prompt of the last call.

Cutting a text: the chunks add up to the text, each fits, and borders are kept as far as possible.
"""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.rules.evidence import NoRoom, cut, evidence_text, parse_evidence
from tasks.rules.verdict import VerdictError


@pytest.mark.parametrize(
    ("reply", "evidence"),
    [
        # Nothing.
        ('{"evidence": []}', ()),
        # Quotations.
        ('{"evidence": ["It is.", "7."]}', ("It is.", "7.")),
        # Fenced.
        ('```json\n{"evidence": ["a"]}\n```', ("a",)),
        # Behind thinking.
        ('<think>{"evidence": []}</think>{"evidence": ["a"]}', ("a",)),
        # Blank texts.
        ('{"evidence": ["", " \\n", " a "]}', ("a",)),
        # A cut emoji.
        ('{"evidence": ["\\ud83d"]}', ("\ufffd",)),
    ],
)
def test_a_list_of_texts_is_read(reply, evidence):
    assert parse_evidence(reply) == evidence


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "nothing found",
        "[]",
        '{"evidence": "It says so."}',
        '{"evidence": [7]}',
        '{"evidence": null}',
        "{}",
        '{"evidence": ["a", ["b"]]}',
        '{"evidence": ["a"]} and more',
        '{"evidence": [], "evidence": ["a"]}',
        '{"criteria_met": true}',
        '{"evidence": ["a"',
    ],
)
def test_anything_else_is_no_evidence_and_not_the_absence_of_it(reply):
    with pytest.raises(VerdictError):
        parse_evidence(reply)


def test_what_is_shown_names_every_chunk_and_holds_every_quote():
    text = evidence_text([("first",), (), ("second", "third\nline")], 3, 1)

    assert "All 3 parts" in text
    assert text.endswith(
        "Part 1 of 3:\n- first\n\nPart 2 of 3: nothing found\n\nPart 3 of 3:\n- second\n-"
        " third\nline"
    )


LETTERS = st.text(
    alphabet=st.sampled_from("ab.!? \n\t\r|`#-\u00e9\u6771\u3002\U0001f600"),
    max_size=400,
)


def larger_joined(text: str) -> int:
    """A size that is larger for a whole than for the sum of its pieces."""
    return len(text) ** 2 // 10 + 1


@pytest.mark.parametrize("size_of", [lambda text: len(text.encode()), larger_joined])
@given(text=LETTERS, largest=st.integers(4, 200))
def test_the_chunks_are_the_text_and_each_fits(size_of, text, largest):
    chunks = cut(text, largest, size_of)

    assert "".join(chunks) == text
    assert all(0 < size_of(chunk) <= largest for chunk in chunks)


@given(st.lists(st.integers(1, 30), min_size=1, max_size=30), st.integers(40, 100))
def test_paragraphs_that_fit_stay_whole_and_no_two_chunks_could_be_one(
    lengths, largest
):
    text = "".join(f"{'x' * length}\n\n" for length in lengths)

    chunks = cut(text, largest, len)

    assert all(chunk.endswith("\n\n") for chunk in chunks)
    assert all(len(a) + len(b) > largest for a, b in pairwise(chunks))


@pytest.mark.parametrize(
    ("text", "largest", "expected"),
    [
        ("One.\n\nTwo.\n\nThree.", 14, ["One.\n\nTwo.\n\n", "Three."]),
        ("A b. C d.\r\n\r\nE.", 13, ["A b. C d.\r\n\r\n", "E."]),
        ("Aa bb. Cc dd. Ee", 8, ["Aa bb. ", "Cc dd. ", "Ee"]),
        ("| a | b |\n| c | d |\n", 10, ["| a | b |\n", "| c | d |\n"]),
        ("aaa bbb ccc", 8, ["aaa bbb ", "ccc"]),
        ("abcdefgh", 3, ["ab", "cd", "ef", "gh"]),
        ("short", 9, ["short"]),
        ("a\n\n    b", 6, ["a\n\n", "    b"]),
        ("", 9, []),
    ],
)
def test_borders_are_those_of_paragraphs_then_sentences_then_words(
    text, largest, expected
):
    assert cut(text, largest, len) == expected


def test_where_no_character_fits_there_is_no_room():
    with pytest.raises(NoRoom, match="size 4, more than 3"):
        cut("\U0001f600", 3, lambda text: len(text.encode()))


@pytest.mark.parametrize(
    "text",
    [
        "\n \n" * 60_000,
        " " * 200_000,
        "." * 200_000,
        "\n" + "\t" * 200_000,
        'a." ' * 50_000,
    ],
)
def test_a_hostile_text_takes_no_longer_than_a_long_one(text):
    # Quadratic time on a text of this length would take longer than the timeout.
    assert "".join(cut(text, 5_000, len)) == text
