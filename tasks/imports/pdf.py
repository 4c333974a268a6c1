"""PDF to Markdown: pdfplumber reads words, tables and links; positions give headings and lists."""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, groupby, pairwise
from operator import itemgetter
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
what is added to it: `uri`, the address of its link, and `table`, the box of its table.
"""
Box = tuple[float, ...]
"""The left, upper, right and lower edge of a part of a page, in points."""
_Item = TypeVar("_Item")

_BULLET = re.compile(r"^[•◦▪▫‣●○■□∙·\uf0b7\uf0a7]\s*(?=\S)")


class Line(NamedTuple):
    """A line of a page, or a whole table as Markdown.

    Attributes:
        text: the line with its links, or the table.
        size: the height of most of its letters in points; 0 for a table.
        top: the upper edge, in points from the top of the page.
        bottom: the lower edge.
        page: the number of the page; 0 for a line in a cell.
        is_table: True for a table.
    """

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
            pages.append(list(_lines_on(page)))
            page.close()  # frees memory
    text = markdown_of(list(chain.from_iterable(pages)))
    n_unreadable = text.count("\ufffd")
    if n_unreadable > 0.1 * sum(not char.isspace() for char in text):
        raise DocumentRefused(
            "its fonts do not identify their letters; print it to PDF from its source again"
        )
    return Converted(text, n_pages_without_text=pages.count([]), n_unreadable=n_unreadable)


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
            is_stream = isinstance(stream, PDFStream)
            if not is_stream or (stream.get_rawdata() and not stream.get_data()):
                raise DocumentRefused(
                    f"damaged (page {page.page_number} can't be unpacked); save it again"
                )


def _lines_on(page: Page) -> Iterator[Line]:
    """Yield the lines and tables of a page; a table comes at the position of its first word."""
    words = _words(page)
    tables_by_box = {}
    # A page with more than 3,000 edges is a drawing; searching it for tables would take minutes.
    if len(page.edges) <= 3_000:
        for table in page.find_tables():
            if _is_ruled_table(table, words):
                tables_by_box[table.bbox] = table
    for word in words:
        word["table"] = _box_of(word, tables_by_box)
    for box, run in groupby(words, itemgetter("table")):
        if box is None:
            yield from lines_of(run, page.page_number)
        elif box in tables_by_box:
            # A table is yielded once, with all its words, even if others are drawn in between.
            table = tables_by_box.pop(box)
            text = _table_text(table, [word for word in words if word["table"] == box])
            yield Line(
                text,
                size=0,
                top=box[1],
                bottom=box[3],
                page=page.page_number,
                is_table=True,
            )


def _words(page: Page) -> list[Word]:
    """Return the words of a page in drawing order, with their links."""
    box_of_link = itemgetter("x0", "top", "x1", "bottom")
    addresses = {box_of_link(link): link.get("uri") for link in page.hyperlinks}
    words = []
    # A gap this large, relative to the size of the letters, separates words; in tightly set text no
    # gap is larger.
    for word in page.extract_words(use_text_flow=True, x_tolerance_ratio=0.15):
        text = _cleaned(word["text"])
        if text:
            address = addresses.get(_box_of(word, addresses))
            words.append({**word, "text": text, "uri": address})
    return words


def _is_ruled_table(table: Table, words: Iterable[Word]) -> bool:
    """Return whether the lines that pdfplumber takes for a table are one.

    It has at least two rows, two columns and two filled cells, and no word outside the cells.
    """
    # None stands for words outside the cells.
    cells = {_box_of(word, table.cells) for word in words if _box_of(word, [table.bbox])}
    has_size = len(table.rows) > 1 and len(table.columns) > 1 and len(cells) > 1
    return has_size and None not in cells


def _table_text(table: Table, words: Iterable[Word]) -> str:
    """Return a table as Markdown, from its words."""
    words_by_cell = defaultdict(list)
    for word in words:
        words_by_cell[_box_of(word, table.cells)].append(word)
    rows = []
    for row in table.rows:
        cells = []
        for box in row.cells:
            # All words of a table are in a cell, so a missing cell has none.
            text = " ".join(line.text for line in lines_of(words_by_cell[box], 0))
            cells.append(text.replace("|", "\\|"))
        rows.append(f"| {' | '.join(cells)} |")
    rule = "|" + " --- |" * len(table.rows[0].cells)
    return "\n".join([rows[0], rule, *rows[1:]])


def _box_of(word: Word, boxes: Iterable[Box]) -> Box | None:
    """Return the first box that contains the middle of a word."""
    x = (word["x0"] + word["x1"]) / 2
    y = (word["top"] + word["bottom"]) / 2
    for box in boxes:
        x0, top, x1, bottom = box
        if x0 <= x <= x1 and top <= y <= bottom:
            return box
    return None


def _cleaned(text: str) -> str:
    """Return a word without control characters, and with U+FFFD for unreadable ones."""
    # In the encodings of PDF, unused codes such as 127 show a bullet.
    text = re.sub(r"\(cid:(\d+)\)", lambda match: "•" if match[1] == "127" else "\ufffd", text)
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f]", "", storable(text))


def lines_of(words: Iterable[Word], page: int) -> Iterator[Line]:
    """Join words into lines, in the drawing order of the page; linked words become links."""
    for line in _runs(words, _is_beside):
        n_letters_by_height = Counter[float]()
        for word in line:
            # A bullet may be larger than its text.
            n_letters_by_height[_height(word)] += count_alphanumeric(word["text"])
        parts = []
        for uri, run in groupby(line, lambda word: word.get("uri")):
            text = _joined(list(run))
            if uri is not None and uri not in text:
                target = f"<{uri}>" if re.search(r"[\s()]", uri) else uri
                text = f"[{text}]({target})"
            parts.append(text)
        size, _ = n_letters_by_height.most_common(1)[0]
        top = min(word["top"] for word in line)
        bottom = max(word["bottom"] for word in line)
        yield Line(" ".join(parts), size, top, bottom, page)


def markdown_of(lines: Sequence[Line]) -> str:
    """Return a document's lines as Markdown.

    Large lines are headings, ranked by size; gaps separate paragraphs.
    """
    n_chars_by_size = Counter[int]()
    for line in lines:
        if not line.is_table:
            n_chars_by_size[round(line.size)] += len(line.text)
    least_size = 0.0
    if n_chars_by_size:
        body_size, _ = n_chars_by_size.most_common(1)[0]
        # The letters of a heading are larger than those of the body by this factor or more.
        least_size = body_size * 1.15
    paragraphs = list(_runs(lines, _goes_on))
    heading_sizes = {
        round(paragraph[0].size) for paragraph in paragraphs if _is_heading(paragraph, least_size)
    }
    largest_first = sorted(heading_sizes, reverse=True)
    blocks = []
    for paragraph in paragraphs:
        if _is_heading(paragraph, least_size):
            level = largest_first.index(round(paragraph[0].size)) + 1
            mark = "#" * min(level, 6)
            blocks.append(f"{mark} {' '.join(line.text for line in paragraph)}")
        else:
            blocks.append("\n".join(map(_body_text, paragraph)))
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _body_text(line: Line) -> str:
    return line.text if line.is_table else _BULLET.sub("- ", line.text)


def _runs(
    items: Iterable[_Item], goes_on: Callable[[list[_Item], _Item], bool]
) -> Iterator[list[_Item]]:
    """Yield items in runs; `goes_on` says whether a run takes the next item too."""
    run: list[_Item] = []
    for item in items:
        if run and not goes_on(run, item):
            yield run
            run = []
        run.append(item)
    if run:
        yield run


def _is_beside(line: list[Word], word: Word) -> bool:
    """Return whether a word is on a line: they overlap by 30 % of the smaller height or more, as
    raised letters do too.
    """
    tallest = max(line, key=_height)
    if not (word["upright"] and tallest["upright"]):
        return False
    overlap = min(tallest["bottom"], word["bottom"]) - max(tallest["top"], word["top"])
    return bool(overlap >= 0.3 * min(_height(tallest), _height(word)))


def _height(word: Word) -> float:
    return float(word["bottom"] - word["top"] if word["upright"] else word["x1"] - word["x0"])


def _joined(words: Sequence[Word]) -> str:
    """Return words as text, separated by spaces, or by tabs between columns.

    A raised word close by follows without a space.
    """
    text = str(words[0]["text"])
    for previous, word in pairwise(words):
        height = _height(word)
        # In heights of the word.
        gap = (word["x0"] - previous["x1"]) / height if height else 0.0
        is_raised = any(abs(previous[edge] - word[edge]) > 1 for edge in ("bottom", "top"))
        separator = " "
        if is_raised and abs(gap) < 0.15:
            separator = ""
        elif gap > 1.5:
            separator = "\t"
        text += separator + word["text"]
    return text


def _is_heading(paragraph: Sequence[Line], least_size: float) -> bool:
    first_line = paragraph[0]
    text = "".join(line.text for line in paragraph)
    is_large = not first_line.is_table and first_line.size >= least_size
    return is_large and len(text) <= 200 and any(char.isalpha() for char in text)


def _goes_on(paragraph: list[Line], line: Line) -> bool:
    """Return whether a line continues a paragraph or a heading.

    On the next page or in the next column it does if it begins with a small letter.
    """
    previous = paragraph[-1]
    if previous.is_table or line.is_table or round(previous.size) != round(line.size):
        return False
    gap = line.top - previous.bottom
    if previous.page != line.page or gap < -line.size:  # the next page, or the next column
        return line.text[:1].islower()
    # A gap of more than 0.6 line heights begins a new paragraph.
    return gap < 0.6 * line.size
