"""Small rules about text."""

import unicodedata

_BLANK_RANGES = (
    (0x34F, 0x34F), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2065, 0x2065), (0x2800, 0x2800),
    (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFFA0, 0xFFA0), (0xFFF0, 0xFFF8), (0x1D159, 0x1D159), (0xE0000, 0xE0FFF),
)  # fmt: skip
"""Characters without a picture that are neither space nor format by their category: Hangul fillers, the blank Braille
pattern, variation selectors, and others that Unicode says to ignore."""


def is_blank(text: str | None) -> bool:
    """True for a text that says nothing: absent, empty, or white space."""
    return text is None or not text.strip()


def shows_nothing(text: str) -> bool:
    """True for a text in which a reader sees nothing: white space, control and format characters, fillers."""
    return all(
        char.isspace()
        or unicodedata.category(char) in {"Cc", "Cf"}
        or any(first <= ord(char) <= last for first, last in _BLANK_RANGES)
        for char in text
    )


def visible_only(text: str) -> str:
    """The text without control and format characters, such as zero-width spaces and marks of direction."""
    return "".join(char for char in text if unicodedata.category(char) not in {"Cc", "Cf"})


def storable(text: str) -> str:
    """The text with what UTF-8 cannot hold (lone surrogates, as in a reply cut inside an emoji) made U+FFFD."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        # Surrogates that do form a pair are the character they stand for.
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def count_alphanumeric(text: str) -> int:
    """The length of a response as the paper counts it (figure 7): letters and digits only."""
    return sum(map(str.isalnum, text))


def one_line(text: str, most_chars: int = 300) -> str:
    """A message for a table or a terminal line: white space folded, cut to a length."""
    folded = " ".join(text.split())
    return folded if len(folded) <= most_chars else folded[: most_chars - 1] + "…"
