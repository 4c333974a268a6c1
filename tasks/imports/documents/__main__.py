"""The process that converts a file, within limits: `python -m tasks.imports.documents KIND < FILE` prints JSON."""

import json
import resource
import sys
from pathlib import Path
from typing import Any

from tasks.imports.documents.converted import PDF, DocumentRefused

_MOST_MEMORY_BYTES = 2 * 2**30
"""A few kilobytes can unpack to gigabytes; a report of hundreds of pages takes a tenth of this."""


def outcome(file: Path, ending: str | None = None) -> dict[str, Any]:
    """What came of a file of that ending, or its own: the parts of a `Converted`, or why it was `refused`."""
    from tasks.imports.documents.docx import docx_to_markdown
    from tasks.imports.documents.pdf import pdf_to_markdown

    kind = "PDF" if (ending or file.suffix.lower()) == PDF else "DOCX"
    try:
        return (pdf_to_markdown if kind == "PDF" else docx_to_markdown)(file)._asdict()
    except DocumentRefused as error:
        return {"refused": str(error)}
    except MemoryError:
        return {"refused": f"takes more than {_MOST_MEMORY_BYTES // 2**30} GB of memory; give its text as Markdown"}
    except Exception as error:  # noqa: BLE001 - the libraries raise all kinds of errors, and each is reported
        return {"refused": f"not a {kind}, or damaged ({type(error).__name__}); save it again"}


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY_BYTES, _MOST_MEMORY_BYTES))
    print(json.dumps(outcome(Path("/dev/stdin"), sys.argv[1])))
