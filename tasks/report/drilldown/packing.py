"""How data stands in a report: as scripts, since a page that was opened from disk may not read files otherwise.

The content is JSON, compressed and written in base64, which the pages take apart with `DecompressionStream`: a quarter
of plain JSON, and nothing in it that could end a string or begin an element.
"""

import base64
import json
import zlib
from collections.abc import Sequence
from typing import Any

from isal import isal_zlib

_OPEN, _CLOSE = "prbench.give(", ");\n"
_BETWEEN, _AFTER = b",\n", b"\n});\n"
"""What stands between sections, and after the last one."""
_TIGHT = (",", ":")
_GZIP = 31
"""The gzip format; without a time stamp, so that the same content gives the same bytes."""
_LEVEL = 1
"""Of 0 to 3. Five times as fast as the fastest level of zlib, for a sixth fewer bytes."""


def as_bytes(value: Any) -> bytes:
    """A value as JSON, the same for the same value."""
    return json.dumps(value, ensure_ascii=False, separators=_TIGHT).encode("utf-8", "surrogatepass")


def packed(content: bytes) -> str:
    """Content as it stands in a script."""
    return base64.b64encode(isal_zlib.compress(content, _LEVEL, _GZIP)).decode("ascii")


def unpacked(text: str) -> bytes:
    """The content of a packed text."""
    return zlib.decompress(base64.b64decode(text, validate=True), _GZIP)


def script(name: str, content: str) -> str:
    """The script that hands over packed content."""
    return f"{_OPEN}{json.dumps(name)},{json.dumps(content)}{_CLOSE}"


def script_of(name: str, lines: Sequence[bytes]) -> bytes:
    """The script that hands over sections, each of which is a `line`."""
    return _before(name) + _BETWEEN.join(lines) + _AFTER


def line(section: str, *values: bytes) -> bytes:
    """A section as it stands in a script; neither its name nor its values hold anything that JSON would escape."""
    return b'"%s":["%s"]' % (section.encode("ascii"), b'","'.join(values))


def sections_of(name: str, content: bytes) -> dict[str, list[bytes]]:
    """The values of each section of a script of this name, cut apart and not decoded; none if it is no such script."""
    before = _before(name)
    if not (content.startswith(before) and content.endswith(_AFTER)):
        return {}
    cut = [each.split(b'"') for each in content[len(before) : -len(_AFTER)].split(_BETWEEN)]
    found = {parts[1].decode("ascii", "replace"): parts[3::2] for parts in cut if parts[::2] == _around(len(parts))}
    # Anything else in it, or a section twice, would keep the page from reading it.
    return found if len(found) == len(cut) else {}


def _before(name: str) -> bytes:
    return f"{_OPEN}{json.dumps(name)},{{\n".encode()


def _around(n_parts: int) -> list[bytes]:
    """What stands around the names and values of a section of so many parts."""
    return [b"", b":[", *[b","] * (n_parts // 2 - 2), b"]"]


def handed_over(text: str) -> tuple[str, Any]:
    """What a script hands over: its name and its content, still packed.

    Raises:
        ValueError: it is no such script.
    """
    if not (text.startswith(_OPEN) and text.endswith(_CLOSE)):
        raise ValueError("this is no script of a report's data")
    name, content = json.loads(f"[{text[len(_OPEN) : -len(_CLOSE)]}]")
    return name, content
