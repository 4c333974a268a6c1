"""What a browser would make of a page, without one: its text, its elements, and what they point to."""

from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Read:
    """A page as it is read: all text, the names of elements, and their attributes."""

    text: str = ""
    elements: set[str] = field(default_factory=set)
    attributes: list[tuple[str, str]] = field(default_factory=list)

    def values(self, *names: str) -> set[str]:
        return {value for name, value in self.attributes if name in names}


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.read = Read()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.read.elements.add(tag)
        self.read.attributes += [(name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        self.read.text += data


def read(page: str) -> Read:
    reader = _Reader()
    reader.feed(page)
    reader.close()
    return reader.read
