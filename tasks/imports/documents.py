"""Conversion of documents to Markdown, each in a process of its own, so that a harmful file affects nothing else.

The process is `python -m tasks.imports.documents KIND < FILE`, with limits of memory and time. It prints JSON.

Of a PDF, pdfplumber reads words, tables and links; their positions determine headings and lists.
"""

import json
import os
import re
import resource
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from importlib.util import find_spec
from itertools import groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, TypeVar
from zipfile import ZipFile

from tasks.console import advance, progress
from tasks.dataset.foreign_files import bounded, member_chunks, open_inside, refuse_bomb
from tasks.rules.errors import PipelineError, UsageError, install_extra
from tasks.rules.text.characters import count_alphanumeric, storable

if TYPE_CHECKING:
    from pdfplumber.page import Page
    from pdfplumber.pdf import PDF
    from pdfplumber.table import Table

_LIBRARIES = {".pdf": ("pdfplumber",), ".docx": ("mammoth", "markdownify")}
_PLAIN = (".md", ".markdown", ".txt")
SUFFIXES = (*_PLAIN, *_LIBRARIES)
"""File endings of documents, in lower case."""
LONGEST_S = 300.0


class DocumentRefused(PipelineError):
    """A document cannot be converted; the message gives the reason and the remedy."""


class Converted(NamedTuple):
    """A document as Markdown.

    Attributes:
        text: the Markdown; only white space if the document has no text.
        n_pages_without_text: number of pages of a PDF that are empty or have only pictures.
        n_unreadable: number of characters that their font does not identify; each is U+FFFD in the text.
        lacks_formulas: true if formulas were left out, because they are not text.
    """

    text: str
    n_pages_without_text: int = 0
    n_unreadable: int = 0
    lacks_formulas: bool = False


def convert(files: Sequence[Path], folder: Path | None = None, *, is_quiet: bool = False) -> dict[Path, Converted]:
    """Convert every file to Markdown, as many at a time as there are processors.

    Files of a `folder` are opened only within it.

    Raises:
        UsageError: the libraries for a file are not installed.
        DocumentRefused: a file cannot be converted; the message names it.
    """
    for file in files:
        if any(find_spec(name) is None for name in _LIBRARIES.get(file.suffix.lower(), ())):
            raise UsageError(f"{file}: PDF and DOCX files need more libraries: {install_extra('documents')}")
    done: dict[Path, Converted] = {}
    with progress("convert", {"": len(files)}, is_quiet=is_quiet), ThreadPoolExecutor(os.cpu_count()) as pool:
        for file, converted in zip(files, pool.map(lambda file: _converted(file, folder), files), strict=True):
            done[file] = converted
            advance("convert", succeeded=True)
    return done


def converters(files: Sequence[Path]) -> list[str]:
    """Return the libraries, with their versions, that convert these files to Markdown; text files need none."""
    names = {name for file in files for name in _LIBRARIES.get(file.suffix.lower(), ())}
    return [f"{name} {version(name)}" for name in sorted(names)]


def _converted(file: Path, folder: Path | None) -> Converted:
    kind, root = file.suffix.lower(), folder or file.parent
    try:
        with bounded(open_inside(root, file.relative_to(root)), file) as content:
            if kind not in _PLAIN:
                return _converted_apart(content, kind)
            # With or without a byte order mark; another encoding cannot be detected.
            text = content.read().decode("utf-8-sig")
    except DocumentRefused as error:
        raise DocumentRefused(f"{file}: {error}") from error
    except UnicodeDecodeError as error:
        raise DocumentRefused(f"{file}: not UTF-8 (at byte {error.start}); save it in UTF-8") from error
    if "\0" in text:
        raise DocumentRefused(f"{file}: has NUL characters, perhaps from UTF-16 without its mark; save it in UTF-8")
    return Converted(text)


def _converted_apart(content: BinaryIO, kind: str) -> Converted:
    """Convert a `.pdf` or `.docx` file in a separate process."""
    command = [sys.executable, "-m", "tasks.imports.documents", kind]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        process = subprocess.run(command, check=True, capture_output=True, stdin=content, timeout=LONGEST_S, env=env)
    except subprocess.SubprocessError as error:
        how = f"not converted within {LONGEST_S:.0f} s, or only with more memory than a report needs"
        raise DocumentRefused(f"{how}; give its text as Markdown") from error
    result = json.loads(process.stdout)
    if "refused" in result:
        raise DocumentRefused(result["refused"])
    return Converted(**result)


_MOST_MEMORY_BYTES = 2 * 2**30
"""Memory limit of a conversion. A few kilobytes can unpack to gigabytes; a report of hundreds of pages needs a tenth of
this."""


def docx_to_markdown(file: Path) -> Converted:
    """Return a document's text with headings, lists, tables, links, notes, and the descriptions of pictures.

    Mammoth converts it to HTML, and markdownify converts that to Markdown.

    Raises:
        DocumentRefused: the file is protected by a password, or in the format of Word before 2007.
        FileTooLarge: it would unpack to far more than a report has.
    """
    import mammoth
    from markdownify import ATX, MarkdownConverter

    class Converter(MarkdownConverter):
        """Writes the description of a picture, and escapes bars within cells."""

        def convert_img(self, el: Any, text: str, parent_tags: Any) -> str:
            description = " ".join((el.get("alt") or "").split())
            return f"![{description}]()" if description else ""

        def convert_td(self, el: Any, text: str, parent_tags: Any) -> str:
            return str(super().convert_td(el, text.replace("|", "\\|"), parent_tags))  # type: ignore[misc]

        convert_th = convert_td

    with file.open("rb") as document:
        # Encrypted documents, and those of Word before 2007, begin with these bytes.
        if document.read(8) == bytes.fromhex("d0cf11e0a1b11ae1"):
            raise DocumentRefused("protected by a password, or not a DOCX; save it as DOCX without a password")
        with ZipFile(document) as archive:
            refuse_bomb("the document", file.stat().st_size, (member.file_size for member in archive.infolist()))
            for member in archive.infolist():
                for _ in member_chunks(archive, member):
                    pass  # Mammoth unpacks a whole member at once, so its true size is checked first
        styles = "p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => h2:fresh"
        pictures = mammoth.images.img_element(lambda _: {"src": ""})
        result = mammoth.convert_to_html(document, style_map=styles, convert_image=pictures)
    # Judges read plain text, so characters that Markdown uses are not escaped (as for a PDF).
    converter = Converter(
        heading_style=ATX, bullets="-", table_infer_header=True, escape_asterisks=False, escape_underscores=False,
        escape_misc=False,
    )  # fmt: skip
    text = converter.convert(result.value).strip()
    lacks_formulas = any("officeDocument/2006/math}oMath" in message.message for message in result.messages)
    return Converted(f"{text}\n" if text else "", lacks_formulas=lacks_formulas)


Word = dict[str, Any]
"""A word of pdfplumber: `text`, its box `x0`, `x1`, `top`, `bottom` in points, `upright`; and `uri`."""
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


def pdf_to_markdown(file: Path) -> Converted:
    """Return the text of all pages in drawing order, with headings, lists, ruled tables and links.

    Raises:
        DocumentRefused: the file is damaged, protected by a password, or its text cannot be read.
    """
    import pdfplumber
    from pdfplumber.utils.exceptions import PdfminerException

    try:
        pdf = pdfplumber.open(file, raise_unicode_errors=False)
    except PdfminerException as error:
        if "PDFPasswordIncorrect" in repr(error):
            raise DocumentRefused("protected by a password; save it without one") from error
        raise
    with pdf:
        _refuse_damaged(pdf)
        pages = []
        for page in pdf.pages:
            pages.append(list(_lines(page)))
            page.close()  # frees memory
    text = markdown_of([line for lines in pages for line in lines])
    n_unreadable = text.count("\ufffd")
    if n_unreadable > 0.1 * sum(not char.isspace() for char in text):
        raise DocumentRefused("its fonts do not identify their letters; print it to PDF from its source again")
    return Converted(text, pages.count([]), n_unreadable)


def _refuse_damaged(pdf: "PDF") -> None:
    """Refuse a file with a missing part, because the rest would look like a whole report."""
    from pdfminer.pdfdocument import PDFXRefFallback
    from pdfminer.pdftypes import PDFStream, resolve1

    if any(isinstance(index, PDFXRefFallback) for index in pdf.doc.xrefs):
        raise DocumentRefused("damaged (its index is broken, so parts may be missing); save it again")
    if (n_stated := resolve1(resolve1(pdf.doc.catalog["Pages"])["Count"])) != len(pdf.pages):
        raise DocumentRefused(f"damaged ({len(pdf.pages)} of {n_stated} pages can be read); save it again")
    for page in pdf.pages:
        for stream in map(resolve1, page.page_obj.contents):
            if not isinstance(stream, PDFStream) or (stream.get_rawdata() and not stream.get_data()):
                raise DocumentRefused(f"damaged (page {page.page_number} can't be unpacked); save it again")


def _lines(page: "Page") -> Iterator[Line]:
    """Yield the lines and tables of a page; a table comes at the position of its first word."""
    # A gap this large, relative to the size of the letters, separates words; in tightly set text no gap is larger.
    extracted = page.extract_words(use_text_flow=True, x_tolerance_ratio=0.15)
    words = [{**word, "text": text} for word in extracted if (text := _cleaned(word["text"]))]
    links: dict[tuple[float, ...] | None, Any] = {
        (link["x0"], link["top"], link["x1"], link["bottom"]): link.get("uri") for link in page.hyperlinks
    }
    # A page with more than 3,000 edges is a drawing; searching it for tables would take minutes.
    tables = [] if len(page.edges) > 3_000 else [table for table in page.find_tables() if _holds(table, words)]
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


def _holds(table: "Table", words: Iterable[Word]) -> bool:
    """Return whether this is a real table: two rows, columns and filled cells or more, and no word outside cells."""
    used = {_box_of(word, table.cells) for word in words if _box_of(word, [table.bbox])}
    return len(table.rows) > 1 and len(table.columns) > 1 and len(used) > 1 and None not in used


def _table(table: "Table", words: Iterable[Word]) -> str:
    words = [{**word, "cell": _box_of(word, table.cells)} for word in words]
    inside = ([[word for word in words if cell and word["cell"] == cell] for cell in row.cells] for row in table.rows)
    rows = [[" ".join(line.text for line in lines_of(cell, 0)).replace("|", "\\|") for cell in row] for row in inside]
    head, *body = (f"| {' | '.join(cells)} |" for cells in rows)
    return "\n".join((head, "|" + " --- |" * len(rows[0]), *body))


def _box_of(word: Word, boxes: Iterable[tuple[float, ...]]) -> tuple[float, ...] | None:
    """Return the first box that contains the middle of a word."""
    x, y = (word["x0"] + word["x1"]) / 2, (word["top"] + word["bottom"]) / 2
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
            sizes[_height(word)] += count_alphanumeric(word["text"])  # a bullet may be larger than its text
        parts = []
        for uri, run in groupby(line, lambda word: word.get("uri")):
            text = _joined(list(run))
            target = f"<{uri}>" if re.search(r"[\s()]", uri or "") else uri
            parts.append(text if uri is None or uri in text else f"[{text}]({target})")
        top, bottom = min(word["top"] for word in line), max(word["bottom"] for word in line)
        yield Line(" ".join(parts), sizes.most_common(1)[0][0], top, bottom, page)


def markdown_of(lines: Sequence[Line]) -> str:
    """Return a document's lines as Markdown: large lines are headings, ranked by size; gaps separate paragraphs."""
    letters: Counter[int] = Counter()
    for line in lines:
        letters[round(line.size)] += 0 if line.is_table else len(line.text)
    # The letters of a heading are larger than those of the body by this factor or more.
    least = letters.most_common(1)[0][0] * 1.15 if letters else 0
    paragraphs = list(_runs(lines, _goes_on))
    large = {round(each[0].size) for each in paragraphs if _may_be_heading(each, least)}
    levels = {size: min(level, 6) for level, size in enumerate(sorted(large, reverse=True), start=1)}
    blocks = []
    for each in paragraphs:
        if _may_be_heading(each, least):
            blocks.append(f"{'#' * levels[round(each[0].size)]} {' '.join(line.text for line in each)}")
        else:
            blocks.append("\n".join(line.text if line.is_table else _BULLET.sub("- ", line.text) for line in each))
    return "\n\n".join(blocks) + "\n" if blocks else ""


def _runs(items: Iterable[_Item], goes_on: Callable[[list[_Item], _Item], bool]) -> Iterator[list[_Item]]:
    run: list[_Item] = []
    for item in items:
        if run and not goes_on(run, item):
            yield run
            run = []
        run.append(item)
    if run:
        yield run


def _is_beside(line: list[Word], word: Word) -> bool:
    """Return whether a word is on a line: they overlap by enough of the smaller height, as raised letters do."""
    last = max(line, key=_height)
    shared = min(last["bottom"], word["bottom"]) - max(last["top"], word["top"])
    # They must overlap by 30 % of the smaller height.
    return bool(word["upright"] and last["upright"] and shared >= 0.3 * min(_height(last), _height(word)))


def _height(word: Word) -> float:
    return float(word["bottom"] - word["top"] if word["upright"] else word["x1"] - word["x0"])


def _joined(words: Sequence[Word]) -> str:
    """Return words as text, separated by spaces, or by tabs between columns; a raised word follows without a space."""
    text = str(words[0]["text"])
    for before, word in pairwise(words):
        gap = (word["x0"] - before["x1"]) / _height(word) if _height(word) else 0.0
        is_raised = abs(before["bottom"] - word["bottom"]) > 1 or abs(before["top"] - word["top"]) > 1
        # The gap is measured in heights of the word: a raised word close by gets no space, a large gap is a new column.
        text += "" if is_raised and abs(gap) < 0.15 else "\t" if gap > 1.5 else " "
        text += word["text"]
    return text


def _may_be_heading(paragraph: Sequence[Line], least: float) -> bool:
    text = "".join(line.text for line in paragraph)
    first = paragraph[0]
    return not first.is_table and first.size >= least and len(text) <= 200 and any(map(str.isalpha, text))


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


def outcome(file: Path, kind: str) -> dict[str, Any]:
    """Return the result of converting a `.pdf` or `.docx` file: the fields of `Converted`, or why it was `refused`."""
    try:
        return (docx_to_markdown if kind == ".docx" else pdf_to_markdown)(file)._asdict()
    except PipelineError as error:
        return {"refused": str(error)}
    except MemoryError:
        raise  # the process ends, which is reported as too much memory
    except Exception as error:  # noqa: BLE001 - the libraries raise any kind of error, and each is reported
        return {"refused": f"not a {kind[1:].upper()}, or damaged ({type(error).__name__}); save it again"}


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY_BYTES, _MOST_MEMORY_BYTES))
    print(json.dumps(outcome(Path("/dev/stdin"), sys.argv[1])))
