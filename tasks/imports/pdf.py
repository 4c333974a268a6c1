"""PDF to Markdown: pdfplumber reads words, tables and links; their positions determine headings and
lists.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pdfplumber
from pdfminer.pdfdocument import PDFXRefFallback
from pdfminer.pdftypes import PDFStream, resolve1
from pdfplumber.page import Page
from pdfplumber.pdf import PDF
from pdfplumber.table import Table

from tasks.imports.documents import Converted, DocumentRefused
from tasks.rules.text.characters import count_alphanumeric, storable

Word = dict[str, Any]
"""A word of pdfplumber: `text`, its box `x0`, `x1`, `top`, `bottom` in points, `upright`; and
`uri`.
"""
_Item = TypeVar("_Item")

_BULLET = re.compile(r"^[•◦▪▫‣●○■□∙·\uf0b7\uf0a7]\s*(?=\S)")


class Line(NamedTuple):
    """A line of a page, or a whole table as Markdown."""

    text: str
    size: float
    top: float
    bottom: float
    page: int
    is_table: bool = False


def to_markdown(file: Path) -> Converted:
    """Return the text of all pages in drawing order, with headings, lists, ruled tables and links.

    Raises:
        DocumentRefused: the file is damaged, or its text cannot be read.
        PdfminerException: it is not a PDF, or protected by a password.
    """
    with pdfplumber.open(file, raise_unicode_errors=False) as pdf:
        _refuse_damaged(pdf)
        pages = []
        for page in pdf.pages:
            pages.append(list(_lines(page)))
            page.close()  # frees memory
    text = markdown_of([line for lines in pages for line in lines])
    n_unreadable = text.count("\ufffd")
    if n_unreadable > 0.1 * sum(not char.isspace() for char in text):
        raise DocumentRefused(
            "its fonts do not identify their letters; print it to PDF from its source again"
        )
    return Converted(text, pages.count([]), n_unreadable)


def _refuse_damaged(pdf: PDF) -> None:
    """Refuse a file with a missing part, because the rest would look like a whole report."""
    if any(isinstance(index, PDFXRefFallback) for index in pdf.doc.xrefs):
        raise DocumentRefused(
            "damaged (its index is broken, so parts may be missing); save it again"
        )
    n_stated = resolve1(resolve1(pdf.doc.catalog["Pages"])["Count"])
    if n_stated != len(pdf.pages):
        raise DocumentRefused(
            f"damaged ({len(pdf.pages)} of {n_stated} pages can be read); save it again"
        )
    for page in pdf.pages:
        for stream in map(resolve1, page.page_obj.contents):
            if not isinstance(stream, PDFStream) or (
                stream.get_rawdata() and not stream.get_data()
            ):
                raise DocumentRefused(
                    f"damaged (page {page.page_number} can't be unpacked); save it again"
                )


def _lines(page: Page) -> Iterator[Line]:
    """Yield the lines and tables of a page; a table comes at the position of its first word."""
    # A gap this large, relative to the size of the letters, separates words; in tightly set text no
    # gap is larger.
    extracted = page.extract_words(use_text_flow=True, x_tolerance_ratio=0.15)
    words = [{**word, "text": text} for word in extracted if (text := _cleaned(word["text"]))]
    links: dict[tuple[float, ...] | None, Any] = {
        (link["x0"], link["top"], link["x1"], link["bottom"]): link.get("uri")
        for link in page.hyperlinks
    }
    # A page with more than 3,000 edges is a drawing; searching it for tables would take minutes.
    tables = (
        []
        if len(page.edges) > 3_000
        else [table for table in page.find_tables() if _holds(table, words)]
    )
    for word in words:
        word["uri"] = links.get(_box_of(word, filter(None, links)))
        word["table"] = _box_of(word, [table.bbox for table in tables])
    unseen = {table.bbox: table for table in tables}
    for box, run in groupby(words, lambda word: word["table"]):
        if box is None:
            yield from lines_of(run, page.page_number)
        elif table := unseen.pop(box, None):
            text = _table(table, [word for word in words if word["table"] == box])
            yield Line(text, 0, box[1], box[3], page.page_number, is_table=True)


def _holds(table: Table, words: Iterable[Word]) -> bool:
    """Return whether this is a real table: two rows, columns and filled cells or more, and no word
    outside cells.
    """
    used = {_box_of(word, table.cells) for word in words if _box_of(word, [table.bbox])}
    return len(table.rows) > 1 and len(table.columns) > 1 and len(used) > 1 and None not in used


def _table(table: Table, words: Iterable[Word]) -> str:
    words = [{**word, "cell": _box_of(word, table.cells)} for word in words]
    rows = []
    for row in table.rows:
        inside = (
            [word for word in words if cell is not None and word["cell"] == cell]
            for cell in row.cells
        )
        rows.append(
            [
                " ".join(line.text for line in lines_of(cell, 0)).replace("|", "\\|")
                for cell in inside
            ]
        )
    head, *body = (f"| {' | '.join(cells)} |" for cells in rows)
    return "\n".join((head, "|" + " --- |" * len(rows[0]), *body))


def _box_of(word: Word, boxes: Iterable[tuple[float, ...]]) -> tuple[float, ...] | None:
    """Return the first box that contains the middle of a word."""
    x = (word["x0"] + word["x1"]) / 2
    y = (word["top"] + word["bottom"]) / 2
    return next((box for box in boxes if box[0] <= x <= box[2] and box[1] <= y <= box[3]), None)


def _cleaned(text: str) -> str:
    """Return a word without control characters, and with U+FFFD for unreadable ones."""
    # In the encodings of PDF, unused codes such as 127 show a bullet.
    text = re.sub(r"\(cid:(\d+)\)", lambda match: "•" if match[1] == "127" else "\ufffd", text)
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", storable(text))


def lines_of(words: Iterable[Word], page: int) -> Iterator[Line]:
    """Join words into lines, in the drawing order of the page; linked words become links."""
    for line in _runs(words, _is_beside):
        sizes: Counter[float] = Counter()
        for word in line:
            sizes[_height(word)] += count_alphanumeric(
                word["text"]
            )  # a bullet may be larger than its text
        parts = []
        for uri, run in groupby(line, lambda word: word.get("uri")):
            text = _joined(list(run))
            target = f"<{uri}>" if re.search(r"[\s()]", uri or "") else uri
            parts.append(text if uri is None or uri in text else f"[{text}]({target})")
        top = min(word["top"] for word in line)
        bottom = max(word["bottom"] for word in line)
        yield Line(" ".join(parts), sizes.most_common(1)[0][0], top, bottom, page)


def markdown_of(lines: Sequence[Line]) -> str:
    """Return a document's lines as Markdown: large lines are headings, ranked by size; gaps
    separate paragraphs.
    """
    letters: Counter[int] = Counter()
    for line in lines:
        letters[round(line.size)] += 0 if line.is_table else len(line.text)
    # The letters of a heading are larger than those of the body by this factor or more.
    least = letters.most_common(1)[0][0] * 1.15 if letters else 0
    paragraphs = list(_runs(lines, _goes_on))
    large = {round(each[0].size) for each in paragraphs if _may_be_heading(each, least)}
    levels = {
        size: min(level, 6) for level, size in enumerate(sorted(large, reverse=True), start=1)
    }
    blocks = []
    for each in paragraphs:
        if _may_be_heading(each, least):
            blocks.append(
                f"{'#' * levels[round(each[0].size)]} {' '.join(line.text for line in each)}"
            )
        else:
            blocks.append(
                "\n".join(
                    line.text if line.is_table else _BULLET.sub("- ", line.text) for line in each
                )
            )
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _runs(
    items: Iterable[_Item], goes_on: Callable[[list[_Item], _Item], bool]
) -> Iterator[list[_Item]]:
    run: list[_Item] = []
    for item in items:
        if run and not goes_on(run, item):
            yield run
            run = []
        run.append(item)
    if run:
        yield run


def _is_beside(line: list[Word], word: Word) -> bool:
    """Return whether a word is on a line: they overlap by enough of the smaller height, as raised
    letters do.
    """
    last = max(line, key=_height)
    shared = min(last["bottom"], word["bottom"]) - max(last["top"], word["top"])
    # They must overlap by 30 % of the smaller height.
    return bool(
        word["upright"] and last["upright"] and shared >= 0.3 * min(_height(last), _height(word))
    )


def _height(word: Word) -> float:
    return float(word["bottom"] - word["top"] if word["upright"] else word["x1"] - word["x0"])


def _joined(words: Sequence[Word]) -> str:
    """Return words as text, separated by spaces, or by tabs between columns; a raised word follows
    without a space.
    """
    text = str(words[0]["text"])
    for before, word in pairwise(words):
        gap = (word["x0"] - before["x1"]) / _height(word) if _height(word) else 0.0
        is_raised = (
            abs(before["bottom"] - word["bottom"]) > 1 or abs(before["top"] - word["top"]) > 1
        )
        # The gap is measured in heights of the word: a raised word close by gets no space, a large
        # gap is a new column.
        text += "" if is_raised and abs(gap) < 0.15 else "\t" if gap > 1.5 else " "
        text += word["text"]
    return text


def _may_be_heading(paragraph: Sequence[Line], least: float) -> bool:
    text = "".join(line.text for line in paragraph)
    first = paragraph[0]
    return (
        not first.is_table
        and first.size >= least
        and len(text) <= 200
        and any(map(str.isalpha, text))
    )


def _goes_on(paragraph: list[Line], line: Line) -> bool:
    """Return whether a line continues a paragraph or a heading."""
    before = paragraph[-1]
    if before.is_table or line.is_table or round(before.size) != round(line.size):
        return False
    gap = line.top - before.bottom
    if before.page != line.page or gap < -line.size:  # the next page, or the next column
        return line.text[:1].islower()
    # A gap of more than 0.6 line heights begins a new paragraph.
    return gap < 0.6 * line.size
