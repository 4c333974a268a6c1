"""The known formats of logs, and how a file's format is recognised."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from tasks.imports.results.evalscope import is_evalscope, read_evalscope
from tasks.imports.results.inspect_log import is_inspect, read_inspect
from tasks.imports.results.published import is_published, read_published
from tasks.imports.results.records import Log, LogSource
from tasks.imports.results.simple_evals import is_m42, is_simple, read_m42, read_simple
from tasks.rules.errors import UsageError

AUTO = "auto"


class Format(NamedTuple):
    """A format of logs: its title, and the functions that recognise and read its files."""

    title: str
    recognises: Callable[[LogSource], bool]
    read: Callable[[LogSource], Log]


FORMATS: Mapping[str, Format] = {
    "prbench": Format("a result of the published PRBench harness", is_published, read_published),
    "inspect": Format("a log of Inspect AI", is_inspect, read_inspect),
    "evalscope": Format("an output folder of EvalScope", is_evalscope, read_evalscope),
    "simple-evals": Format("a result of simple-evals", is_simple, read_simple),
    "m42": Format("a result file of m42's code", is_m42, read_m42),
}
"""Name -> format; the first format that recognises a file is used."""


def format_of(source: LogSource, name: str) -> Format:
    """Return the first format that recognises a source; only the named one is tried if not `auto`.

    Raises:
        UsageError: no format that was tried recognises the source.
    """
    formats = list(FORMATS.values()) if name == AUTO else [FORMATS[name]]
    for log_format in formats:
        if log_format.recognises(source):
            return log_format
    titles = ", ".join(log_format.title for log_format in formats)
    if len(formats) > 1:
        titles = f"one of: {titles}"
    raise UsageError(
        f"{source.path}: is not {titles}; `prbench import responses` and `import verdicts` read"
        " tables"
    )
