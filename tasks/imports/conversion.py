"""The process that converts one document: `python -m tasks.imports.conversion KIND < FILE`.

It has limits of memory and time, and prints JSON.
"""

import json
import resource
import sys
from pathlib import Path
from typing import Any

from tasks.rules.errors import PipelineError

_MOST_MEMORY_BYTES = 2 * 2**30
"""Memory limit of a conversion: a few kilobytes can unpack to gigabytes.

A report of hundreds of pages needs a tenth of this.
"""


def outcome(file: Path, kind: str) -> dict[str, Any]:
    """Return the fields of a `.pdf` or `.docx` file as `Converted`, or the reason as `refused`."""
    try:
        if kind == ".docx":
            from tasks.imports.docx import to_markdown
        else:
            from tasks.imports.pdf import to_markdown
        return to_markdown(file)._asdict()
    except PipelineError as error:
        return {"refused": str(error)}
    except MemoryError:
        raise  # the process ends, which is reported as too much memory
    except Exception as error:  # noqa: BLE001 - the libraries raise any kind, each is reported
        cause = f"cannot be read as {kind[1:].upper()} ({type(error).__name__})"
        return {"refused": f"{cause}; save it again, without a password"}


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_AS, (_MOST_MEMORY_BYTES, _MOST_MEMORY_BYTES))
    print(json.dumps(outcome(Path("/dev/stdin"), sys.argv[1])))
