"""The process that converts a file, within limits: `python -m tasks.imports.documents KIND < FILE` prints JSON."""

import json
import resource
import sys
from pathlib import Path
from typing import Any

from tasks.dataset import TooLarge
from tasks.imports.documents.converting import DocumentRefused

_MOST_MEMORY_BYTES = 2 * 2**30
"""A few kilobytes can unpack to gigabytes; a report of hundreds of pages takes a tenth of this."""


def outcome(file: Path, kind: str) -> dict[str, Any]:
    """What came of a file of a kind, `.pdf` or `.docx`: the parts of a `Converted`, or why it was `refused`."""
    try:
        if kind == ".pdf":
            from tasks.imports.documents.pdf import pdf_to_markdown as to_markdown
        else:
            from tasks.imports.documents.docx import docx_to_markdown as to_markdown
        return to_markdown(file)._asdict()
    except (DocumentRefused, TooLarge) as error:
        return {"refused": str(error)}
    except MemoryError:
        return {"refused": f"takes more than {_MOST_MEMORY_BYTES // 2**30} GB of memory; give its text as Markdown"}
    except Exception as error:  # noqa: BLE001 - the libraries raise all kinds of errors, and each is reported
        return {"refused": f"not a {kind[1:].upper()}, or damaged ({type(error).__name__}); save it again"}


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY_BYTES, _MOST_MEMORY_BYTES))
    print(json.dumps(outcome(Path("/dev/stdin"), sys.argv[1])))
