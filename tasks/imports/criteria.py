"""The criteria and the stored answers that imported verdicts are about."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import sql
from tasks.benchmarks.rows import as_text
from tasks.config.job import Job
from tasks.config.models import ORIGINAL
from tasks.imports import files
from tasks.imports.files import Given, ImportRefused, NotHere
from tasks.llm.replies import OK
from tasks.rules.text.cells import readings, shows
from tasks.rules.text.characters import is_blank
from tasks.rules.text.numbers import some
from warehouse import Reader, Warehouse


@dataclass(frozen=True)
class Wording:
    """A criterion in one of its wordings."""

    task_id: str
    criterion_id: str
    title: str
    content_hash: str
    category: str | None
    weight: float | None
    rubric: str


class Criteria:
    """The criteria of a data set, in every wording."""

    def __init__(self, job: Job, reader: Reader) -> None:
        """Read those of the job's data set.

        Raises:
            ImportRefused: it has none.
        """
        self._revision = job.data.revision
        self._by_id: dict[tuple[str, str], Wording] = {}
        self._by_title: dict[tuple[str, str], list[Wording]] = defaultdict(list)
        self._in_order: dict[str, list[Wording]] = defaultdict(list)
        for row in reader.rows(sql.read("queries/imports/criteria_to_judge"), files.key_of(job)):
            wording = Wording(**row)
            self._by_id[wording.task_id, wording.criterion_id] = wording
            if wording.rubric == ORIGINAL:
                self._by_title[wording.task_id, wording.title.strip()].append(wording)
                self._in_order[wording.task_id].append(wording)
        self._tasks = {task_id for task_id, _ in self._by_id}
        files.refuse_not_ingested(job, self._tasks)

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
        tasks = list(readings(files.required_text(where, given, "task", "--task ID")))
        task_id = next((task for task in tasks if task in self._tasks), None)
        if task_id is None:
            raise NotHere(f"{where}: task {tasks[0]!r} is not in revision {self._revision[:12]}")
        named = files.required_text(where, given, "criterion")
        for reading in readings(named):
            if (task_id, reading) in self._by_id:
                return self._by_id[task_id, reading]
        found = _meant(where, given, next(filter(None, (self.alike(task_id, r) for r in readings(named))), ()))
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
    occurrence = files.number_of(where, given, "occurrence")
    return alike[occurrence - 1 : occurrence]


class Answers:
    """The usable answers to a data set in the vintages that the rows of a file name and in those of the job."""

    def __init__(self, job: Job, reader: Reader, rows: Iterable[Given]) -> None:
        """Read them."""
        self._job = job
        named = {read for row in rows if (cell := files.vintage_in(row)) is not None for read in readings(cell)}
        place: dict[str, Any] = {**files.key_of(job), "vintage": sorted({*named, *job.vintages}), "status": OK}
        self._by_place: dict[tuple[str, str, int, str], list[dict[str, Any]]] = defaultdict(list)
        columns = "response_id, task_id, model, trial, vintage, text"
        for answer in reader.select("responses", columns, order="response_id", **place):
            self._by_place[answer["task_id"], answer["model"], answer["trial"], answer["vintage"]].append(answer)

    def of(self, where: str, given: Given, task_id: str) -> dict[str, Any]:
        """The answer to a task that a row is about: of the row's vintage, or of the job's where the row has none.

        Raises:
            ImportRefused: there is none, or several, or the row shows another text than the stored one.
        """
        model = files.required_text(where, given, "model", "--as LABEL")
        trial, cell = files.number_of(where, given, "trial"), files.vintage_in(given)
        found: list[dict[str, Any]] = []
        for label in readings(model):
            for vintage in (self._job.vintage_named(label),) if cell is None else readings(cell):
                found = found or self._by_place.get((task_id, label, trial, vintage), [])
        place = f"{model} to task {task_id}, trial {trial}, in vintage {cell or self._job.vintage_named(model)}"
        if not found:
            raise ImportRefused(f"{where}: no usable response of {place}; {self._advice(task_id, model, trial, cell)}")
        if len(found) > 1:
            raise ImportRefused(
                f"{where}: {len(found)} responses of {place}; import responses under a label of their own"
            )
        shown = as_text(given.get("response"))
        if shown is not None and not is_blank(shown) and not shows(shown, found[0]["text"]):
            raise ImportRefused(
                f"{where}: `response` is not the stored response of {place}, so the verdict is on another text; "
                "name the vintage that was graded (if only the program that saved the file changed the text, "
                "remove the column `response`)"
            )
        return found[0]

    def _advice(self, task_id: str, model: str, trial: int, cell: str | None) -> str:
        """What to do about an answer that is not there: name the vintages, the last ones, in which there is one."""
        place: dict[str, Any] = {**files.key_of(self._job), "task_id": task_id, "model": list(readings(model))}
        with Warehouse(self._job.warehouse).reader() as reader:
            rows = reader.select(
                "responses", "vintage", order="created_at desc, vintage desc", trial=trial, status=OK, **place
            )
        if not rows:
            return "import the response first (`prbench import responses`)"
        vintages = [row["vintage"] for row in rows]
        option = f"`--vintage {vintages[0]}` or a column `vintage`" if cell is None else "the column `vintage`"
        return f"there is one in {some(vintages)}: name it with {option}"
