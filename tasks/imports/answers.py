"""The stored answers that imported verdicts are about."""

from collections.abc import Iterable
from typing import Any

import sql
from tasks.benchmarks.rows import as_text
from tasks.config.job import Job
from tasks.imports.files import Given, ImportRefused, number_of, required_text, vintage_in
from tasks.rules.text.cells import readings, shows
from tasks.rules.text.characters import is_blank
from warehouse import Reader, Warehouse

Answer = dict[str, Any]
_N_NAMED = 3
"""How many other vintages an error names."""


class Answers:
    """The usable answers to a data set in the vintages that the rows of a file name and in those of the job."""

    def __init__(self, job: Job, key: dict[str, str], reader: Reader, rows: Iterable[Given]) -> None:
        """Read the answers; `key` is the data set's."""
        self._job = job
        self._key = key
        named = {read for row in rows if (cell := vintage_in(row)) is not None for read in readings(cell)}
        self._by_place: dict[tuple[str, str, int, str], list[Answer]] = {}
        parameters = {**key, "vintages": sorted({*named, *job.vintages})}
        for answer in reader.rows(sql.read("questions/imports/answers_by_place"), parameters):
            place = (answer["task_id"], answer["model"], answer["trial"], answer["vintage"])
            self._by_place.setdefault(place, []).append(answer)

    def of(self, where: str, given: Given, task_id: str) -> Answer:
        """The answer to a task that a row is about: of the row's vintage, or of the job's where the row has none.

        Raises:
            ImportRefused: there is none, or several, or the row shows another text than the stored one.
        """
        model = required_text(where, given, "model", "--as LABEL")
        trial, cell = number_of(where, given, "trial"), vintage_in(given)
        found: list[Answer] = []
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
        with Warehouse(self._job.warehouse).reader() as reader:
            parameters = {**self._key, "task_id": task_id, "models": list(readings(model)), "trial": trial}
            rows = reader.rows(sql.read("questions/imports/vintages_of_answer"), parameters)
        if not rows:
            return "import the response first (`prbench import responses`)"
        vintages = [row["vintage"] for row in rows]
        others = f" and {len(rows) - _N_NAMED} others" if len(rows) > _N_NAMED else ""
        option = f"`--vintage {vintages[0]}` or a column `vintage`" if cell is None else "the column `vintage`"
        return f"there is one in {', '.join(vintages[:_N_NAMED])}{others}: name it with {option}"
