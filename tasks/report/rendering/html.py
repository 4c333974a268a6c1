"""Pages from templates; whatever comes from data is escaped."""

import json
import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from tasks.rules.text.numbers import number

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'none'; "
    "connect-src 'none'; object-src 'none'; base-uri 'none'; form-action 'none'"
)
"""The pages' content-security policy: nothing from elsewhere, no inline script or style, no evaluation of text."""
SERVED_POLICY = POLICY.replace("connect-src 'none'", "connect-src 'self'").replace(
    "form-action 'none'", "form-action 'self'"
)
"""That of the pages that a server makes: they may ask it again."""

_DATE = re.compile(r"\b\d{4}-\d\d-\d\d\b( \d\d:\d\d\b( UTC)?)?")


@cache
def templates() -> Environment:
    """The templates, with escaping for everything that is not marked as HTML."""
    folder = Path(__file__).parents[1] / "templates"
    environment = Environment(
        loader=FileSystemLoader(folder),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": number, "dated": dated}
    return environment


def dated(text: str) -> Markup:
    """Return a text as HTML whose dates, with their times, stay on one line; HTML stays as it is."""
    if isinstance(text, Markup):
        return text
    return Markup(_DATE.sub(r'<span class="date">\g<0></span>', str(escape(text))))


def render(template: str, *, policy: str = POLICY, **values: Any) -> str:
    """A page."""
    return templates().get_template(template).render(policy=policy, **values)


def as_json(value: Any) -> Markup:
    """JSON that can stand in a page's data block and in a script: nothing in it ends the element it stands in."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), sort_keys=True, default=str)
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))
