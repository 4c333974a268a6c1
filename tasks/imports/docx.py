"""DOCX to Markdown: Mammoth converts it to HTML, and markdownify converts that to Markdown."""

import os
from pathlib import Path
from typing import Any, BinaryIO
from zipfile import ZipFile

import mammoth
from markdownify import ATX, MarkdownConverter

from tasks.dataset.foreign_files import member_chunks, refuse_bomb
from tasks.imports.documents import Converted


class _Converter(MarkdownConverter):
    """Writes the description of a picture, and escapes bars within cells."""

    def convert_img(self, el: Any, text: str, parent_tags: Any) -> str:
        description = " ".join((el.get("alt") or "").split())
        return f"![{description}]()" if description else ""

    def convert_td(self, el: Any, text: str, parent_tags: Any) -> str:
        escaped = text.replace("|", "\\|")
        return str(super().convert_td(el, escaped, parent_tags))  # type: ignore[misc]

    convert_th = convert_td


def _refuse_too_large(document: BinaryIO) -> None:
    with ZipFile(document) as archive:
        members = archive.infolist()
        n_bytes = os.fstat(document.fileno()).st_size
        refuse_bomb("the document", n_bytes, [member.file_size for member in members])
        for member in members:
            # Mammoth unpacks a whole member at once, so its true size is checked first.
            for _ in member_chunks(archive, member):
                continue


def to_markdown(file: Path) -> Converted:
    """Return a document as Markdown; of pictures, only the descriptions.

    Headings, lists, tables, links and notes are kept.

    Raises:
        BadZipFile: the file is protected by a password, or in the format of Word before 2007.
        FileTooLarge: it would unpack to far more than a report has.
    """
    with file.open("rb") as document:
        _refuse_too_large(document)
        styles = "p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => h2:fresh"
        pictures = mammoth.images.img_element(lambda _: {"src": ""})
        result = mammoth.convert_to_html(document, style_map=styles, convert_image=pictures)
    # Judges read plain text, so characters that Markdown uses are not escaped (as for a PDF).
    converter = _Converter(
        heading_style=ATX,
        bullets="-",
        table_infer_header=True,
        escape_asterisks=False,
        escape_underscores=False,
        escape_misc=False,
    )
    text = converter.convert(result.value).strip()
    lacks_formulas = any(
        "officeDocument/2006/math}oMath" in message.message for message in result.messages
    )
    return Converted(f"{text}\n" if text else "", lacks_formulas=lacks_formulas)
