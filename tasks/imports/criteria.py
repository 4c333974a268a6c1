"""The criteria that imported verdicts are about: by their id, or by what they say."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import sql
from tasks.benchmarks.rows import as_text
from tasks.config.models import ORIGINAL
from tasks.imports.files import Given, ImportRefused, NotHere, number_of, required_text
from tasks.rules.text.cells import readings
from tasks.rules.text.characters import is_blank
from warehouse import Reader


@dataclass(frozen=True)
class Wording:
    """A criterion in one of its wordings."""

    task_id: str
    criterion_id: str
    content_hash: str
    category: str | None
    weight: float | None
    rubric: str


class Criteria:
    """The criteria of a data set, in every wording."""

    def __init__(self, reader: Reader, key: dict[str, str]) -> None:
        """Read them; `key` is the data set's."""
        self._revision = key["dataset_revision"]
        self._by_id: dict[tuple[str, str], Wording] = {}
        self._by_title: dict[tuple[str, str], list[Wording]] = defaultdict(list)
        self._in_order: dict[str, list[Wording]] = defaultdict(list)
        rows = reader.rows(sql.read("questions/imports/criteria_to_judge"), key)
        for row in rows:
            title = row.pop("title")
            wording = Wording(**row)
            self._by_id[wording.task_id, wording.criterion_id] = wording
            if wording.rubric == ORIGINAL:
                self._by_title[wording.task_id, title.strip()].append(wording)
                self._in_order[wording.task_id].append(wording)
        self._tasks = {task_id for task_id, _ in self._by_id}

    def __bool__(self) -> bool:
        """Whether there is any."""
        return bool(self._by_id)

    def in_order(self, task_id: str) -> Sequence[Wording]:
        """A task's rubric in its own words, in its order."""
        return self._in_order[task_id]

    def alike(self, task_id: str, text: str) -> Sequence[Wording]:
        """Those of a task's criteria that say exactly this, in their order."""
        return self._by_title.get((task_id, text.strip()), ())

    def of(self, where: str, given: Given) -> Wording:
        """The criterion that a row is about: its `criterion` is an id or, word for word, the text of one.

        Where a task says the same several times, `category` (or `axis`) says which is meant, or else `occurrence`: 1
        for the first of them in the rubric.

        Raises:
            NotHere: there is no such task, or it has no such criterion.
            ImportRefused: it has several.
        """
        tasks = list(readings(required_text(where, given, "task", "--task ID")))
        task_id = next((task for task in tasks if task in self._tasks), None)
        if task_id is None:
            raise NotHere(f"{where}: task {tasks[0]!r} is not in revision {self._revision[:12]}")
        named = required_text(where, given, "criterion")
        for reading in readings(named):
            if (task_id, reading) in self._by_id:
                return self._by_id[task_id, reading]
        alike: Sequence[Wording] = next(filter(None, (self._by_title[task_id, r.strip()] for r in readings(named))), ())
        found = _meant(where, given, alike)
        if not found:
            raise NotHere(f"{where}: task {task_id} has no criterion {named[:80]!r}")
        if len(found) > 1:
            raise ImportRefused(
                f"{where}: task {task_id} has the criterion {named[:80]!r} twice; give its id, "
                "its `category` or its `occurrence`"
            )
        return found[0]


def _meant(where: str, given: Given, alike: Sequence[Wording]) -> Sequence[Wording]:
    """Those of criteria with the same words that a row can mean."""
    category = next((text for name in ("category", "axis") if (text := as_text(given.get(name)))), None)
    if len(alike) < 2:
        return alike
    of_category = [wording for wording in alike if wording.category == category] if not is_blank(category) else []
    if len(of_category) == 1:
        return of_category
    if given.get("occurrence") in {None, ""}:
        return of_category or alike
    # It counts all with these words, and distinguishes them where a category is none of theirs.
    occurrence = number_of(where, given, "occurrence")
    return alike[occurrence - 1 : occurrence]
