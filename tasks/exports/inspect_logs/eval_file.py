"""The file of an Inspect log: a zip of JSON documents, written sample by sample, the same bytes for the same content.

Its layout is that of Inspect's own writer (`inspect_ai/log/_recorders/eval.py`, version 2 of the format): how the
evaluation started, a document for each sample, a list of summaries, and the header, which is written last.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

Document = dict[str, Any]
VERSION = 2
SUFFIX = ".eval"
_EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The time of every member, since a zip cannot do without one."""


class EvalFile:
    """A log that is being written; it has its name once it is complete.

    A float that is no number is written as `NaN`, which is how Inspect marks a sample without a score.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._temporary = path.with_name(f".{uuid4().hex}.tmp")
        self._zip = ZipFile(self._temporary, "w", ZIP_DEFLATED)
        self._summaries: list[Document] = []

    def start(self, spec: Mapping[str, Any], plan: Mapping[str, Any]) -> None:
        """Write what is known before the first sample."""
        self._put("_journal/start.json", {"version": VERSION, "eval": spec, "plan": plan})

    def add(self, sample: Document, summary: Document) -> None:
        """Write one sample."""
        self._put(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", sample)
        self._summaries.append(summary)

    def finish(self, header: Mapping[str, Any]) -> None:
        """Write the header, and give the file its name."""
        self._put("summaries.json", self._summaries)
        self._put("header.json", {"version": VERSION, **header})
        self._zip.close()
        self._temporary.replace(self._path)

    def discard(self) -> None:
        """Remove what was written, if the file is not complete."""
        self._zip.close()
        self._temporary.unlink(missing_ok=True)

    def _put(self, name: str, document: Mapping[str, Any] | Iterable[Any]) -> None:
        member = ZipInfo(name, _EARLIEST)
        member.compress_type = ZIP_DEFLATED
        self._zip.writestr(member, json.dumps(document, ensure_ascii=False))
