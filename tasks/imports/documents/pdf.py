"""PDF to Markdown: pdfplumber reads words, tables and links with their places."""

import re
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from tasks.imports.documents.converted import Converted, DocumentRefused
from tasks.imports.documents.layout import Line, Word, lines_of, markdown_of
from tasks.rules.text.characters import storable

if TYPE_CHECKING:
    from pdfplumber.page import Page
    from pdfplumber.pdf import PDF
    from pdfplumber.table import Table

_MOST_EDGES = 3_000
"""Of a page with more lines than this no tables are looked for: it is a drawing, and looking would take minutes."""
_SPACE_RATIO = 0.15
"""The gap between letters, in their size, from which on they are of two words; text that is set tightly has no more."""
_MOST_UNREADABLE = 0.1
_UNKNOWN = re.compile(r"\(cid:(\d+)\)")
_BULLET_CODE = "127"
"""What unused codes stand for in the encodings of PDF."""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


def pdf_to_markdown(file: Path) -> Converted:
    """The text of all pages in the order in which they draw it, with headings, lists, ruled tables and links.

    Raises:
        DocumentRefused: the file is damaged, protected by a password, no PDF, or its text cannot be read.
    """
    import pdfplumber
    from pdfplumber.utils.exceptions import PdfminerException

    try:
        pdf = pdfplumber.open(file, raise_unicode_errors=False)
    except PdfminerException as error:
        raise _refusal(error.args[0] if error.args else error) from error
    with pdf:
        _refuse_damaged(pdf)
        lines: list[Line] = []
        n_without_text = 0
        for page in pdf.pages:
            _refuse_damaged_page(page)
            found = list(_lines(page))
            n_without_text += not found
            lines += found
            page.close()  # frees the page's letters
        text = markdown_of(lines)
        return Converted(text, len(pdf.pages), n_without_text, _n_unreadable(text))


def _refusal(error: object) -> DocumentRefused:
    if type(error).__name__ == "PDFPasswordIncorrect":
        return DocumentRefused("protected by a password; save it without one")
    return DocumentRefused(f"not a PDF, or damaged ({type(error).__name__}); save it again")


def _refuse_damaged(pdf: "PDF") -> None:
    """Refuse a file of which a part is missing: what is left would be taken for the whole report."""
    from pdfminer.pdfdocument import PDFXRefFallback
    from pdfminer.pdftypes import resolve1

    if any(isinstance(index, PDFXRefFallback) for index in pdf.doc.xrefs):
        raise DocumentRefused("damaged (its index is broken, so parts may be missing); save it again")
    tree = resolve1(pdf.doc.catalog.get("Pages"))
    n_stated = resolve1(tree.get("Count")) if isinstance(tree, dict) else None
    if n_stated != len(pdf.pages):
        raise DocumentRefused(f"damaged ({len(pdf.pages)} of {n_stated} pages can be read); save it again")


def _refuse_damaged_page(page: "Page") -> None:
    from pdfminer.pdftypes import PDFStream, resolve1

    for content in page.page_obj.contents:
        stream = resolve1(content)
        if not isinstance(stream, PDFStream) or (stream.get_rawdata() and not stream.get_data()):
            raise DocumentRefused(f"damaged (page {page.page_number} can't be unpacked); save it again")


def _lines(page: "Page") -> Iterator[Line]:
    """The lines and tables of a page; a table stands where its first word is drawn."""
    drawn = page.extract_words(use_text_flow=True, x_tolerance_ratio=_SPACE_RATIO)
    words = [{**word, "text": text} for word in drawn if (text := _cleaned(word["text"]))]
    links = [
        (link["uri"], (link["x0"], link["top"], link["x1"], link["bottom"]))
        for link in page.hyperlinks
        if link.get("uri")
    ]
    for word in words:
        word["uri"] = next((uri for uri, box in links if _is_in(word, box)), None)
    tables = [] if len(page.edges) > _MOST_EDGES else [table for table in page.find_tables() if _holds(table, words)]
    homes = [next((n for n, table in enumerate(tables) if _is_in(word, table.bbox)), None) for word in words]
    seen: set[int] = set()
    for home, run in groupby(zip(homes, words, strict=True), lambda pair: pair[0]):
        if home is None:
            yield from lines_of([word for _, word in run], page.page_number)
        elif home not in seen:
            seen.add(home)
            inside = [word for word, at in zip(words, homes, strict=True) if at == home]
            _, top, _, bottom = tables[home].bbox
            yield Line(_table(tables[home], inside), 0, top, bottom, page.page_number, is_table=True)


def _holds(table: "Table", words: Sequence[Word]) -> bool:
    """Whether a table is one of text: two rows and columns at least, and no word of it outside its cells."""
    if len(table.rows) < 2 or len(table.columns) < 2:
        return False
    inside = [word for word in words if _is_in(word, table.bbox)]
    used = {cell for cell in table.cells for word in inside if _is_in(word, cell)}
    return len(used) > 1 and all(any(_is_in(word, cell) for cell in used) for word in inside)


def _table(table: "Table", words: Sequence[Word]) -> str:
    rows = [
        [_cell([word for word in words if cell is not None and _is_in(word, cell)]) for cell in row.cells]
        for row in table.rows
    ]
    head, *body = (f"| {' | '.join(cells)} |" for cells in rows)
    return "\n".join((head, "|" + " --- |" * len(rows[0]), *body))


def _cell(words: Sequence[Word]) -> str:
    text = " ".join(line.text for line in lines_of(words, 0))
    return text.replace("|", "\\|")


def _is_in(word: Word, box: tuple[float, float, float, float]) -> bool:
    """Whether the middle of a word is in a box."""
    x0, top, x1, bottom = box
    return bool(x0 <= (word["x0"] + word["x1"]) / 2 <= x1 and top <= (word["top"] + word["bottom"]) / 2 <= bottom)


def _cleaned(text: str) -> str:
    """A word with what is no character left out, and U+FFFD for what cannot be read."""
    text = _UNKNOWN.sub(lambda match: "•" if match[1] == _BULLET_CODE else "\ufffd", text)
    return _CONTROL.sub("", storable(text))


def _n_unreadable(text: str) -> int:
    """How many characters of a text could not be read."""
    n_unreadable = text.count("\ufffd")
    if n_unreadable > _MOST_UNREADABLE * sum(not char.isspace() for char in text):
        raise DocumentRefused("its fonts do not say which letters they show; print it to PDF from its source again")
    return n_unreadable
