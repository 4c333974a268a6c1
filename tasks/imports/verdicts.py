"""The import of verdicts of another judge, of people's labels with how they were sampled, and of
people's reviews.

The module also finds the criteria and the stored responses of imported rows.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import sql
from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import RowError
from tasks.benchmarks.rows import as_number, response_text
from tasks.config.job import Job
from tasks.config.models import ORIGINAL
from tasks.dataset.foreign_files import read_regular
from tasks.imports import files
from tasks.imports.files import Given, ImportRefused, NotHere, Row
from tasks.llm.replies import OK
from tasks.rules.identity import IMPORTED, digest, review_id, verdict_id
from tasks.rules.text.cells import shows
from tasks.rules.verdict import BINARY, GRADINGS, VALUES, WORDS, status_of
from tasks.run.writing import NO_CALL, StageReport, call_columns
from warehouse import Reader, Warehouse
from warehouse.tables import OF_SOME_JUDGES


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
    """The criteria of a data set, in every wording."""

    def __init__(self, job: Job, reader: Reader) -> None:
        """Read the criteria of the job's data set.

        Raises:
            ImportRefused: it has no criteria.
        """
        self._revision = job.data.revision
        self._by_id: dict[tuple[str, str], Wording] = {}
        self._by_title: dict[tuple[str, str], list[Wording]] = defaultdict(list)
        self.in_order: dict[str, list[Wording]] = defaultdict(list)  # a task's original rubric
        for row in reader.rows(sql.read("queries/imports/criteria_to_judge"), job.key):
            wording = Wording(**row)
            self._by_id[wording.task_id, wording.criterion_id] = wording
            if wording.rubric == ORIGINAL:
                self._by_title[wording.task_id, wording.title.strip()].append(wording)
                self.in_order[wording.task_id].append(wording)
        self._tasks = {task_id for task_id, _ in self._by_id}
        files.refuse_not_ingested(job, self._tasks)

    def called(self, task_id: str, name: str) -> Sequence[Wording]:
        """Return a task's criterion with this id, else its original criteria with exactly this
        text, in their order.
        """
        of_id = self._by_id.get((task_id, name))
        return [of_id] if of_id else self._by_title.get((task_id, name.strip()), ())

    def of(self, where: str, given: Given) -> Wording:
        """Return the criterion of a row: `criterion` is its id or its exact text.

        If a task has the same text several times, `category` (or `axis`) identifies the criterion,
        or else `occurrence`: 1 for the first of them in the rubric.

        Raises:
            NotHere: the task does not exist, or has no such criterion.
            ImportRefused: the task has several such criteria.
        """
        task_id = files.required_text(where, given, "task", "--task ID")
        if task_id not in self._tasks:
            raise NotHere(f"{where}: task {task_id!r} is not in revision {self._revision[:12]}")
        named = files.required_text(where, given, "criterion")
        wordings = self.called(task_id, named)
        if len(wordings) > 1:
            categories = {given.get("category"), given.get("axis")} - {None, ""}
            of_category = [wording for wording in wordings if wording.category in categories]
            if len(of_category) == 1:
                return of_category[0]
            if not files.is_filled(given.get("occurrence")):
                problem = f"task {task_id} has the criterion {named[:80]!r} twice"
                raise ImportRefused(
                    f"{where}: {problem}; give its id, its `category` or its `occurrence`"
                )
            # `occurrence` counts all criteria with this text, and also decides if the category
            # identifies none of them.
            occurrence = files.number_of(where, given, "occurrence")
            wordings = wordings[occurrence - 1 : occurrence]
        if not wordings:
            raise NotHere(f"{where}: task {task_id} has no criterion {named[:80]!r}")
        return wordings[0]


class StoredResponses:
    """The usable responses to a data set, in the vintages that rows of a file state and in those of
    the job.
    """

    def __init__(self, job: Job, reader: Reader, rows: Iterable[Given]) -> None:
        """Read the responses."""
        self._job = job
        vintages = {*job.vintages, *(files.text_in(row, "vintage") for row in rows)} - {None}
        key: dict[str, Any] = {
            **job.key,
            "vintage": list(vintages),
            "status": OK,
        }
        self._by_cell: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
        columns = "response_id, task_id, model, trial, vintage, text"
        for response in reader.select("responses", columns, order="response_id", **key):
            self._by_cell[
                tuple(response[name] for name in ("task_id", "model", "trial", "vintage"))
            ].append(response)

    def of(self, where: str, given: Given, task_id: str) -> dict[str, Any]:
        """Return the response that a row is about, in the row's vintage or else the job's.

        Raises:
            ImportRefused: there is none, or several, or the row has another text than the stored
                one.
        """
        model = files.required_text(where, given, "model", "--as LABEL")
        vintage = files.text_in(given, "vintage") or self._job.vintage_named(model)
        trial = files.number_of(where, given, "trial")
        candidates = self._by_cell.get((task_id, model, trial, vintage), [])
        about = f"{model} to task {task_id}, trial {trial}, in vintage {vintage}"
        if not candidates:
            raise ImportRefused(
                f"{where}: no usable response of {about}; import it first, or name its vintage"
            )
        if len(candidates) > 1:
            raise ImportRefused(
                f"{where}: {len(candidates)} responses of {about}; import one under another label"
            )
        shown = files.text_in(given, "response")
        if shown is not None and not _shows_response(shown, candidates[0]["text"]):
            advice = (
                "name the vintage that was graded, or remove the column if a program changed the"
                " text"
            )
            raise ImportRefused(
                f"{where}: `response` is not the stored response of {about}; {advice}"
            )
        return candidates[0]


def _shows_response(cell: str, text: str) -> bool:
    """Return whether a cell shows a response; of one that is messages in JSON, a cell that was read
    has the text.
    """
    if shows(cell, text):
        return True
    try:
        return response_text({"text": text}, "text") == cell
    except RowError:
        return False


STATUS = {value: status for status, value in VALUES.items()}
_DECIDED_IN = ("criteria_met", "value", "verdict")
"""The columns that can hold a decision."""
SHEET_COLUMN = "how_to_fill_in"
"""A file with this column is a sheet for human graders, or for reviewers of criteria."""
_WORDS = {
    "true": 1.0,
    "false": 0.0,
    "yes": 1.0,
    "no": 0.0,
    "1": 1.0,
    "1.0": 1.0,
    "0.5": 0.5,
    "0": 0.0,
    "0.0": 0.0,
    **VALUES,
}


def import_verdicts(
    job: Job,
    file: Path,
    model: str | None = None,
    *,
    task: str | None = None,
    judge: str | None = None,
    grading: str | None = None,
    skip_empty: bool = False,
    skip_unknown: bool = False,
    is_random_sample: bool = False,
) -> StageReport:
    """Import verdicts: rows `task, model, criterion` with a decision, or rows in the benchmark's
    own shape.

    A decision is `criteria_met`, `value` (0, 0.5, 1) or `verdict` in words. Further columns are
    `judge, trial, vintage, judge_trial, grading, category, occurrence, explanation, confidence,
    response`. `task`, `model`, `judge` and `grading` are defaults for rows that lack them (without
    a judge, it is `imported`); `criterion` is an id or a criterion's text.

    Every row is checked before the first is stored. With `skip_empty`, rows without a decision are
    left out, as in a partly filled sheet; with `skip_unknown`, rows on tasks or criteria that the
    data set lacks. A row without a vintage gets that of the job. `response`, the text that the
    grader read, is compared with the stored response. With `is_random_sample` the user states that
    the rows are a simple random sample of all verdicts of their models.

    Raises:
        ImportRefused: a row matches no stored response or criterion, has another text than the
            stored response, or a different decision is stored for it.
    """
    batch = files.batch_of(read_regular(file), "verdicts", task, model, judge, grading)
    benchmark = load_benchmark(job.settings.benchmark)
    key = job.key
    given = list(
        files.given_rows(
            file,
            benchmark,
            task=task,
            model=model,
            judge=judge,
            grading=grading,
        )
    )
    for names, option in (
        (["task"], "--task ID"),
        (["model"], "--as LABEL"),
        (["criterion"], ""),
        (_DECIDED_IN, ""),
    ):
        files.refuse_missing_column(file, (row for _, row in given), names, option)
    decided = [each for each in given if not skip_empty or _stated(each[1])]
    with Warehouse(job.warehouse).reader() as reader:
        criteria = Criteria(job, reader)
        cells = files.Cells("verdicts", files.stored_cells(reader, "verdicts"), batch)
        responses = StoredResponses(job, reader, (row for _, row in decided))
        matched, skipped = files.of_what_is_here(
            decided, lambda each: criteria.of(*each), skip_unknown=skip_unknown
        )
        notes = (
            [f"{len(given) - len(decided)} rows without a decision skipped", *skipped]
            if skip_empty
            else skipped
        )
        if not matched:
            files.refuse_nothing(file, notes if given else ())
        rows: dict[str, Row] = {}
        of_sheet: set[str] = set()
        for (where, row), wording in matched:
            response = key | responses.of(where, row, wording.task_id)
            verdict = _verdict_row(job, benchmark.grading, batch, where, row, response, wording)
            rows[identity := verdict["verdict_id"]] = cells.put(where, verdict)
            if is_random_sample or SHEET_COLUMN in row:
                of_sheet.add(identity)
        # A grader who decided only verdicts of one sheet is a person who filled it in, unless the
        # name is that of a judge.
        named = {"benchmark": job.settings.benchmark}
        known_judges = reader.select("verdicts", "distinct judge, import_batch", **named)
        judges = {row["judge"] for row in known_judges if row["import_batch"] != batch}
        judges -= {row["judge"] for row in reader.select("labellers", "judge", **named)}
        judges |= {judge.label for judge in job.settings.judges}
        new = {row["judge"] for row in rows.values()} - judges
        people = {
            judge
            for judge in new
            if _are_of_a_sheet(reader, [r for r in rows.values() if r["judge"] == judge])
        }
        of_people = [row for i, row in rows.items() if i in of_sheet or row["judge"] in people]
        labels = _label_tables(
            job, reader, file, batch, of_people, is_random_sample=is_random_sample
        )
    for row in of_people:
        row["may_hide_failures"] = False  # people make no calls, so none can fail
    for name, own in labels.items():
        Warehouse(job.warehouse).write(name, own)
    return files.store(job, batch, {"verdicts": cells}, notes)


def _verdict_row(
    job: Job, grading: str, batch: str, where: str, given: Given, response: Row, wording: Wording
) -> Row:
    """Return a verdict; `grading` is the usual one of the benchmark."""
    judge_trial = files.number_of(where, given, "judge_trial")
    judge = (files.text_in(given, "judge") or "").strip()
    stated = _stated(given)
    if not judge and SHEET_COLUMN in given and stated:
        # Without names, two graders would count as one judge.
        raise ImportRefused(
            f"{where}: `judge` is empty; enter the grader's name, or give it with --by NAME"
        )
    # These words are only used in binary grading.
    is_yes_or_no = str(given.get("criteria_met")).strip().lower() in {"true", "false", "yes", "no"}
    grading = files.text_in(given, "grading") or (BINARY if is_yes_or_no else grading)
    if grading not in GRADINGS:
        raise ImportRefused(f"{where}: `grading` is {grading!r}; it is {' or '.join(GRADINGS)}")
    confidence = _number_in(given, "confidence")
    if files.is_filled(given.get("confidence")) and (
        confidence is None or not 0.0 <= confidence <= 1.0
    ):
        raise ImportRefused(
            f"{where}: `confidence` is {given['confidence']!r}; it is a number from 0 to 1"
        )
    values = {as_value(raw) for raw in stated}
    value = values.pop() if len(values) == 1 else None
    if value is None or (value == 0.5 and grading == BINARY):
        text = (
            " and ".join(repr(each)[:80] for each in stated)
            or "missing (--skip-empty leaves such rows out)"
        )
        allowed = (
            "true or false, yes or no, or 1 or 0"
            if grading == BINARY
            else f"0, 0.5 or 1, or {', '.join(WORDS)}"
        )
        raise ImportRefused(f"{where}: the decision is {text}; a {grading} verdict is {allowed}")
    return verdict_cell(job, response, wording, judge or IMPORTED, judge_trial, grading) | {
        "import_batch": batch,
        "status": STATUS[value],
        "value": value,
        "explanation": given.get("explanation"),
        "confidence": confidence,
    }


def verdict_cell(
    job: Job, response: Row, wording: Wording, judge: str, judge_trial: int, grading: str
) -> Row:
    """Return all columns of an imported verdict except decision and batch; `response` includes the
    data set's key.
    """
    # Verdicts on a rewritten rubric get another judge configuration.
    config_hash = IMPORTED if wording.rubric == ORIGINAL else f"{IMPORTED} {wording.rubric}"
    identity = verdict_id(
        response["response_id"],
        response["text"],
        wording.criterion_id,
        wording.content_hash,
        judge,
        config_hash,
        IMPORTED,
        grading,
        judge_trial,
    )
    copied = (
        "benchmark",
        "dataset_revision",
        "response_id",
        "task_id",
        "model",
        "trial",
        "vintage",
    )
    return {
        **{name: response[name] for name in copied},
        **call_columns(job, NO_CALL),
        "verdict_id": identity,
        "criterion_id": wording.criterion_id,
        "criterion_hash": wording.content_hash,
        "judge": judge,
        "judge_config_hash": config_hash,
        "template_hash": IMPORTED,
        "grading": grading,
        "judge_trial": judge_trial,
        "source": "imported",
        **dict.fromkeys(OF_SOME_JUDGES),
        "decided_by": None,
        "escalated_because": None,
        "may_hide_failures": None,
    }


def _number_in(given: Given, name: str) -> float | None:
    """Return a number, also one that is written as text; None for anything else."""
    value = given.get(name)
    try:
        return as_number(float(value) if isinstance(value, str) else value)
    except ValueError:
        return None


def _stated(given: Given) -> list[Any]:
    """Return the cells of a row that state a decision, without empty ones."""
    return [given[name] for name in _DECIDED_IN if files.is_filled(given.get(name))]


def as_value(raw: Any, words: Mapping[str, float] = _WORDS) -> float | None:
    """Return a decision, a number or a word, as 1, 0.5 or 0; None for anything else."""
    if isinstance(raw, bool):
        return float(raw)
    if isinstance(raw, str):
        status = status_of(raw)
        return (
            words.get(re.sub("[ _-]+", " ", raw.strip().lower()))
            if status is None
            else VALUES[status]
        )
    value = as_number(raw)
    return value if value in STATUS else None


def _are_of_a_sheet(reader: Reader, rows: Sequence[Row]) -> bool:
    """Return whether one sheet contains all of these verdicts."""
    cells = sorted(map(list, {_cell(row) for row in rows}))
    return bool(reader.rows(sql.read("queries/imports/sheets_of_verdicts"), {"cells": cells}))


_CELL = ("response_id", "criterion_id", "criterion_hash")


def _cell(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(row[name] for name in _CELL)


def _label_tables(
    job: Job, reader: Reader, file: Path, batch: str, rows: Sequence[Row], *, is_random_sample: bool
) -> dict[str, list[Row]]:
    """Return the rows that say who gave people's labels, and how they were sampled if the user
    states it.

    Each model and vintage is a simple random sample of its own: the labelled verdicts, out of all
    verdicts on its usable responses to admitted tasks.

    Raises:
        ImportRefused: all rows are of one sampled sheet, whose probabilities are stored already.
    """
    key = job.key
    now = {"import_batch": batch, "created_at": datetime.now(UTC)}
    stored = {row["judge"] for row in reader.select("labellers", import_batch=batch)}
    people = sorted({row["judge"] for row in rows} - stored)
    tables = {
        "labellers": [
            {
                "benchmark": key["benchmark"],
                "judge": judge,
                **now,
            }
            for judge in people
        ]
    }
    if not is_random_sample:
        return tables
    if _are_of_a_sheet(reader, rows):
        raise ImportRefused(
            f"{file}: is a sheet whose probabilities are stored; leave --random-sample out"
        )
    tables |= {"label_sheets": [], "label_draws": []}
    of_model: dict[tuple[str, str], dict[tuple[str, ...], Row]] = defaultdict(dict)
    for row in rows:
        of_model[row["model"], row["vintage"]][_cell(row)] = row
    for (model, vintage), cells in sorted(of_model.items()):
        given = {
            **key,
            "model": model,
            "vintage": vintage,
        }
        (population,) = reader.rows(sql.read("queries/imports/population_of_model"), given)
        n = len(cells)
        n_population = population["n_population"]
        sheet = {**key, "sheet_id": digest("stated sample", batch, *given.values())}
        design = (
            f"a simple random sample of {n} of {n_population} verdicts on {model} in vintage"
            f" {vintage}"
        )
        tables["label_sheets"].append(
            {
                **sheet,
                **population,
                "design": f"stated to be {design}",
                "covered_breakdown": "all",
                "covered_label": "",
                "n_drawn": n,
                "seed": None,
                "run_id": job.run_id,
                **now,
            }
        )
        chance = {"probability": min(1.0, n / n_population), "is_known": False}
        drawn = (
            {name: row[name] for name in ("task_id", *_CELL)} for _, row in sorted(cells.items())
        )
        tables["label_draws"] += [
            {
                **sheet,
                **of_verdict,
                **chance,
            }
            for of_verdict in drawn
        ]
    return tables


_DECISIONS = {"agree": 1.0, "disagree": 0.0}


def import_reviews(
    job: Job, sheets: Sequence[Path], *, reviewer: str | None = None, skip_unknown: bool = False
) -> list[StageReport]:
    """Import reviews: rows `task, criterion, decision[, reviewer, reason, better_wording, sample,
    criterion_hash]`.

    Every row of every file is checked before the first is stored. Rows without a decision are left
    out and counted. `reviewer` is the default for rows without one; `criterion` is an id or a
    criterion's text. A row that names a sample must be in it. With `skip_unknown` rows on tasks or
    criteria that the data set lacks are left out.

    Returns:
        A report for each file.

    Raises:
        ImportRefused: a row matches no criterion, is about another wording, lacks a field, or
            differs from a stored review of the same criterion by the same reviewer.
    """
    with Warehouse(job.warehouse).reader() as reader:
        sampled = {
            tuple(r.values())
            for r in reader.select("review_samples", "sample_id, task_id, criterion_id")
        }
        stored = {row["review_id"]: row for row in reader.select("expert_reviews")}
        criteria = Criteria(job, reader)
        common = {**job.key, "run_id": job.run_id}
    read = []
    for file in sheets:
        given = list(files.given_rows(file, reviewer=reviewer))
        for names, option in (
            (["task"], ""),
            (["criterion"], ""),
            (["decision"], ""),
            (["reviewer"], "--by NAME"),
        ):
            files.refuse_missing_column(file, (row for _, row in given), names, option)
        decided = [each for each in given if files.text_in(each[1], "decision")]
        matched, notes = files.of_what_is_here(
            decided, lambda each: criteria.of(*each), skip_unknown=skip_unknown
        )
        n_empty = len(given) - len(decided)
        if n_empty:
            notes.append(f"{n_empty} rows without a decision skipped")
        if not matched:
            files.refuse_nothing(file, notes)
        batch = files.batch_of(read_regular(file), "reviews", reviewer)
        cells = files.Cells("reviews", stored, batch)
        for (where, row), wording in matched:
            cells.put(
                where, _review_row({**common, "import_batch": batch}, sampled, where, row, wording)
            )
        read.append((batch, cells, notes))
    return [files.store(job, batch, {"reviews": cells}, notes) for batch, cells, notes in read]


def _review_row(
    common: Row, sampled: Set[tuple[str, ...]], where: str, given: Given, wording: Wording
) -> Row:
    if wording.rubric != ORIGINAL:
        raise ImportRefused(
            f"{where}: {wording.criterion_id} is a rewritten criterion; reviews are of original"
            " ones"
        )
    subject = f"criterion {wording.criterion_id} of task {wording.task_id}"
    # The criterion may have been reworded, in the sheet or in the data set.
    hash_given, title, sample = (
        _entered(given, name) for name in ("criterion_hash", "title", "sample")
    )
    is_other = hash_given is not None and wording.content_hash != hash_given
    if is_other or not (title is None or shows(title, wording.title)):
        raise ImportRefused(
            f"{where}: {subject} has other words in the data set than in the sheet; export it again"
        )
    if sample and (sample, wording.task_id, wording.criterion_id) not in sampled:
        raise ImportRefused(
            f"{where}: {subject} is not in sample {sample[:40]!r}; correct what was changed here"
        )
    decision = files.required_text(where, given, "decision").strip()
    value = _DECISIONS.get(decision.lower())
    if value is None:
        raise ImportRefused(
            f"{where}: `decision` is {decision[:40]!r}; enter {' or '.join(_DECISIONS)}"
        )
    reviewer = files.required_text(where, given, "reviewer", "--by NAME").strip()
    reason = _entered(given, "reason")
    if not value and reason is None:
        raise ImportRefused(f"{where}: disagrees without a `reason`; enter why")
    key = {name: common[name] for name in ("benchmark", "dataset_revision")}
    return {
        **common,
        "review_id": review_id(
            key, wording.task_id, wording.criterion_id, wording.content_hash, reviewer
        ),
        "task_id": wording.task_id,
        "criterion_id": wording.criterion_id,
        "criterion_hash": wording.content_hash,
        "reviewer": reviewer,
        "sample_id": sample,
        "value": value,
        "explanation": reason,
        "better_wording": _entered(given, "better_wording"),
        "created_at": datetime.now(UTC),
    }


def _entered(given: Given, name: str) -> str | None:
    return (files.text_in(given, name) or "").strip() or None
