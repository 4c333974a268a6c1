"""Storing what was made of a log: two tables and one batch, which can be retracted."""

from collections import Counter

from tasks.config.job import Job
from tasks.imports.files import store
from tasks.imports.results.making import Made, unfit_lines
from tasks.imports.results.records import Grading
from tasks.run.writing import StageReport

_STYLES = (
    "read are a list of objects with criterion and decision, a mapping of criterion to decision, a list `grades` in "
    "the order of the rubric, and marks in an explanation"
)


def stored(job: Job, made: Made) -> StageReport:
    """Write the new rows, and report what was brought in."""
    tables = {"responses": list(made.responses.values()), "verdicts": list(made.verdicts.values())}
    n_given = {"responses": made.n_given["response"], "verdicts": made.n_given["verdict"]}
    report = store(job, tables, n_given, made.batch)
    report.notes[0] = f"{report.notes[0]}, from {made.log.title}"
    failed = Counter(row["status"] for row in tables["responses"] if row["text"] is None)
    report.notes += [f"failed responses: {_counted(failed)}"] if failed else []
    failed = Counter(row["status"] for row in tables["verdicts"] if row["value"] is None)
    report.notes += [f"failed verdicts: {_counted(failed)}"] if failed else []
    return report


def notes_on(made: Made) -> list[str]:
    """What one should know about a log that was brought in."""
    notes = []
    if any(_may_hide(grading) for answer in made.log.answers for grading in answer.gradings):
        notes.append(f"{made.log.title} may store a failed judge call as a decision, so its verdicts are marked")
    if n_known := made.n_given["known failure"]:
        notes.append(f"{n_known} decisions left out, since the call is known to have failed and they may hide that")
    if n_lost := made.n_given["on no response"]:
        notes.append(f"{n_lost} grades of failed responses left out")
    if n_other := made.n_given["other weight"]:
        notes.append(f"{n_other} weights in the log differ from those of this revision")
    if n_bare := made.n_given["no criteria"]:
        said = "answer has a score" if n_bare == 1 else "answers have scores"
        notes.append(f"{n_bare} {said} but no criteria that can be read; {_STYLES}")
    return [*notes, *made.log.notes, *unfit_lines(made)]


def _may_hide(grading: Grading) -> bool:
    return bool(grading.may_hide_failures) or any(each.usage.get("may_hide_failures") for each in grading.decisions)


def _counted(statuses: Counter[str]) -> str:
    return ", ".join(f"{n} {status}" for status, n in sorted(statuses.items()))
