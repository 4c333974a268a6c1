"""Manifests made by hand."""

import hashlib
import json
from typing import Any


def sealed(document: dict[str, Any]) -> bytes:
    """A manifest whose last value is the hash of the others."""
    content = {name: value for name, value in document.items() if name != "sha256"}
    sha256 = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    return json.dumps({**content, "sha256": sha256}, ensure_ascii=False).encode()
