"""What Great Expectations has to say about a validation, as pieces of a page that hold no script and load nothing.

Its renderers make the content. Its views put most texts into markup as they are, and its pages take styles and scripts
from the network; so every text is escaped before they get it, what they make is cleaned by a list of what is allowed,
and the page around it is this project's own (`docs.py`).
"""

import functools
import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_MOST_ROWS = 10_000
"""Failing rows of an expectation that are grouped by value: with a million it would take seconds."""
_ROW_COLUMNS = ("key", "note")
_HEADINGS = {"h5": "h2", "h6": "h3"}
_STATUS = {"✅": "passed", "❌": "failed", "❗": "raised an error"}
_TAGS = frozenset({
    "div", "p", "span", "strong", "i", "br", "h2", "h3", "code", "pre", "ul", "li",
    "table", "thead", "tbody", "tr", "th", "td",
})  # fmt: skip
_CLASSES = frozenset({"badge", "table", "table-bordered", "table-sm", "text-danger", "text-success"})


@dataclass(frozen=True)
class Section:
    """A piece of a page: its title as text, its content as clean markup."""

    title: str
    content: str


def sections_of(outcome: Any, suite: str, frame: str) -> tuple[Section, ...]:
    """An overview of a validation result, and a section for each column that was looked at.

    The same result gives the same text; the result is changed on the way. Each expectation says in `meta["rule"]` what
    it is there for.
    """
    from great_expectations.render.renderer.page_renderer import ValidationResultsPageRenderer

    for result in outcome.results:
        _prepare(result)
    outcome.suite_name = suite
    outcome.meta = {"batch_spec": {"data_asset_name": frame}}
    document = ValidationResultsPageRenderer(run_info_at_end=True).render(outcome).to_json_dict()
    *sections, _ = document["sections"]  # the last one tells names of the library's own
    for section in sections[1:]:
        _add_rules(section, outcome.results)
    return tuple(
        Section(section["section_name"], _content(section, position)) for position, section in enumerate(sections, 1)
    )


def _prepare(result: Any) -> None:
    """Keep of the failing rows what is shown."""
    found = result.result
    found.pop("unexpected_index_query", None)  # has the place of every failing row, in a frame that is gone
    for name in ("unexpected_list", "unexpected_index_list"):
        if found.get(name):
            found[name] = found[name][:_MOST_ROWS]
    if found.get("unexpected_index_list"):
        identity = found["unexpected_index_column_names"]
        found["unexpected_index_list"] = [
            {name: value for name, value in row.items() if name in _ROW_COLUMNS or name not in identity}
            for row in found["unexpected_index_list"]
        ]
        found["unexpected_index_column_names"] = list(_ROW_COLUMNS)


def _add_rules(section: Mapping[str, Any], results: Sequence[Any]) -> None:
    """Put the rule beside each expectation of a column, which are in the order of the results."""
    _, table = section["content_blocks"]
    table["header_row"].insert(1, "Rule")
    of_column = [each for each in results if each.expectation_config.kwargs["column"] == section["section_name"]]
    for row, result in zip(table["table"], of_column, strict=True):
        row.insert(1, result.expectation_config.meta["rule"])


def _content(section: Mapping[str, Any], position: int) -> str:
    made = _view().render({"section": _as_text(section), "section_loop": {"index": position}})
    return str(_cleaner().clean(made)).strip()


def _as_text(value: Any, name: str = "") -> Any:
    """A rendered document in which every text that may come from data is escaped."""
    if name in _NO_TEXTS:
        return _NO_TEXTS[name](value)
    if isinstance(value, str):
        return html.escape(value)
    if isinstance(value, list):
        return [_as_text(each) for each in value]
    if isinstance(value, Mapping):
        return {key: _as_text(each, key) for key, each in value.items()}
    return value


def _parameters(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of a text, as strings: those the view escapes itself. An icon becomes a word."""
    texts: dict[str, Any] = {name: str(value) for name, value in parameters.items() if name != "html_success_icon"}
    if "markdown_status_icon" in texts:
        texts["icon"] = _STATUS.get(texts["markdown_status_icon"], texts["markdown_status_icon"])
    return texts | {"html_success_icon": ""}


_NO_TEXTS: Mapping[str, Callable[[Any], Any]] = {
    "styling": lambda styling: styling,
    "tag": lambda tag: _HEADINGS.get(tag, tag),
    "params": _parameters,
}
"""Name -> what becomes of a part of a document that is the library's own, or that its view escapes."""


@functools.cache
def _view() -> Any:
    from great_expectations.render.view.view import DefaultJinjaSectionView

    return DefaultJinjaSectionView()


@functools.cache
def _cleaner() -> Any:
    import nh3

    return nh3.Cleaner(
        tags=set(_TAGS),
        attributes={"thead": {"hidden"}},
        allowed_classes={tag: set(_CLASSES) for tag in _TAGS},
        url_schemes=set(),
        link_rel=None,
    )
