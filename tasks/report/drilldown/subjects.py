"""The subjects of the drill-down: entries and judge configurations, with the names that queries and pages use."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

from tasks.figures.queries import JUDGE_CONFIG, SAMPLING, Rows
from tasks.figures.scope import Scope, entry_key, judge_config_key
from tasks.rules.verdict import TERNARY, TERNARY_AS_BINARY

Row = Mapping[str, Any]
STATUSES = {
    "met": "m", "partial": "p", "unmet": "u", "parse_error": "e", "refused": "r", "truncated": "t",
    "context_length": "c", "timeout": "o", "provider_error": "v", "redirected": "d", "too_large": "l",
    "no_response": "n", "not_judged": "-",
}  # fmt: skip
"""Every status of a verdict, and its letter in the list of all verdicts."""
UNKNOWN = "?"
"""The letter of an unknown status."""


class Block(NamedTuple):
    """The responses of an entry to a block of tasks: the number of the block, and the name of their data file."""

    entry: str
    number: int
    n_responses: int
    name: str


@dataclass(frozen=True)
class Subjects:
    """The entries and judge configurations of a scope, and earlier vintages of its models, each named by `key`."""

    scope: Scope
    entries: tuple[Row, ...]
    judge_configs: tuple[Row, ...]
    blocks: tuple[Block, ...] = ()

    @cached_property
    def given(self) -> dict[str, Any]:
        """The additional parameters of the queries, which name entries and judge configurations by their keys."""
        return {
            "entries": Rows.of(self.entries, (*SAMPLING, "key")),
            "shown_judge_configs": Rows.of(self.judge_configs, (*JUDGE_CONFIG, "key")),
            "wanted": Rows(tuple((block.entry, block.number) for block in self.blocks), 2),
            "marks": Rows(tuple(STATUSES.items()), 2),
            "lost": STATUSES["no_response"],
            "unknown": UNKNOWN,
        }

    def of(self, blocks: Sequence[Block]) -> "Subjects":
        """Return the subjects narrowed to some blocks."""
        keys = {block.entry for block in blocks}
        entries = tuple(entry for entry in self.entries if entry["key"] in keys)
        return replace(self, entries=entries, blocks=tuple(blocks))

    def rows(self, name: str, **given: Any) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return self.scope.reader.table(self.scope.filled(name, {**self.given, **given}))[1]


def subjects_of(scope: Scope, also: Sequence[Row] = ()) -> Subjects:
    """Return the subjects of a scope; `also` are earlier vintages, only for comparison."""
    entries = {entry_key(entry): {**entry, "is_also": False} for entry in scope.entries}
    for entry in also:
        entries.setdefault(entry_key(entry), {**entry, "is_also": True})
    labels = Counter(entry["entry"] for entry in entries.values())
    for key, entry in entries.items():
        # The label of an earlier vintage includes the vintage if several entries have the same label.
        has_vintage = entry["is_also"] and labels[entry["entry"]] > 1
        entry |= {"key": key, "entry": f"{entry['entry']} {entry['vintage']}" if has_vintage else entry["entry"]}
    # `scale` is the number of values of a decision; `reads` is the key of the ternary judge that is read as binary.
    judge_configs = tuple(
        {**each, "key": judge_config_key(each), "scale": 3 if each["grading"] == TERNARY else 2,
         "reads": judge_config_key({**each, "grading": TERNARY}) if each["grading"] == TERNARY_AS_BINARY else None}
        for each in scope.judge_configs
    )  # fmt: skip
    return Subjects(scope, tuple(entries.values()), judge_configs)
