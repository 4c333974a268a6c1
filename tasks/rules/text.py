"""Small rules about text."""


def is_blank(text: str | None) -> bool:
    """True for a text that says nothing: absent, empty, or white space."""
    return text is None or not text.strip()


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
