"""DOCX to Markdown, on real files."""

import io
from collections.abc import Callable
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from docx import Document
from PIL import Image

from tasks.dataset import TooLarge
from tasks.imports.documents.__main__ import outcome
from tasks.imports.documents.docx import docx_to_markdown
from tests.tasks.imports.documents.making import add_formula, add_link, write_docx


def test_headings_lists_and_tables_come_in_order(tmp_path: Path) -> None:
    document = Document()
    document.add_heading("Łódź und 東京", 0)
    document.add_heading("Part", 2)
    document.add_paragraph("5 * 3 is snake_case").add_run(" bold").bold = True
    for text in ("a", "b"):
        document.add_paragraph(text, style="List Bullet")
    table = document.add_table(rows=2, cols=2)
    for cell, text in zip(table._cells, ("Land", "Rate", "Köln", "3|5\nand more"), strict=True):
        cell.text = text
    document.add_page_break()
    document.add_paragraph("Closing words.")
    document.save(str(tmp_path / "x.docx"))
    expected = [
        "# Łódź und 東京", "## Part", "5 * 3 is snake_case **bold**", "- a\n- b",
        "| Land | Rate |\n| --- | --- |\n| Köln | 3\\|5 and more |", "Closing words.",
    ]  # fmt: skip

    found = docx_to_markdown(tmp_path / "x.docx")

    assert expected == found.text.strip().split("\n\n")
    assert not found.lacks_formulas


def test_a_link_keeps_its_address_and_a_picture_its_description(tmp_path: Path) -> None:
    picture = io.BytesIO()
    Image.new("RGB", (200, 200), "red").save(picture, "PNG")
    document = Document()
    add_link(document.add_paragraph("See "), "the source", "https://example.org/a")
    for description in ("Prices\nby year", ""):
        document.add_picture(picture)
        document.inline_shapes[-1]._inline.docPr.set("descr", description)
    document.save(str(tmp_path / "x.docx"))
    found = docx_to_markdown(tmp_path / "x.docx")

    assert "See [the source](https://example.org/a)\n\n![Prices by year]()\n" == found.text


def test_formulas_that_are_left_out_are_told(tmp_path: Path) -> None:
    document = Document()
    add_formula(document.add_paragraph("It is "), "a+b")
    document.save(str(tmp_path / "x.docx"))
    found = docx_to_markdown(tmp_path / "x.docx")

    assert ("It is\n", True) == (found.text, found.lacks_formulas)


def test_a_long_report_arrives_whole(tmp_path: Path) -> None:
    said = [f"word{n:05}" for n in range(8_000)]
    file = write_docx(tmp_path / "x.docx", *(" ".join(said[at : at + 100]) for at in range(0, 8_000, 100)))

    assert said == docx_to_markdown(file).text.split()


def test_a_document_without_text_is_empty(tmp_path: Path) -> None:
    assert "" == docx_to_markdown(write_docx(tmp_path / "x.docx")).text


def _changed(content: bytes) -> bytes:
    """With bytes changed in the part that holds the text."""
    with ZipFile(io.BytesIO(content)) as archive:
        at = archive.getinfo("word/document.xml").header_offset + 100
    return content[:at] + bytes(20) + content[at + 20 :]


DAMAGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda _: b"", "not a DOCX, or damaged"),
    "cut off": (lambda content: content[: len(content) // 2], "not a DOCX, or damaged"),
    "changed": (_changed, "damaged"),
    "encrypted, or of old Word": (lambda _: bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600), "password"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_or_locked_file_is_refused(tmp_path: Path, damage: str) -> None:
    change, reason = DAMAGES[damage]
    file = write_docx(tmp_path / "x.docx", *("Something that one can read." for _ in range(50)))
    file.write_bytes(change(file.read_bytes()))

    assert reason in outcome(file, file.suffix)["refused"]


def test_what_unpacks_to_far_more_than_a_report_is_refused_unread(tmp_path: Path) -> None:
    with ZipFile(write_docx(tmp_path / "x.docx", "A bomb."), "a", ZIP_DEFLATED) as archive:
        archive.writestr("word/more.xml", bytes(60 * 2**20))

    with pytest.raises(TooLarge, match="would unpack to 64 MB"):
        docx_to_markdown(tmp_path / "x.docx")
