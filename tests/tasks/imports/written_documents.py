"""Make documents like those of people: PDF by ReportLab, DOCX by python-docx."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from docx import Document
from docx.opc.constants import RELATIONSHIP_TYPE
from docx.oxml import parse_xml
from reportlab import platypus, rl_config
from reportlab.lib import colors
from reportlab.lib.pagesizes import A4
from reportlab.lib.pdfencrypt import StandardEncryption
from reportlab.lib.styles import ParagraphStyle, getSampleStyleSheet
from reportlab.pdfbase import pdfmetrics
from reportlab.pdfbase.cidfonts import UnicodeCIDFont
from reportlab.pdfbase.ttfonts import TTFont
from reportlab.pdfgen.canvas import Canvas

_STYLES = getSampleStyleSheet()
_GRID = [("GRID", (0, 0), (-1, -1), 0.5, colors.black)]
_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_MATH = "http://schemas.openxmlformats.org/officeDocument/2006/math"
_LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"

rl_config.invariant = 1
rl_config.useA85 = 0
pdfmetrics.registerFont(TTFont("Vera", "Vera.ttf"))
pdfmetrics.registerFont(UnicodeCIDFont("HeiseiMin-W3"))


def heading(text: str, level: int = 2) -> platypus.Flowable:
    """A heading; level 1 is the title."""
    style = "Title" if level == 1 else f"Heading{level}"
    return platypus.Paragraph(text, _STYLES[style])


def body(text: str, font: str = "Helvetica") -> platypus.Flowable:
    """A paragraph; its text is ReportLab's XML."""
    style = ParagraphStyle(
        "a",
        parent=_STYLES["BodyText"],
        fontName=font,
    )
    return platypus.Paragraph(text, style)


def points(*texts: str) -> platypus.Flowable:
    """A list with bullets."""
    return platypus.ListFlowable(
        [body(text) for text in texts],
        bulletType="bullet",
        start="•",
    )


def table(
    rows: Sequence[Sequence[str]], *, is_ruled: bool = True
) -> platypus.Flowable:
    """A table with lines around its cells, or without any."""
    return platypus.Table(
        rows,
        colWidths=[150] * len(rows[0]),
        style=_GRID if is_ruled else [],
    )


def write_pdf(file: Path, *parts: platypus.Flowable) -> Path:
    """A PDF with as many pages as the parts need."""
    file.parent.mkdir(parents=True, exist_ok=True)
    platypus.SimpleDocTemplate(str(file)).build(list(parts))
    return file


def canvas(file: Path, **options: Any) -> Canvas:
    """An empty A4 page to draw on; `save` writes it."""
    file.parent.mkdir(parents=True, exist_ok=True)
    return Canvas(str(file), pagesize=A4, **options)


def write_pages(
    file: Path,
    *texts: str,
    **options: Any,
) -> Path:
    """A PDF with one line of text on each page; an empty text gives a page without letters."""
    page = canvas(file, **options)
    for text in texts:
        page.drawString(72, 700, text)
        page.rect(100, 100, 200, 200)
        page.showPage()
    page.save()
    return file


def write_locked_pdf(file: Path, *, password: str) -> Path:
    """A PDF that its owner protected; with an empty password everyone can read it."""
    return write_pages(
        file,
        "Behind a lock.",
        encrypt=StandardEncryption(password, ownerPassword="owner"),
    )


def write_scan(file: Path) -> Path:
    """A PDF of one page without letters."""
    return write_pages(file, "")


def write_docx(file: Path, *paragraphs: str) -> Path:
    """A DOCX of paragraphs."""
    document = Document()
    for text in paragraphs:
        document.add_paragraph(text)
    file.parent.mkdir(parents=True, exist_ok=True)
    document.save(str(file))
    return file


def add_formula(paragraph: Any, text: str):
    """Append a formula to a paragraph of a DOCX."""
    paragraph._p.append(
        parse_xml(
            f'<m:oMath xmlns:m="{_MATH}"><m:r><m:t>{text}</m:t></m:r></m:oMath>'
        )
    )


def add_link(paragraph: Any, text: str, address: str):
    """Append a link to a paragraph of a DOCX."""
    number = paragraph.part.relate_to(
        address,
        RELATIONSHIP_TYPE.HYPERLINK,
        is_external=True,
    )
    spaces = f'xmlns:w="{_WORD}" xmlns:r="{_LINKS}"'
    paragraph._p.append(
        parse_xml(
            f'<w:hyperlink {spaces} r:id="{number}"><w:r><w:t>{text}</w:t></w:r></w:hyperlink>'
        )
    )
