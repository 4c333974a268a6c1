"""Responses as HTML: Markdown without raw HTML and images, reduced to harmless elements.

There are three protections, each sufficient alone: every `<` is removed before parsing, so only the
parser creates elements; the HTML is cleaned by a list of allowed elements; and the pages' policy
runs no inline script and loads nothing from other sites.
"""

import re
from itertools import accumulate

import nh3
import pyromark

from tasks.rules.text.characters import visible

_MOST_CHARACTERS = 200_000
_MOST_HTML = 1_000_000
_MOST_DEPTH = 16
"""Larger or more deeply nested responses are shown as plain text: nobody reads responses of that
size, and the time of cleaning grows with the square of the depth.
"""
_LESS = "\ufdd0"
_BANG = "\ufdd1"
"""Code points that replace `<` and the `!` of images during parsing and cleaning. Unicode reserves
them for use within a program, so no text has them.
"""
_OPTIONS = pyromark.Options.ENABLE_TABLES | pyromark.Options.ENABLE_STRIKETHROUGH
_CLEANER = nh3.Cleaner(
    tags={
        "p",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "ul",
        "ol",
        "li",
        "blockquote",
        "code",
        "em",
        "strong",
        "del",
        "pre",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "a",
        "hr",
        "br",
    },
    attributes={"*": set(), "a": {"href"}, "ol": {"start"}},
    url_schemes={"http", "https", "mailto"},
    url_relative="deny",
    link_rel="noopener noreferrer nofollow",
    set_tag_attribute_values={"a": {"target": "_blank"}},
)
_NESTING = re.compile(r"<(/?)(?:blockquote|ul|ol)\b")
_HEADING = re.compile(r"<(/?)h([1-6])>")


def as_html(text: str) -> str | None:
    """Return Markdown as HTML that is safe to show; None if it must be shown as plain text."""
    if len(text) > _MOST_CHARACTERS:
        return None
    plain = visible(text).replace(_LESS, "\ufffd").replace(_BANG, "\ufffd")
    try:
        html = pyromark.html(plain.replace("<", _LESS).replace("![", f"{_BANG}["), options=_OPTIONS)
    except BaseException as error:
        # A panic in a Rust library is not an `Exception`.
        if type(error).__name__ == "PanicException":
            return None
        raise
    depths = accumulate(-1 if match[1] else 1 for match in _NESTING.finditer(html))
    if len(html) > _MOST_HTML or max(depths, default=0) > _MOST_DEPTH:
        return None
    clean = _CLEANER.clean(html)
    # A response's headings are put below the three levels that the page itself uses.
    lowered = _HEADING.sub(lambda match: f"<{match[1]}h{min(6, int(match[2]) + 3)}>", clean)
    return lowered.replace(_LESS, "&lt;").replace(_BANG, "!")
