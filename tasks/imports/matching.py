"""The criteria and the stored responses that imported rows are about."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from tasks.benchmarks.base import RowError
from tasks.benchmarks.rows import response_text
from tasks.config.job import Job
from tasks.config.models import ORIGINAL
from tasks.imports import files
from tasks.imports.files import FileRow, ImportRefused, LocatedRow, NotInDataSet, StoredRow
from tasks.llm.replies import OK
from tasks.rules.text.cells import shows
from warehouse import Reader


class Wording(NamedTuple):
    """A criterion in one of its wordings."""

    task_id: str
    criterion_id: str
    title: str
    content_hash: str
    category: str | None
    weight: float | None
    rubric: str


class Criteria:
    """The criteria of a data set, in every wording.

    Attributes:
        originals: the criteria of each task's original rubric, in its order.
    """

    def __init__(self, job: Job, reader: Reader) -> None:
        """Read the criteria of the job's data set.

        Raises:
            ImportRefused: it has no criteria.
        """
        self._revision = job.data.revision
        self._by_id: dict[tuple[str, str], Wording] = {}
        self.originals: dict[str, list[Wording]] = defaultdict(list)
        for row in reader.query("queries/imports/criteria_to_judge", job.key):
            wording = Wording(**row)
            self._by_id[wording.task_id, wording.criterion_id] = wording
            if wording.rubric == ORIGINAL:
                self.originals[wording.task_id].append(wording)
        files.refuse_not_ingested(job, self.originals)

    def find(self, task_id: str, name: str) -> Sequence[Wording]:
        """Return a task's criterion with this id, else its original criteria with this text.

        A text always means the original criteria. Rewritten ones, which have ids of their own, are
        found by these.
        """
        wording = self._by_id.get((task_id, name))
        if wording is not None:
            return [wording]
        rubric = self.originals.get(task_id, ())
        return [wording for wording in rubric if wording.title.strip() == name.strip()]

    def of_row(self, located: LocatedRow) -> Wording:
        """Return the criterion of a row: `criterion` is its id or its exact text.

        If a task has the same text several times, `category` (or `axis`, as some benchmarks call
        it) identifies the criterion, or else `occurrence`: 1 for the first of them in the rubric.

        Raises:
            NotInDataSet: the task does not exist, or has no such criterion.
            ImportRefused: the task has several such criteria, and the row does not tell which.
        """
        where, row, _ = located
        task_id = files.required_text(where, row, "task", "--task ID")
        if task_id not in self.originals:
            raise NotInDataSet(
                f"{where}: task {task_id!r} is not in revision {self._revision[:12]}"
            )
        name = files.required_text(where, row, "criterion")
        wordings = self.find(task_id, name)
        if len(wordings) > 1:
            wordings = _chosen_wordings(where, row, wordings)
        if not wordings:
            raise NotInDataSet(f"{where}: task {task_id} has no criterion {name[:80]!r}")
        return wordings[0]


def _chosen_wordings(where: str, row: FileRow, wordings: Sequence[Wording]) -> Sequence[Wording]:
    """Return the one of several criteria with the same text that a row identifies.

    The result is empty if `occurrence` is larger than their number.

    Raises:
        ImportRefused: the row identifies none of them.
    """
    categories = {row.get("category"), row.get("axis")} - {None, ""}
    in_category = [wording for wording in wordings if wording.category in categories]
    if len(in_category) == 1:
        return in_category
    if not files.is_filled(row.get("occurrence")):
        title = row["criterion"][:80]
        raise ImportRefused(
            f"{where}: task {wordings[0].task_id} has the criterion {title!r} twice; give its id,"
            " its `category` or its `occurrence`"
        )
    # `occurrence` counts all criteria with this text, whatever category the row states.
    occurrence = files.number_of(where, row, "occurrence")
    return wordings[occurrence - 1 : occurrence]


class StoredResponses:
    """The usable responses to a data set, in the vintages of the job and of the rows of a file."""

    def __init__(self, job: Job, reader: Reader, rows: Iterable[LocatedRow]) -> None:
        """Read the responses."""
        self._job = job
        row_vintages = {files.text_in(located.row, "vintage") for located in rows}
        vintages = {*job.vintages, *row_vintages} - {None}
        key = {**job.key, "vintage": list(vintages), "status": OK}
        self._by_key: dict[tuple[Any, ...], list[StoredRow]] = defaultdict(list)
        columns = "response_id, task_id, model, trial, vintage, text"
        key_of = itemgetter("task_id", "model", "trial", "vintage")
        for response in reader.select("responses", columns, order="response_id", **key):
            self._by_key[key_of(response)].append(response)

    def of_row(self, located: LocatedRow, task_id: str) -> StoredRow:
        """Return the response that a row is about, in the row's vintage or else the job's.

        A row without a trial is about trial 1.

        Raises:
            ImportRefused: there is none, or several, or the row has another text than the stored
                one.
        """
        where, row, _ = located
        model = files.required_text(where, row, "model", "--as LABEL")
        vintage = files.text_in(row, "vintage") or self._job.vintage_named(model)
        trial = files.number_of(where, row, "trial")
        responses = self._by_key.get((task_id, model, trial, vintage), [])
        description = f"{model} to task {task_id}, trial {trial}, in vintage {vintage}"
        if not responses:
            raise ImportRefused(
                f"{where}: no usable response of {description}; import it first, or name its"
                " vintage"
            )
        if len(responses) > 1:
            raise ImportRefused(
                f"{where}: {len(responses)} responses of {description}; import one under another"
                " label"
            )
        response = responses[0]
        cell = files.text_in(row, "response")
        if cell is not None and not _shows_response(cell, response["text"]):
            raise ImportRefused(
                f"{where}: `response` is not the stored response of {description}; name the vintage"
                " that was graded, or remove the column if a program changed the text"
            )
        return response


def _shows_response(cell: str, text: str) -> bool:
    """Return whether a cell shows a response, whose text may be messages in JSON."""
    if shows(cell, text):
        return True
    try:
        # The cell may have only the last of the messages.
        return response_text({"text": text}, "text") == cell
    except RowError:  # the messages have no text that a cell could have
        return False
