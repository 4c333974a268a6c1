"""Documents: converted in a process with limits, PDF and DOCX to Markdown with their layout."""

import io
import re
import sys
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from docx import Document
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from reportlab.platypus import PageBreak

from tasks.dataset.foreign_files import FileTooLarge
from tasks.imports import documents
from tasks.imports.conversion import outcome
from tasks.imports.documents import Converted, DocumentRefused, convert
from tasks.imports.docx import to_markdown as docx_to_markdown
from tasks.imports.pdf import lines_of, markdown_of
from tasks.imports.pdf import to_markdown as pdf_to_markdown
from tasks.rules.errors import UsageError
from tests.tasks.imports import written_documents
from tests.tasks.imports.written_documents import (
    body,
    heading,
    table,
    write_docx,
    write_pdf,
)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("Coffee".encode("utf-16"), "not UTF-8"),
        ("Coffee".encode("utf-16-le"), "NUL"),
        ("Caf\xe9".encode("latin-1"), "at byte 3"),
    ],
)
def test_text_in_another_encoding_is_refused_and_not_guessed(
    tmp_path, content, reason
):
    (tmp_path / "a.txt").write_bytes(content)

    with pytest.raises(DocumentRefused, match=f"{tmp_path / 'a.txt'}: .*{reason}"):
        convert([tmp_path / "a.txt"], tmp_path, is_quiet=True)


def test_a_file_that_takes_too_long_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(documents, "LONGEST_S", 0.01)

    with pytest.raises(DocumentRefused, match="not converted within"):
        convert(
            [write_docx(tmp_path / "a.docx", "In Word.")], tmp_path, is_quiet=True
        )


@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("a.PDF", "pdfplumber"),
        ("a.docx", "mammoth"),
        ("a.docx", "markdownify"),
    ],
)
def test_without_the_extra_one_line_says_what_to_install(
    tmp_path,
    monkeypatch,
    name,
    library,
):
    monkeypatch.setitem(sys.modules, library, None)

    advice = "PDF and DOCX files need more libraries: `uv sync --extra documents`$"
    with pytest.raises(UsageError, match=f"^{tmp_path / name}: {advice}"):
        convert([tmp_path / "no-such.md", tmp_path / name], tmp_path, is_quiet=True)


def test_text_needs_no_library(tmp_path, monkeypatch):
    for library in ("pdfplumber", "mammoth", "markdownify"):
        monkeypatch.setitem(sys.modules, library, None)
    file = tmp_path / "b.md"
    file.write_text("Text.")

    assert convert([file], tmp_path, is_quiet=True) == {file: Converted("Text.")}


def test_a_document_is_converted_beside_modules_of_the_user(tmp_path, monkeypatch):
    module = "raise SystemExit('a module of the user')"
    (tmp_path / "json.py").write_text(module)
    file = write_docx(tmp_path / "a.docx", "In Word.")
    monkeypatch.chdir(tmp_path)

    converted = convert([file], file.parent, is_quiet=True)[file]

    assert converted.text == "In Word.\n"


def docx_text(file: Path, document: Any) -> str:
    """Return the Markdown of a document of python-docx."""
    document.save(str(file))
    return docx_to_markdown(file).text


def test_headings_emphasis_and_lists_of_a_docx_become_markdown_in_order(tmp_path):
    document = Document()
    document.add_heading("Łódź und 東京", 0)
    document.add_heading("Part", 2)
    document.add_paragraph("5 * 3 is snake_case").add_run(" bold").bold = True
    for text in ("a", "b"):
        document.add_paragraph(text, style="List Bullet")

    assert docx_text(tmp_path / "x.docx", document) == (
        "# Łódź und 東京\n\n## Part\n\n5 * 3 is snake_case **bold**\n\n- a\n- b\n"
    )


def test_a_table_of_a_docx_becomes_markdown(tmp_path):
    document = Document()
    table = document.add_table(rows=2, cols=2)
    texts = ("Land", "Rate", "Köln", "3|5\nand more")
    for cell, text in zip(table._cells, texts, strict=True):
        cell.text = text

    assert docx_text(tmp_path / "x.docx", document) == (
        "| Land | Rate |\n| --- | --- |\n| Köln | 3\\|5 and more |\n"
    )


def test_links_and_descriptions_of_pictures_of_a_docx_are_kept(tmp_path):
    picture = io.BytesIO()
    Image.new("RGB", (200, 200), "red").save(picture, "PNG")
    document = Document()
    paragraph = document.add_paragraph("See ")
    written_documents.add_link(paragraph, "the source", "https://example.org/a")
    for description in ("Prices\nby year", ""):
        document.add_picture(picture)
        document.inline_shapes[-1]._inline.docPr.set("descr", description)

    assert docx_text(tmp_path / "x.docx", document) == (
        "See [the source](https://example.org/a)\n\n![Prices by year]()\n"
    )


def test_formulas_of_a_docx_are_left_out_and_reported(tmp_path):
    document = Document()
    written_documents.add_formula(document.add_paragraph("It is "), "a+b")
    document.save(str(tmp_path / "x.docx"))

    converted = docx_to_markdown(tmp_path / "x.docx")
    assert converted == Converted("It is\n", lacks_formulas=True)


def test_an_empty_docx_has_no_text(tmp_path):
    assert docx_to_markdown(write_docx(tmp_path / "x.docx")) == Converted("")


def test_what_unpacks_to_far_more_than_a_report_is_refused_unread(tmp_path):
    file = write_docx(tmp_path / "x.docx", "A bomb.")
    with ZipFile(file, "a", ZIP_DEFLATED) as archive:
        archive.writestr("word/more.xml", bytes(60 * 2**20))

    with pytest.raises(FileTooLarge, match="would unpack to 64 MB"):
        docx_to_markdown(tmp_path / "x.docx")


def at(
    text: str,
    x0: float,
    top: float,
    size: float = 10.0,
    upright: bool = True,
) -> dict[str, Any]:
    return {
        "text": text,
        "x0": x0,
        "x1": x0 + 5 * len(text),
        "top": top,
        "bottom": top + size,
        "upright": upright,
    }


LETTERS = st.text(
    "abcdefgh",
    min_size=1,
    max_size=8,
)
POSITIONS = st.integers(0, 600)
WORDS = st.builds(
    at,
    LETTERS,
    POSITIONS,
    POSITIONS,
    st.integers(4, 30),
    st.booleans(),
)


@given(st.lists(WORDS, max_size=40))
def test_no_letter_is_lost_and_none_changes_its_place(words):
    document = markdown_of(list(lines_of(words, 1)))

    letters = "".join(filter(str.isalpha, document))
    assert letters == "".join(word["text"] for word in words)


def test_sentences_go_on_over_pages():
    lines = [
        *lines_of([at("going", 0, 700)], 1),
        *lines_of([at("on", 0, 20)], 2),
        *lines_of([at("New", 0, 20)], 3),
    ]

    assert markdown_of(lines) == "going\non\n\nNew\n"


def test_levels_of_headings_follow_sizes():
    words = [
        at("Big", 0, 0, 20),
        at("One", 0, 24, 20),
        at("Small", 0, 60, 14),
        at("and the text of it", 0, 90),
    ]

    document = markdown_of(list(lines_of(words, 1)))

    assert document == "# Big One\n\n## Small\n\nand the text of it\n"


RATES = [
    ["Land", "Rate", "Note"],
    ["Köln", "3,5 %", "a|b"],
    ["Genève", "4 %", "two words"],
]


def test_pages_come_in_order_with_headings_lists_and_tables(tmp_path):
    parts = [
        heading("The title", 1),
        body("Opening words."),
        heading("First part"),
        body("One."),
        written_documents.points("a", "b c"),
        PageBreak(),
        heading("Second part"),
        table(RATES),
        body("Closing words."),
    ]
    expected = [
        "# The title",
        "Opening words.",
        "## First part",
        "One.",
        "- a\n- b c",
        "## Second part",
        (
            "| Land | Rate | Note |\n| --- | --- | --- |\n"
            "| Köln | 3,5 % | a\\|b |\n| Genève | 4 % | two words |"
        ),
        "Closing words.",
    ]

    document = pdf_to_markdown(write_pdf(tmp_path / "x.pdf", *parts))

    assert document == Converted("\n\n".join(expected) + "\n")


LINKS = (
    'See <a href="https://example.org/a_(b)">the source</a> and <a'
    ' href="https://example.org/c">more</a> there.'
)
LATIN = "Größe, façade, Łukasz, œuvre, Žižka: 12 € – “so”"
JAPANESE = "東京の報告"
SHOWN = {
    "rows without lines": (
        table(RATES, is_ruled=False),
        "\n\n".join(map("\t".join, RATES)),
    ),
    "a box around text": (table([["In a box."]]), "In a box."),
    "latin": (body(LATIN, "Vera"), LATIN),
    "japanese": (body(JAPANESE, "HeiseiMin-W3"), JAPANESE),
    "links": (
        body(LINKS),
        "See [the source](<https://example.org/a_(b)>) and [more](https://example.org/c) there.",
    ),
    "raised letters": (
        body("About 10<super>6</super> t of CO<sub>2</sub> a year."),
        "About 106 t of CO2 a year.",
    ),
}


@pytest.mark.parametrize("case", SHOWN)
def test_what_a_page_shows_is_the_text(tmp_path, case):
    part, text = SHOWN[case]

    document = pdf_to_markdown(write_pdf(tmp_path / "x.pdf", part))

    lines = filter(None, document.text.split("\n"))
    assert "\n\n".join(lines) == text


def test_a_page_of_pictures_has_no_text(tmp_path):
    file = written_documents.write_scan(tmp_path / "x.pdf")

    assert pdf_to_markdown(file) == Converted("", n_pages_without_text=1)


def test_a_page_that_is_a_drawing_is_not_searched_for_tables(tmp_path, monkeypatch):
    monkeypatch.delattr("pdfplumber.page.Page.find_tables")
    page = written_documents.canvas(tmp_path / "y.pdf")
    for y in range(3_500):
        page.line(0, y, 40, y)
    page.drawString(72, 700, "A chart.")
    page.save()

    assert pdf_to_markdown(tmp_path / "y.pdf").text == "A chart.\n"


def _broken_stream(content: bytes) -> bytes:
    """Overwrite some bytes in the text of the second page."""
    starts = [match.end() for match in re.finditer(rb"(?<!end)stream\n", content)]
    position = starts[1] + 20
    return content[:position] + bytes(20) + content[position + 20 :]


TWO_PAGES = [f"Page {number} says something that one can read." for number in (1, 2)]
DAMAGES = {
    "empty": (".pdf", lambda _: b"", "cannot be read as PDF"),
    "another kind of file": (
        ".pdf",
        lambda _: b"<html>Not found</html>",
        "cannot be read as PDF",
    ),
    "cut off": (
        ".pdf",
        lambda content: content[: len(content) // 2],
        "cannot be read as PDF",
    ),
    "a page that can't be unpacked": (".pdf", _broken_stream, "damaged (page 2"),
    "a page that is gone": (
        ".pdf",
        lambda content: content.replace(b"/Count 2", b"/Count 3"),
        "2 of 3 pages",
    ),
    "empty DOCX": (".docx", lambda _: b"", "cannot be read as DOCX"),
    "DOCX cut off": (
        ".docx",
        lambda content: content[: len(content) // 2],
        "cannot be read as DOCX",
    ),
    "encrypted, or old Word": (
        ".docx",
        lambda _: bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600),
        "cannot be read as DOCX",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_or_locked_file_is_refused_and_not_taken_in_part(tmp_path, damage):
    suffix, change, reason = DAMAGES[damage]
    file = tmp_path / f"x{suffix}"
    if suffix == ".pdf":
        written_documents.write_pages(file, *TWO_PAGES, pageCompression=1)
    else:
        write_docx(file, *["Something that one can read."] * 50)
    assert "refused" not in outcome(file, suffix)
    file.write_bytes(change(file.read_bytes()))

    assert reason in outcome(file, suffix)["refused"]


def test_what_only_its_owner_may_change_is_read(tmp_path):
    file = written_documents.write_locked_pdf(tmp_path / "x.pdf", password="")
    assert pdf_to_markdown(file).text == "Behind a lock.\n"


def test_a_font_that_does_not_tell_its_letters_is_refused(tmp_path):
    file = write_pdf(tmp_path / "x.pdf", body("東京の報告", "HeiseiMin-W3"))
    file.write_bytes(file.read_bytes().replace(b"Japan1", b"Secret"))

    with pytest.raises(DocumentRefused, match="do not identify their letters"):
        pdf_to_markdown(file)
