"""Responses as HTML: Markdown without raw HTML and without images, and of the result only what cannot do anything.

Three walls, each enough by itself: every `<` is taken out before the text is parsed, so no element but the parser's own
can come of it; its HTML is cleaned by a list of allowed elements, unless it has only plain ones, which cleaning would
leave as they are; and the pages' policy runs no inline script and loads nothing from elsewhere.
"""

import re

import nh3
import pyromark

_MOST_CHARACTERS, _MOST_HTML, _MOST_DEPTH = 200_000, 1_000_000, 16
"""What is longer, becomes longer, or is nested deeper is shown as text: no response for people is, and cleaning takes a
time that grows with the square of the depth."""
_LESS, _BANG = "\ufdd0", "\ufdd1"
"""Stand for `<`, and for the sign that makes an image of a link, until all is parsed and cleaned: code points that
Unicode keeps for use within a program, and that no text holds."""
_OPTIONS = pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_STRIKETHROUGH
_PLAIN = {"p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "code", "em", "strong", "del"}
"""Elements that cleaning leaves as they are, if they have no attributes."""
_PLAIN_TAGS = _PLAIN | {f"/{name}" for name in _PLAIN}
_CLEANER = nh3.Cleaner(
    tags=_PLAIN | {"pre", "table", "thead", "tbody", "tr", "th", "td", "a", "hr", "br"},
    attributes={"*": set(), "a": {"href"}, "ol": {"start"}},
    url_schemes={"http", "https", "mailto"},
    url_relative="deny",
    link_rel="noopener noreferrer nofollow",
    set_tag_attribute_values={"a": {"target": "_blank"}},
)  # fmt: skip
_HEADING_LEVELS_ABOVE = 3
"""The page's own headings: a heading of a response stands below them."""
_NESTING = re.compile(r"<(/?)(?:blockquote|ul|ol)\b")
_HEADING = re.compile(r"<(/?)h([1-6])>")


def as_html(text: str) -> str | None:
    """Markdown as HTML that is safe to show; None where the text has to be shown as it is."""
    if len(text) > _MOST_CHARACTERS:
        return None
    plain = text.replace(_LESS, "\ufffd").replace(_BANG, "\ufffd")
    try:
        html = pyromark.html(plain.replace("<", _LESS).replace("![", f"{_BANG}["), options=_OPTIONS)
    except BaseException as error:
        # What a library in Rust holds to be impossible is no `Exception`.
        if type(error).__name__ == "PanicException":
            return None
        raise
    if len(html) > _MOST_HTML or _depth(html) > _MOST_DEPTH:
        return None
    clean = html if _is_plain(html) else _CLEANER.clean(html)
    lowered = _HEADING.sub(lambda match: f"<{match[1]}h{min(6, int(match[2]) + _HEADING_LEVELS_ABOVE)}>", clean)
    return lowered.replace(_LESS, "&lt;").replace(_BANG, "!")


def _is_plain(html: str) -> bool:
    """Return whether cleaning leaves the parser's HTML as it is: it has allowed elements without attributes alone."""
    rest = html.replace("&amp;", "").replace("&gt;", "")
    is_text_plain = not any(sign in rest for sign in "&\0\r\xa0")
    return is_text_plain and _PLAIN_TAGS.issuperset(each.partition(">")[0] for each in html.split("<")[1:])


def _depth(html: str) -> int:
    """Return the depth of nested quotations and lists."""
    depth = deepest = 0
    for match in _NESTING.finditer(html):
        depth += -1 if match[1] else 1
        deepest = max(deepest, depth)
    return deepest
