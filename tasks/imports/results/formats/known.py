"""The formats that are known, and which of them a file is in."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tasks.imports.results.formats import evalscope, inspect_log, m42, published, simple_evals
from tasks.imports.results.records import Log
from tasks.imports.results.sources import Source
from tasks.rules.errors import UsageError

AUTO = "auto"


@dataclass(frozen=True)
class Format:
    """How a format is recognised by its content, and read."""

    title: str
    is_of: Callable[[Source], bool]
    read: Callable[[Source], Log]


FORMATS: Mapping[str, Format] = {
    "prbench": Format("a result of the published PRBench harness", published.is_of, published.read),
    "inspect": Format("a log of Inspect AI", inspect_log.is_of, inspect_log.read),
    "evalscope": Format("an output folder of EvalScope", evalscope.is_of, evalscope.read),
    "simple-evals": Format("a result of simple-evals", simple_evals.is_of, simple_evals.read),
    "m42": Format("a result file of m42's code", m42.is_of, m42.read),
}
"""The name of a format -> how it is read; the first that recognises a file is its own."""


def format_of(source: Source, name: str = AUTO) -> Format:
    """The format of a source, or the one that is named.

    Raises:
        UsageError: no format recognises it, or the named one does not, or it is damaged.
    """
    tried = FORMATS if name == AUTO else {name: FORMATS[name]}
    found = next((each for each in tried.values() if each.is_of(source)), None)
    if found is None and source.damage is not None:
        raise UsageError(f"{source.path}: is damaged or cut off ({source.damage}); copy it again")
    if found is None:
        known = ", ".join(each.title for each in tried.values())
        advice = "tables are read by `prbench import responses` and `import verdicts`"
        raise UsageError(f"{source.path}: is not {known if len(tried) == 1 else f'one of: {known}'}; {advice}")
    return found
