"""How data stands in a report: as scripts, since a page that was opened from disk may not read files otherwise.

The content is JSON, compressed and written in base64, which the pages take apart with `DecompressionStream`: a quarter
of plain JSON, and nothing in it that could end a string or begin an element.
"""

import base64
import json
import zlib
from typing import Any

from isal import isal_zlib

from tasks.report.rendering.site import Site

_OPEN, _CLOSE = "prbench.give(", ");\n"
_GZIP = 31
"""The gzip format; without a time stamp, so that the same content gives the same bytes."""
_LEVEL = 1
"""Of 0 to 3. Five times as fast as the fastest level of zlib, for a sixth fewer bytes."""


def packed(content: bytes) -> str:
    """Content as it stands in a script."""
    return base64.b64encode(isal_zlib.compress(content, _LEVEL, _GZIP)).decode("ascii")


def unpacked(text: str) -> bytes:
    """The content of a packed text."""
    return zlib.decompress(base64.b64decode(text, validate=True), _GZIP)


def script(name: str, content: str) -> str:
    """The script that hands over content, which is JSON."""
    return f"{_OPEN}{json.dumps(name)},{content}{_CLOSE}"


def write_data(site: Site, name: str, value: Any) -> None:
    """Write a file that hands over a value; the same value gives the same bytes."""
    content = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    site.write(f"data/{name}.js", script(name, f'"{packed(content)}"'))


def handed_over(text: str) -> tuple[str, Any]:
    """What a script hands over: its name and its content, packed texts as they are.

    Raises:
        ValueError: it is no such script.
    """
    if not (text.startswith(_OPEN) and text.endswith(_CLOSE)):
        raise ValueError("this is no script of a report's data")
    name, content = json.loads(f"[{text[len(_OPEN) : -len(_CLOSE)]}]")
    return name, content
