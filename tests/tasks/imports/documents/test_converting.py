"""Converting many files: each in a process with limits, and text as it is."""

import sys
from pathlib import Path

import pytest

from tasks.imports.documents import DocumentRefused, convert, converters, converting
from tasks.rules.errors import UsageError
from tests.tasks.imports.documents.making import body, write_docx, write_pdf

ENCODINGS = {"utf-16": "not UTF-8", "utf-16-le": "NUL", "latin-1": "at byte 3"}


@pytest.mark.slow
def test_files_of_all_kinds_become_markdown(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_bytes(b"# As\r\n\r\nit is\t\n")
    (tmp_path / "b.TXT").write_text("\ufeffżółć", encoding="utf-8")
    files = [tmp_path / "a.md", tmp_path / "b.TXT", write_docx(tmp_path / "c.docx", "In Word.")]
    files.append(write_pdf(tmp_path / "d.PDF", [body("In print.")]))
    found = convert(files, is_quiet=True)

    assert ["# As\r\n\r\nit is\t\n", "żółć", "In Word.\n", "In print.\n"] == [found[file].text for file in files]
    assert ["mammoth", "markdownify", "pdfplumber"] == [line.split()[0] for line in converters(files)]
    assert [] == converters(files[:2])


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_text_in_another_encoding_is_refused_and_not_guessed(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "a.txt").write_bytes(("Caf\xe9" if encoding == "latin-1" else "Coffee").encode(encoding))

    with pytest.raises(DocumentRefused) as caught:
        convert([tmp_path / "a.txt"], is_quiet=True)

    assert f"{tmp_path / 'a.txt'}: " in str(caught.value)
    assert ENCODINGS[encoding] in str(caught.value)


@pytest.mark.slow
def test_a_file_that_is_not_what_its_ending_says_is_refused_by_name(tmp_path: Path) -> None:
    write_pdf(tmp_path / "a.pdf", [body("In print.")]).rename(tmp_path / "a.docx")

    with pytest.raises(DocumentRefused) as caught:
        convert([write_docx(tmp_path / "b.docx", "In Word."), tmp_path / "a.docx"], is_quiet=True)

    assert f"{tmp_path / 'a.docx'}: not a DOCX, or damaged" in str(caught.value)
    assert 1 == len(str(caught.value).splitlines())


def test_a_file_that_takes_too_long_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(converting, "_LONGEST_S", 0.01)

    with pytest.raises(DocumentRefused, match="not converted within"):
        convert([write_docx(tmp_path / "a.docx", "In Word.")], is_quiet=True)


@pytest.mark.parametrize(
    ("name", "library"), [("a.PDF", "pdfplumber"), ("a.docx", "mammoth"), ("a.docx", "markdownify")]
)
def test_without_the_extra_one_line_says_what_to_install_and_nothing_is_converted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, library: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    (tmp_path / "b.md").write_text("Text needs no library.", encoding="utf-8")

    with pytest.raises(UsageError) as caught:
        convert([tmp_path / "no-such.md", tmp_path / name], is_quiet=True)

    assert str(caught.value) == (
        f"{tmp_path / name}: PDF and DOCX files need more libraries; install them with `uv sync --extra documents`"
    )
    assert ["Text needs no library."] == [each.text for each in convert([tmp_path / "b.md"], is_quiet=True).values()]
