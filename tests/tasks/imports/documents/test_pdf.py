"""PDF to Markdown, on real files: all that a page says, in the order in which people read it."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from reportlab.platypus import PageBreak

from tasks.imports.documents.__main__ import outcome
from tasks.imports.documents.converting import DocumentRefused
from tasks.imports.documents.pdf import pdf_to_markdown
from tests.tasks.imports.documents.making import (
    body,
    canvas,
    heading,
    points,
    table,
    write_locked_pdf,
    write_pdf,
    write_scan,
)

RATES = [["Land", "Rate", "Note"], ["Köln", "3,5 %", "a|b"], ["Genève", "4 %", "two words"]]


def words_of(text: str) -> list[str]:
    return re.sub(r"[#|-]", " ", text).split()


def test_pages_come_in_order_with_headings_lists_and_tables(tmp_path: Path) -> None:
    parts = [heading("The title", 1), body("Opening words."), heading("First part"), body("One."), points("a", "b c")]
    parts += [PageBreak(), heading("Second part"), table(RATES), body("Closing words.")]
    expected = [
        "# The title", "Opening words.", "## First part", "One.", "- a\n- b c", "## Second part",
        "| Land | Rate | Note |\n| --- | --- | --- |\n| Köln | 3,5 % | a\\|b |\n| Genève | 4 % | two words |",
        "Closing words.",
    ]  # fmt: skip

    found = pdf_to_markdown(write_pdf(tmp_path / "x.pdf", parts))

    assert expected == found.text.strip().split("\n\n")
    assert (2, 0, 0) == (found.n_pages, found.n_pages_without_text, found.n_unreadable)


def test_the_rows_of_a_table_without_lines_stay_rows(tmp_path: Path) -> None:
    found = pdf_to_markdown(write_pdf(tmp_path / "x.pdf", [table(RATES, is_ruled=False)])).text

    assert [row for row in RATES if row] == [line.split("\t") for line in found.split("\n") if line]


def test_a_box_around_text_is_no_table(tmp_path: Path) -> None:
    assert "In a box.\n" == pdf_to_markdown(write_pdf(tmp_path / "x.pdf", [table([["In a box."]])])).text


def test_columns_are_read_one_after_the_other(tmp_path: Path) -> None:
    said = [f"w{n}" for n in range(2_000)]
    parts = [body(" ".join(said[at : at + 100])) for at in range(0, 2_000, 100)]
    file = write_pdf(tmp_path / "x.pdf", parts, n_columns=2)

    assert said == words_of(pdf_to_markdown(file).text)


@pytest.mark.parametrize(
    ("font", "text"),
    [("Vera", "Größe, façade, Łukasz, œuvre, Žižka: 12 € – “so”"), ("HeiseiMin-W3", "東京の報告")],
    ids=["latin", "japanese"],
)
def test_letters_of_other_scripts_arrive(tmp_path: Path, font: str, text: str) -> None:
    assert f"{text}\n" == pdf_to_markdown(write_pdf(tmp_path / "x.pdf", [body(text, font)])).text


@pytest.mark.slow
def test_a_long_report_arrives_whole(tmp_path: Path) -> None:
    said = [f"word{n:05}" for n in range(8_000)]
    file = write_pdf(tmp_path / "x.pdf", [body(" ".join(said[at : at + 400])) for at in range(0, 8_000, 400)])
    found = pdf_to_markdown(file).text

    assert len(found) >= 80_000
    assert said == found.split()


def test_a_link_keeps_its_address(tmp_path: Path) -> None:
    text = 'See <a href="https://example.org/a_(b)">the source</a> and <a href="https://example.org/c">more</a> there.'
    found = pdf_to_markdown(write_pdf(tmp_path / "x.pdf", [body(text)])).text

    assert "See [the source](<https://example.org/a_(b)>) and [more](https://example.org/c) there.\n" == found


def test_a_raised_letter_belongs_to_its_word(tmp_path: Path) -> None:
    text = "About 10<super>6</super> tons of CO<sub>2</sub> a year."

    assert "About 106 tons of CO2 a year.\n" == pdf_to_markdown(write_pdf(tmp_path / "x.pdf", [body(text)])).text


def test_a_page_of_pictures_has_no_text(tmp_path: Path) -> None:
    found = pdf_to_markdown(write_scan(tmp_path / "x.pdf"))

    assert ("", 1, 1) == (found.text, found.n_pages, found.n_pages_without_text)


def test_a_page_that_is_a_drawing_is_read_without_looking_for_tables(tmp_path: Path) -> None:
    page = canvas(tmp_path / "x.pdf")
    for n in range(3_500):
        page.line(n % 500, n // 10, n % 500 + 40, n // 10 + (n % 3) * 0.1)
    page.drawString(72, 700, "A chart.")
    page.save()

    assert "A chart.\n" == pdf_to_markdown(tmp_path / "x.pdf").text


def test_what_only_its_owner_may_change_is_read(tmp_path: Path) -> None:
    assert "Behind a lock.\n" == pdf_to_markdown(write_locked_pdf(tmp_path / "x.pdf", password="")).text


def _broken_stream(content: bytes) -> bytes:
    """With some bytes within the second page's text changed."""
    starts = [match.end() for match in re.finditer(rb"stream\n", content) if content[match.start() - 3 :][:3] != b"end"]
    at = starts[1] + 20
    return content[:at] + bytes(20) + content[at + 20 :]


DAMAGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda _: b"", "not a PDF, or damaged"),
    "another kind of file": (lambda _: b"<html>Not found</html>", "not a PDF, or damaged"),
    "cut off": (lambda content: content[: len(content) // 2], "damaged"),
    "without an index": (lambda content: content[: content.rindex(b"startxref")], "damaged"),
    "a page that can't be unpacked": (_broken_stream, "damaged (page 2"),
    "a page that is gone": (lambda content: content.replace(b"/Count 2", b"/Count 3"), "2 of 3 pages"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_file_is_refused_and_not_taken_in_part(tmp_path: Path, damage: str) -> None:
    change, reason = DAMAGES[damage]
    file = tmp_path / "x.pdf"
    page = canvas(file, pageCompression=1)
    for number in (1, 2):
        page.drawString(72, 700, f"Page {number} says something that one can read.")
        page.showPage()
    page.save()
    assert 2 == pdf_to_markdown(file).n_pages
    file.write_bytes(change(file.read_bytes()))

    assert reason in outcome(file, file.suffix)["refused"]


def test_a_locked_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DocumentRefused, match="protected by a password"):
        pdf_to_markdown(write_locked_pdf(tmp_path / "x.pdf", password="secret"))


def test_a_font_that_does_not_tell_its_letters_is_refused(tmp_path: Path) -> None:
    file = write_pdf(tmp_path / "x.pdf", [body("東京の報告", "HeiseiMin-W3")])
    file.write_bytes(file.read_bytes().replace(b"Japan1", b"Secret"))

    with pytest.raises(DocumentRefused, match="which letters they show"):
        pdf_to_markdown(file)
