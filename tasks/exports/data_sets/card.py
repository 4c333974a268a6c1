"""The card of an exported data set: a README that the hub and `datasets` read, and people too."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tasks.exports.data_sets.licence import Licence
from tasks.exports.file_list import Exported
from tasks.exports.meanings import meaning_of_column, meaning_of_table

SPLIT = "test"
"""The split that every table is: results are for evaluation, and not for training."""
NAME = "README.md"
_NOTICE = """\
**Do not train on this data.** It holds the tasks of a benchmark with answers and verdicts; a model that has seen them
can no longer be evaluated with them. The data set marks its rows with canaries, so that they can be kept out of
training data. Canaries are left out here, since they belong to the data set itself and are never put beside other
texts. Whoever passes this on should keep this notice, and put the files where crawlers do not reach them."""


@dataclass(frozen=True)
class Card:
    """What the card says beside the tables: what was evaluated, at which revision, by which version."""

    title: str
    benchmark: str
    revision: str
    splits: Sequence[str]
    version: str
    licence: Licence

    def text(self, tables: Sequence[Exported], arrow_bytes: dict[str, int]) -> str:
        """The card, with its header for machines."""
        import yaml

        header = {
            "license": self.licence.name,
            "pretty_name": f"Results on {self.title}",
            "tags": ["evaluation", "do-not-train", self.benchmark],
            "configs": [
                {
                    "config_name": table.name, **({"default": True} if place == 0 else {}),
                    "data_files": [{"split": SPLIT, "path": f"{table.name}/*.parquet"}],
                }
                for place, table in enumerate(tables)
            ],
        }  # fmt: skip
        lines = [
            *self._about(tables),
            *_sizes(tables, arrow_bytes),
            *(line for table in tables for line in _columns(table)),
        ]
        return f"---\n{yaml.safe_dump(header, sort_keys=False)}---\n\n" + "\n".join(lines) + "\n"

    def _about(self, tables: Sequence[Exported]) -> Iterator[str]:
        shown = next((table.name for table in tables if table.name == "verdicts"), tables[0].name)
        yield from (f"# Results on {self.title}", "", _NOTICE, "", self.licence.said, "")
        yield from (
            "| what | version |", "| --- | --- |",
            f"| benchmark | `{self.benchmark}` |",
            f"| revision of its data set | `{self.revision}` |",
            f"| splits | {', '.join(self.splits)} |",
            f"| written by | prbench-pipeline {self.version} |", "",
        )  # fmt: skip
        yield from (
            "```python", "from datasets import load_dataset, load_from_disk", "",
            f'load_dataset("FOLDER", "{shown}", split="{SPLIT}")   # the Parquet files',
            f'load_from_disk("FOLDER/{shown}")   # the Arrow files, which are mapped into memory',
            'load_from_disk("FOLDER")   # all tables', "```", "",
            'The Arrow files are a copy of the Parquet files; `--exclude "*.arrow"` leaves them out of an upload.', "",
        )  # fmt: skip


def _sizes(tables: Sequence[Exported], arrow_bytes: dict[str, int]) -> Iterator[str]:
    yield from (
        "## Tables",
        "",
        "| table | one row is | rows | Parquet | Arrow |",
        "| --- | --- | ---: | ---: | ---: |",
    )
    for table in tables:
        parquet = sum(file.n_bytes for file in table.files)
        cells = (f"`{table.name}`", _cell(meaning_of_table(table.name)), f"{table.n_rows:,}",
                 _megabytes(parquet), _megabytes(arrow_bytes[table.name]))  # fmt: skip
        yield f"| {' | '.join(cells)} |"
    yield ""


def _columns(table: Exported) -> Iterator[str]:
    yield from (f"## {table.name}", "", "| column | type | meaning |", "| --- | --- | --- |")
    for column, kind in table.columns.items():
        yield f"| `{column}` | {kind.lower()} | {_cell(meaning_of_column(column, [table.name]) or '')} |"
    yield ""


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.2f} MB"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
