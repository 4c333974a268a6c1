"""What the Tab key offers in the SQL prompt: keywords, tables, columns, each with what it means."""

import re
from collections.abc import Callable, Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from flows.cli.look.sql_describe import Catalogue

KEYWORDS = re.findall(
    r"\w+",
    """
    select from where group by all order having limit offset distinct as on using with and or not in is null like ilike
    between exists case when then else end inner left right full outer cross join asof union intersect except exclude
    qualify over partition filter asc desc nulls first last describe summarize values lateral unnest pivot unpivot
    true false cast try_cast interval date timestamp count sum avg min max median quantile_cont stddev corr coalesce
    round any_value arg_max arg_min string_agg list row_number rank lag lead date_trunc date_diff strftime
    regexp_matches regexp_extract lower upper length substr trim split_part greatest least sample
    """,
)
_WORD = re.compile(r"(?:(\w+)\.)?(\w*)$")
_ALIAS = rf"(?:\s+(?:as\s+)?(?!(?:{'|'.join(KEYWORDS)})\b)(\w+))?"
_SOURCE = re.compile(rf"(?:\b(?:from|join)\b|,)\s*(\w+){_ALIAS}", re.IGNORECASE)
_BEGINS = re.compile(r"(?:^|;)\s*\w*$")
_NAMES_SOMETHING_NEW = re.compile(r"\bas\s+\w*$", re.IGNORECASE)
_WANTS_TABLE = re.compile(r"\b(?:from|join|describe|summarize)\s+\w*$", re.IGNORECASE)

Words = Iterable[tuple[str, str]]


class SqlCompleter(Completer):
    """Completes SQL by the tables that are published, and the prompt's own commands."""

    def __init__(
        self, catalogue: Callable[[], Catalogue], commands: dict[str, str], formats: Iterable[str],
        recipes: Iterable[str] = (),
    ) -> None:  # fmt: skip
        self._catalogue = catalogue
        self._commands = commands
        self._arguments = {".format": tuple(formats), ".cookbook": tuple(recipes)}

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """Completions at the cursor; none inside quotes or for a new name."""
        before = document.text_before_cursor
        if before.startswith("."):
            yield from self._of_command(before)
            return
        match = _WORD.search(before)
        if match is None or before.count("'") % 2 or _NAMES_SOMETHING_NEW.search(before):
            return
        qualifier, word = match.groups()
        if qualifier is not None:
            yield from _completions(word, self._columns_of(qualifier, document.text))
        elif _WANTS_TABLE.search(before):
            yield from _completions(word, self._tables())
        elif _BEGINS.search(before):
            yield from _completions(word, _keywords(word) if word else ())
        elif word or complete_event.completion_requested:
            yield from _completions(word, self._anything(document.text, word))

    def _of_command(self, before: str) -> Iterator[Completion]:
        command, blank, word = before.partition(" ")
        if not blank:
            yield from _completions(before, self._commands.items())
        elif command == ".describe":
            yield from _completions(word, self._tables())
        else:
            yield from _completions(word, ((name, "") for name in self._arguments.get(command, ())))

    def _tables(self) -> Words:
        # The publisher's own tables say nothing about themselves.
        return [(table.name, table.meaning) for table in self._catalogue().values() if table.meaning]

    def _columns_of(self, qualifier: str, text: str) -> Words:
        catalogue = self._catalogue()
        name = self._aliases(text).get(qualifier.lower(), qualifier.lower())
        return catalogue[name].columns.items() if name in catalogue else ()

    def _aliases(self, text: str) -> dict[str, str]:
        """What the query calls its tables, and the tables that are meant."""
        sources = [(name.lower(), alias.lower()) for name, alias in _SOURCE.findall(text)]
        return {
            called: name for name, alias in sources if name in self._catalogue() for called in (name, alias) if called
        }

    def _anything(self, text: str, word: str) -> Words:
        """The columns of the query's tables, or of all where it names none; then tables and keywords."""
        catalogue = self._catalogue()
        used = dict.fromkeys(self._aliases(text).values()) or [name for name in catalogue if catalogue[name].meaning]
        for name in used:
            yield from catalogue[name].columns.items()
        yield from self._tables()
        yield from _keywords(word)


def _keywords(word: str) -> Words:
    """In capitals if the word is typed in capitals."""
    return ((keyword.upper() if word.isupper() else keyword, "") for keyword in KEYWORDS)


def _completions(word: str, words: Words) -> Iterator[Completion]:
    seen = set()
    for found, meaning in words:
        if found.lower().startswith(word.lower()) and found not in seen:
            seen.add(found)
            yield Completion(found, start_position=-len(word), display_meta=meaning)
