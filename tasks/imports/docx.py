"""DOCX to Markdown: Mammoth reads the document into HTML, markdownify writes it as Markdown."""

from pathlib import Path
from typing import Any
from zipfile import ZipFile

import mammoth
from markdownify import ATX, MarkdownConverter

from tasks.dataset.foreign_files import member_chunks, refuse_bomb
from tasks.imports.documents import Converted, DocumentRefused

_COMPOUND = bytes.fromhex("d0cf11e0a1b11ae1")
"""How files begin that hold an encrypted document, and those of Word before 2007."""
_FORMULA = "officeDocument/2006/math}oMath"
_STYLES = "p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => h2:fresh"


class _Converter(MarkdownConverter):
    """Writes of a picture what describes it, and bars within cells so that they end none."""

    def convert_img(self, el: Any, text: str, parent_tags: Any) -> str:
        description = " ".join((el.get("alt") or "").split())
        return f"![{description}]()" if description else ""

    def convert_td(self, el: Any, text: str, parent_tags: Any) -> str:
        return str(super().convert_td(el, text.replace("|", "\\|"), parent_tags))  # type: ignore[misc]

    convert_th = convert_td


def to_markdown(file: Path) -> Converted:
    """The document's text with headings, lists, tables, links and notes; of a picture what describes it.

    Raises:
        DocumentRefused: the file is protected by a password, or of old Word.
        TooLarge: it would unpack to far more than a report.
    """
    with file.open("rb") as document:
        if document.read(len(_COMPOUND)) == _COMPOUND:
            raise DocumentRefused("protected by a password, or not a DOCX; save it as DOCX without a password")
        with ZipFile(document) as archive:
            refuse_bomb("the document", file.stat().st_size, (member.file_size for member in archive.infolist()))
            for member in archive.infolist():
                for _ in member_chunks(archive, member):
                    pass  # Mammoth unpacks each member at once, so that it is what it says must be known before
        pictures = mammoth.images.img_element(lambda _: {"src": ""})
        result = mammoth.convert_to_html(document, style_map=_STYLES, convert_image=pictures)
    # A judge reads the text as it is: without marks against being taken for Markdown, as the text of a PDF is.
    converter = _Converter(
        heading_style=ATX, bullets="-", table_infer_header=True, escape_asterisks=False, escape_underscores=False,
        escape_misc=False,
    )  # fmt: skip
    text = converter.convert(result.value).strip()
    lacks_formulas = any(_FORMULA in message.message for message in result.messages)
    return Converted(f"{text}\n" if text else "", lacks_formulas=lacks_formulas)
