"""How data stands in a report: as scripts, since a page that was opened from disk may not read files otherwise.

The content is JSON, compressed and written in base64, which the pages take apart with `DecompressionStream`: a quarter
of plain JSON, and nothing in it that could end a string or begin an element. A file is named by a hash of what it holds
or is made of, so one that exists is as it should be. Only the index has a name of its own: by it pages find the others.
"""

import base64
import hashlib
import json
from typing import Any

from isal import isal_zlib

from tasks.report.rendering.site import Site

INDEX = "index"
_GZIP = 31
"""The gzip format; without a time stamp, so that the same content gives the same bytes."""
_LEVEL = 1
"""Of 0 to 3. Five times as fast as the fastest level of zlib, for a sixth fewer bytes."""
_HEX = 16


def data_file(name: str) -> str:
    """Return the path of a data file in a report."""
    return f"data/{name}.js"


def write_packed(site: Site, name: str, content: bytes) -> None:
    """Write JSON as a script that hands it over under its name."""
    packed = base64.b64encode(isal_zlib.compress(content, _LEVEL, _GZIP)).decode("ascii")
    site.write(data_file(name), f'prbench.give("{name}","{packed}");\n')


def write_data(site: Site, value: Any, name: str | None = None) -> str:
    """Write a value into a data file, unless it exists, and return its name, by default a hash of the content."""
    content = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")
    hashed = hashlib.blake2b(content, digest_size=_HEX // 2).hexdigest()
    if name or not site.keep(data_file(hashed)):
        write_packed(site, name or hashed, content)
    return name or hashed
