"""Markdown of responses as HTML: Markdown is rendered, all else is text, and nothing can run."""

import re
from html.parser import HTMLParser
from time import process_time
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.report.drilldown import markdown
from tasks.report.drilldown.markdown import as_html
from tests.tasks.report.synthetic.attacks import ATTACKS

MANY = 10_000
ELEMENTS = {
    "p",
    "h4",
    "h5",
    "h6",
    "ul",
    "ol",
    "li",
    "blockquote",
    "pre",
    "code",
    "em",
    "strong",
    "del",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "a",
    "hr",
    "br",
}
ATTRIBUTES = {"a": ("href", "target", "rel"), "ol": ("start",)}
"""Element -> the attributes that it may have."""
PIECES = (
    "[",
    "](",
    ")",
    "![",
    "<",
    ">",
    "</",
    "<a href=",
    "javascript:",
    "&#106;avascript:",
    "http://x",
    "//x",
    "data:text/html,",
    "&lt;",
    "&",
    "'",
    '"',
    " onclick=x",
    "`",
    "```\n",
    "**",
    "_",
    "~~",
    "\n",
    "\n\n",
    "> ",
    "- ",
    "1. ",
    "# ",
    "    ",
    "|",
    "|-|-|\n",
    "a",
    " ",
    "\\",
    "[r]: ",
    "[r]",
    "\t",
    "\x00",
    "\ufdd0",
    "\ufdd1",
    "\u202e",
    "<!--",
    "-->",
    "<script>",
    "style=x",
    "\ud7ff",
    "é",
    "\r",
    "\xa0",
)
LONG = {
    "brackets": "[" * MANY,
    "pairs of brackets": "[" * MANY + "]" * MANY,
    "links": "[a](" * MANY,
    "images": "![" * MANY,
    "quotations": ">" * MANY + "x",
    "lists": "1. " * MANY + "x",
    "quoted lists": "> - " * MANY + "x",
    "pipes": "|" * MANY + "\n" + "|-" * MANY + "\n" + ("|" * MANY + "\n") * 3,
    "rows": "|a" * 100 + "\n" + "|-" * 100 + "\n" + "|x\n" * MANY,
    "backticks": "`a``" * MANY,
    "stars": "*a **b " * MANY,
    "underlines": "*a _" * MANY,
    "tildes": "~~a~" * MANY,
    "elements": "<b>" * MANY,
    "entities": "&amp" * MANY,
    "references": "[a]: " + "u" * MANY + "\n\n" + "[a]" * MANY,
}


class ParsedHtml(HTMLParser):
    """The elements, attributes and text of HTML."""

    def __init__(self, html: str):
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.comments: list[str] = []
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str):
        self.words += data

    def handle_comment(self, data: str):
        self.comments.append(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


def faults(html: str) -> list[object]:
    """Return the elements, attributes and addresses in HTML that it must not contain."""
    parsed = ParsedHtml(html)
    wrong_parts = [*parsed.comments]
    for tag, attributes in parsed.elements:
        if tag not in ELEMENTS:
            wrong_parts.append(tag)
        allowed_names = ATTRIBUTES.get(tag, ())
        wrong_parts += [
            (tag, name) for name in attributes if name not in allowed_names
        ]
        if tag == "a":
            assert attributes["target"] == "_blank"
            assert attributes["rel"] == "noopener noreferrer nofollow"
            address = attributes.get("href")
            if address and not re.match(r"(https?|mailto):", address):
                wrong_parts.append(address)
    return wrong_parts


def test_characters_that_hide_or_reorder_text_are_visible():
    assert as_html("**a\u202eb**\u200b `c\u2066`") == (
        r"<p><strong>a\u202eb</strong>\u200b <code>c\u2066</code></p>" + "\n"
    )


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize(
    "markup",
    [
        "{}",
        "> - {}",
        "**{}**",
        "[{}](http://x)",
        "[x]({})",
        "|a|\n|-|\n|{}|",
        "`{}",
        "<{}>",
    ],
)
def test_an_attack_becomes_nothing_but_text_and_harmless_elements(attack, markup):
    html = as_html(markup.replace("{}", attack))

    assert html is not None
    assert faults(html) == []


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_nothing_that_can_be_put_together_becomes_more_than_harmless_elements(text):
    html = as_html(text)

    assert html is not None
    assert faults(html) == []
    assert "\ufdd0" not in html
    assert "\ufdd1" not in html


@given(st.lists(st.sampled_from(PIECES), max_size=40).map("".join))
def test_what_is_not_cleaned_is_as_cleaning_leaves_it(text):
    link = "[a](http://x)\n\n"  # it has attributes, so the whole text is cleaned

    cleaned_html = as_html(link + text)

    assert cleaned_html == (as_html(link) or "") + (as_html(text) or "")


@given(st.text())
def test_any_text_at_all_is_set_without_an_error(text):
    assert faults(as_html(text) or "") == []


def test_markdown_is_set():
    text = (
        "# Head\n\nA **b** *c* ~~d~~ `e`  \nf\n\n3. g\n4. h\n\n> i\n\n"
        "|j|k|\n|-|-:|\n|1|2|\n\n```py\nl < m\n```\n"
    )

    names = [name for name, _ in ParsedHtml(as_html(text) or "").elements]

    assert " ".join(names) == (
        "h4 p strong em del code br ol li li blockquote p"
        " table thead tr th th tbody tr td td pre code"
    )


def test_a_link_opens_elsewhere_and_an_image_is_a_link_and_not_loaded():
    text = "![chart](https://example.org/a.png) [b](mailto:x@example.org) [c](/local) [d](ftp://x)"

    parsed = ParsedHtml(as_html(text) or "")

    addresses = [
        attributes.get("href") for name, attributes in parsed.elements if name == "a"
    ]
    assert addresses == [
        "https://example.org/a.png",
        "mailto:x@example.org",
        None,
        None,
    ]
    assert parsed.words.strip() == "!chart b c d"


@pytest.mark.parametrize("name", LONG)
def test_a_text_made_to_take_long_is_set_or_given_up(name):
    start_s = process_time()

    assert len(as_html(LONG[name]) or "") <= 2_000_000
    assert process_time() - start_s < 20  # quadratic time would be minutes


def test_what_is_nested_too_deep_or_too_long_is_left_as_text():
    assert as_html("> " * 16 + "x") is not None
    assert as_html("> " * 17 + "x") is None
    assert as_html("a" * 200_000) is not None
    assert as_html("a" * 200_001) is None


def test_a_library_that_panics_leaves_the_text_as_it_is(monkeypatch):
    class PanicException(BaseException):
        """The exception's name in Rust libraries."""

    monkeypatch.setattr(
        markdown.pyromark,
        "html",
        Mock(side_effect=PanicException),
    )

    assert as_html("text") is None


def test_a_key_that_interrupts_a_library_ends_the_program(monkeypatch):
    monkeypatch.setattr(
        markdown.pyromark,
        "html",
        Mock(side_effect=KeyboardInterrupt),
    )

    with pytest.raises(KeyboardInterrupt):
        as_html("text")
