"""Words with places -> Markdown: what is lost, joined or taken apart."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tasks.imports.documents.pdf import lines_of, markdown_of

PLACES = st.integers(0, 600)
WORDS = st.builds(
    lambda text, x0, top, height, is_upright, uri: {
        "text": text, "x0": x0, "x1": x0 + 5 * len(text), "top": top, "bottom": top + height, "upright": is_upright,
        "uri": uri,
    },
    st.text("abcdefgh", min_size=1, max_size=8), PLACES, PLACES, st.integers(4, 30), st.booleans(), st.none(),
)  # fmt: skip


def at(text: str, x0: float, top: float, size: float = 10.0) -> dict[str, Any]:
    return {"text": text, "x0": x0, "x1": x0 + 5 * len(text), "top": top, "bottom": top + size, "upright": True}


def letters(text: str) -> str:
    return "".join(filter(str.isalpha, text))


@given(st.lists(WORDS, max_size=40))
def test_no_letter_is_lost_and_none_changes_its_place(words: list[dict[str, Any]]) -> None:
    found = markdown_of(list(lines_of(words, 1)))

    assert "".join(word["text"] for word in words) == letters(found)


def test_a_sentence_goes_on_over_the_end_of_a_page_and_a_new_one_begins_a_paragraph() -> None:
    lines = [*lines_of([at("going", 0, 700)], 1), *lines_of([at("on", 0, 20)], 2), *lines_of([at("New", 0, 20)], 3)]

    assert "going\non\n\nNew\n" == markdown_of(lines)


def test_a_heading_of_two_lines_is_one_and_levels_follow_sizes() -> None:
    words = [at("Big", 0, 0, 20), at("One", 0, 24, 20), at("Small", 0, 60, 14), at("and the text of it", 0, 90)]

    assert "# Big One\n\n## Small\n\nand the text of it\n" == markdown_of(list(lines_of(words, 1)))


def test_text_in_large_print_is_no_heading() -> None:
    words = [at("large " * 6, 0, 20 * n, 16) for n in range(10)] + [at("body " * 400, 0, 400)]

    assert "#" not in markdown_of(list(lines_of(words, 1)))
