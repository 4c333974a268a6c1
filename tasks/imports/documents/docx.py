"""DOCX to Markdown: Mammoth reads the document into HTML, markdownify writes it as Markdown."""

from pathlib import Path
from zipfile import ZipFile

from tasks.dataset import ZIP_ERRORS, TooLarge, refuse_bomb
from tasks.imports.documents.converted import Converted, DocumentRefused

_COMPOUND = bytes.fromhex("d0cf11e0a1b11ae1")
"""How files begin that hold an encrypted document, and those of Word before 2007."""
_FORMULA = "officeDocument/2006/math}oMath"
_STYLES = "p[style-name='Title'] => h1:fresh\np[style-name='Subtitle'] => h2:fresh"


def docx_to_markdown(file: Path) -> Converted:
    """The document's text with headings, lists, tables, links and notes; of a picture what describes it.

    Raises:
        DocumentRefused: the file is damaged, protected by a password, or no DOCX.
    """
    _refuse_unreadable(file)
    import mammoth

    with file.open("rb") as document:
        result = mammoth.convert_to_html(
            document, style_map=_STYLES, convert_image=mammoth.images.img_element(lambda _: {"src": ""})
        )
    lacks_formulas = any(_FORMULA in message.message for message in result.messages)
    return Converted(_markdown(result.value), lacks_formulas=lacks_formulas)


def _refuse_unreadable(file: Path) -> None:
    with file.open("rb") as document:
        if document.read(len(_COMPOUND)) == _COMPOUND:
            raise DocumentRefused("protected by a password, or not a DOCX; save it as DOCX without a password")
    try:
        with ZipFile(file) as archive:
            refuse_bomb("the document", file.stat().st_size, (member.file_size for member in archive.infolist()))
            broken = archive.testzip()
    except TooLarge as error:
        raise DocumentRefused(str(error)) from error
    except ZIP_ERRORS as error:
        raise DocumentRefused(f"not a DOCX, or damaged ({error}); save it again") from error
    if broken is not None:
        raise DocumentRefused(f"damaged ({broken} was changed); save it again")


def _markdown(html: str) -> str:
    from bs4 import BeautifulSoup
    from markdownify import ATX, MarkdownConverter

    page = BeautifulSoup(html, "html.parser")
    for picture in page.find_all("img"):
        description = " ".join(str(picture.get("alt") or "").split())
        picture.replace_with(f"![{description}]()" if description else "")
    for text in page.find_all(string=True):
        if text.find_parent(["td", "th"]):  # where a bar would end the cell
            text.replace_with(text.replace("|", "\\|"))
    # A judge reads the text as it is: without marks against being taken for Markdown, as the text of a PDF is.
    converter = MarkdownConverter(
        heading_style=ATX, bullets="-", table_infer_header=True, escape_asterisks=False, escape_underscores=False,
        escape_misc=False,
    )  # fmt: skip
    markdown = converter.convert_soup(page).strip()
    return f"{markdown}\n" if markdown else ""
