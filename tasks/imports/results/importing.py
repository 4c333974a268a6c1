"""Import of what other harnesses wrote: answers and verdicts of one log in one step, and its means beside ours.

Which task an answer is to, and which criterion a decision is on, is found by content, and by id where the text agrees.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import dropwhile, groupby
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from tasks.assemble import conversations_of_turns
from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.benchmarks.rows import as_text
from tasks.config.job import Job
from tasks.imports.files import Cells, ImportRefused, NotHere, Row, key_of, store, stored_cells
from tasks.imports.responses import answered, response_cell
from tasks.imports.results.formats import AUTO, format_of
from tasks.imports.results.records import Answer, Decision, Grading, Log, Source
from tasks.imports.verdicts import Criteria, Wording, verdict_cell
from tasks.llm.replies import EMPTY, PROVIDER_ERROR
from tasks.rules.conversation import Message
from tasks.rules.errors import UsageError
from tasks.rules.identity import IMPORTED, conversation_id, criterion_hash
from tasks.rules.text.characters import is_blank, one_line, shows_nothing
from tasks.rules.text.numbers import counted, some
from tasks.rules.verdict import BINARY, TERNARY, VALUES
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse

_STATUS = {value: status for status, value in VALUES.items()}
_TABLES = {"responses": "text", "verdicts": "value"}
"""What a log is made into -> the column that is NULL for a failure."""
_STYLES = (
    "read are a list of objects with criterion and decision, a mapping of criterion to decision, a list `grades` in "
    "the order of the rubric, and marks in an explanation"
)


class Scored(NamedTuple):
    """The scores that a harness made of a judge's decisions on an answer, and what may make ours differ."""

    answer: Answer
    grading: Grading
    response: Row
    judge: str
    other_weights: int


@dataclass
class Made:
    """The rows of a log by table, and what could not be made into one."""

    batch: str
    log: Log
    cells: Mapping[str, Cells]
    unfit: list[str] = field(default_factory=list)
    scored: list[Scored] = field(default_factory=list)
    n_found: Counter[str] = field(default_factory=Counter)

    @cached_property
    def grading(self) -> str:
        """The grading of the log: ternary if any decision is half."""
        given = (each for answer in self.log.answers for grading in answer.gradings for each in grading.decisions)
        return TERNARY if any(each.value == VALUES["partial"] for each in given) else BINARY


def import_results(
    job: Job, files: Sequence[Path], *, format_name: str = AUTO, model: str | None = None, judge: str | None = None,
    skip_unknown: bool = False,
) -> list[StageReport]:  # fmt: skip
    """Bring in answers and verdicts of the logs of other harnesses, and compare their means with those of the rows.

    `model` and `judge` are labels instead of those in the logs; `{model}` and `{judge}` in them stand for these. Every
    log is looked at whole before the first row is stored. With `skip_unknown` answers and decisions on what the data
    set does not have are left out.

    Raises:
        ImportRefused: something in a log does not fit the data set, or something else is stored in its place.
        UsageError: a file is in no known format, or a label is missing or cannot be one of several models.
    """
    benchmark, key = load_benchmark(job.settings.benchmark), key_of(job)
    with Warehouse(job.warehouse).reader() as reader:
        tasks, criteria = Tasks(reader, key), Criteria(job, reader)
        known = {table: stored_cells(reader, table) for table in _TABLES}
    logs: list[Made] = []
    for source in map(Source, files):
        try:
            log = format_of(source, format_name).read(source)
        except ValueError as error:
            raise ImportRefused(f"{source.path}: cannot be read ({one_line(str(error))}); correct it") from error
        models = labels_of(source.path, {answer.model for answer in log.answers}, model, "--as")
        judges = {each.judge for answer in log.answers for each in answer.gradings if each.decisions}
        labels = models, labels_of(source.path, judges, judge, "--by")
        batch = source.batch_with(model, judge)
        made = Made(batch, log, {table: Cells(table, rows, batch, gives_way=True) for table, rows in known.items()})
        _add_rows(job, key, made, tasks, criteria, labels)
        if made.unfit and not skip_unknown:
            raise ImportRefused(f"{some(made.unfit, 1)} (--skip-unknown skips such rows)")
        if not made.cells["responses"].given:
            raise ImportRefused(
                f"{source.path}: has no answer on this data set; check --benchmark and what is ingested"
            )
        logs.append(made)
    reports = [_stored(job, made) for made in logs]
    # What was brought in is one line; what one should know about it, and each mean, are others.
    lines: list[StageReport] = []
    for report, made in zip(reports, logs, strict=True):
        lines += [report, *(StageReport(report.stage, notes=[note]) for note in _notes(job, benchmark, made))]
    return lines


def _stored(job: Job, made: Made) -> StageReport:
    """Write the new rows, and report what was brought in: two tables and one batch, which can be retracted."""
    tables = {table: cells.new.values() for table, cells in made.cells.items()}
    report = store(job, made.batch, tables, sum(len(cells.given) for cells in made.cells.values()))
    report.notes[0] = f"{report.notes[0]}, from {made.log.title}"
    for table, column in _TABLES.items():
        if failed := Counter(row["status"] for row in tables[table] if row[column] is None):
            report.notes.append(f"failed {table}: {', '.join(f'{n} {status}' for status, n in sorted(failed.items()))}")
    return report


def _notes(job: Job, benchmark: Benchmark, made: Made) -> Iterator[str]:
    """Yield notes on an imported log."""
    gradings = [grading for answer in made.log.answers for grading in answer.gradings]
    hidden = {each.may_hide_failures for each in gradings}
    hidden |= {each.usage.get("may_hide_failures") for grading in gradings for each in grading.decisions}
    if True in hidden:
        yield f"{made.log.title} may store a failed judge call as a decision, so its verdicts are marked"
    found = made.n_found
    for n, said in (
        (made.cells["verdicts"].n_hidden,
         "decisions left out, since the call is known to have failed and they may hide that"),
        (found["on no response"], "grades of failed responses left out"),
        (found["other weight"], "weights in the log differ from those of this revision"),
        (found["no criteria"], f"answers have scores but no criteria that can be read; {_STYLES}"),
    ):  # fmt: skip
        if n:
            yield f"{n} {said}"
    yield from made.log.notes
    if made.unfit:
        yield f"{len(made.unfit)} rows skipped: {some(made.unfit, 3, '; ')}"
    yield from _comparison(job, benchmark, made)


class Pair(NamedTuple):
    """A score of a response there and here; None where it is not scored."""

    task_id: str
    theirs: float | None
    ours: float | None
    difference: str | None


def _comparison(job: Job, benchmark: Benchmark, made: Made) -> Iterator[str]:
    """Yield one line for each model, judge and score: the log's mean over tasks, ours, and where they differ."""
    place: dict[str, Any] = {
        "response_id": sorted({each.response["response_id"] for each in made.scored}),
        "judge": sorted({each.judge for each in made.scored}), "judge_config_hash": IMPORTED, "grading": made.grading,
    }  # fmt: skip
    with Warehouse(job.warehouse).reader() as reader:
        rows = reader.select("scores", "response_id, judge, judge_trial, score_name, value", **place)
    ours = {(r["response_id"], r["judge"], r["judge_trial"], r["score_name"]): r["value"] for r in rows}
    by_owner: dict[str, list[Sequence[Scored]]] = defaultdict(list)
    # One score there is of a grading, or of all gradings of an answer; answers with several name the judge.
    by_answer = [list(of) for _, of in groupby(made.scored, key=lambda each: id(each.answer))]
    has_several = any(len(of) > 1 for of in by_answer)
    for gradings in by_answer:
        is_together = bool(gradings[0].answer.scores_together)
        for unit in [gradings] if is_together else [[each] for each in gradings]:
            again = f", judged {unit[0].grading.judge_trial}" if unit[0].grading.judge_trial > 1 else ""
            judged = f" by {unit[0].judge}{again}" if has_several and not is_together else ""
            by_owner[f"{unit[0].response['model']}{judged}"].append(unit)
    for owner, units in by_owner.items():
        for score in benchmark.scores:
            pairs = [_pair(unit, score.score_name, ours) for unit in units]
            if any(pair.theirs is not None for pair in pairs):
                yield f"{owner}: mean {score.score_name} {_outcome(pairs, is_clipped=score.clips_mean)}"


def _pair(unit: Sequence[Scored], name: str, scores: Mapping[tuple[str, str, int, str], float | None]) -> Pair:
    response = unit[0].response
    places = [(response["response_id"], each.judge, each.grading.judge_trial, name) for each in unit]
    found = [value for place in places if (value := scores.get(place)) is not None]
    theirs = (unit[0].answer.scores_together or unit[0].grading.own_scores).get(name)
    ours = fmean(found) if len(found) == len(unit) else None
    n_other = max(each.other_weights for each in unit)
    why = f": {n_other} other weights" if n_other else ""
    if response["text"] is None:
        why = ": the response failed"
    elif not all(place in scores for place in places):
        why = ": the checks have not admitted the task here"
    elif ours is None:
        why = ": not all criteria are decided here"
    elif theirs is not None and theirs == 0 > ours:
        why = ": clipped for each response there"
    is_same = theirs is ours if theirs is None or ours is None else abs(theirs - ours) <= 1e-9
    said = f"{response['task_id']} trial {response['trial']} ({_number(theirs)} and {_number(ours)}{why})"
    return Pair(response["task_id"], theirs, ours, None if is_same else said)


def _outcome(pairs: Sequence[Pair], *, is_clipped: bool) -> str:
    theirs, ours = _by_task((p.task_id, p.theirs) for p in pairs), _by_task((p.task_id, p.ours) for p in pairs)
    mean = fmean(ours) if ours else None
    outcome = f"equal on {counted(len(ours), 'task')}"
    if differing := [pair.difference for pair in pairs if pair.difference]:
        # The paper clips the mean; where a log's scores are ours, it is compared with what it was before.
        mean = max(mean, 0.0) if is_clipped and mean is not None else mean
        outcome = f"differs on {some(differing, 5)}"
    return f"{_number(fmean(theirs))} in the log, {_number(mean)} here: {outcome}"


def _by_task(scores: Iterable[tuple[str, float | None]]) -> list[float]:
    """Return the mean of each task over its responses with a score."""
    known = sorted((task_id, score) for task_id, score in scores if score is not None)
    return [fmean(score for _, score in of) for _, of in groupby(known, key=lambda score: score[0])]


def _number(value: float | None) -> str:
    return "no score" if value is None else f"{value:.4f}"


class Tasks:
    """The tasks of a data set, refused ones too, by id and by what is asked."""

    def __init__(self, reader: Reader, key: dict[str, str]) -> None:
        """Read them; `key` is the data set's."""
        self._revision = key["dataset_revision"]
        columns = "task_id, prompt, reference_texts, response"
        rows = reader.select("conversation_turns", columns, order="task_id, position", **key)
        self.conversations = conversations_of_turns(rows)
        self._with_references = {row["task_id"] for row in rows if row["reference_texts"]}
        self._by_conversation: dict[str, list[str]] = defaultdict(list)
        for task_id, conversation in self.conversations.items():
            self._by_conversation[conversation.conversation_id].append(task_id)

    def of(self, answer: Answer) -> tuple[str, str | None]:
        """Return the id of the task that a response belongs to, with the response's text.

        Raises:
            NotHere: there is none, or it is another conversation than the one that was asked.
        """
        named, text, is_other = answer.task_id, answer.text, False
        if named not in self.conversations:
            named = None
        if named is not None and answer.transcript is not None:
            text = after(self.conversations[named].messages, answer.transcript)
            is_other = text is None
        elif answer.transcript is None and answer.messages is not None:
            # Harnesses add a system prompt in front.
            asked = tuple(dropwhile(lambda message: message[0] == "system", answer.messages))
            found = self._by_conversation.get(conversation_id(asked), [])
            named, is_other = named or (found[0] if len(found) == 1 else None), named is not None and named not in found
        if named is None:
            said = f"task {answer.task_id!r}" if answer.task_id else "a task with this conversation"
            raise NotHere(f"{answer.where}: {said} is not in revision {self._revision[:12]}")
        if is_other:
            why = " (here it has reference texts, which some harnesses leave out)"
            said = f"has another conversation in this data set than in the log{why * (named in self._with_references)}"
            raise NotHere(f"{answer.where}: task {named} {said}")
        return named, text


def after(messages: Sequence[Message], transcript: str) -> str | None:
    """Return the text after a conversation in a transcript of `role: content` turns, which ends without white space."""
    asked = "".join(f"{role}: {content}\n" for role, content in messages) + "assistant: "
    if transcript == asked.rstrip():
        return ""
    return transcript[len(asked) :] if transcript.startswith(asked) else None


def matched(
    criteria: Criteria, where: str, task_id: str, decisions: Sequence[Decision]
) -> Iterator[tuple[Decision, Wording] | NotHere]:
    """Decisions with their criteria, or why there is none; equal texts are told apart by their order, or by weight."""
    seen: Counter[str] = Counter()
    for decision in decisions:
        named = list(dict.fromkeys(name for name in (decision.criterion, decision.text) if name))
        seen.update(named)
        try:
            found = _of_equal(criteria, where, task_id, decision, decisions) or _named(
                criteria, where, task_id, decision, [(name, seen[name]) for name in named]
            )
            if found is None:
                rubric = criteria.in_order[task_id]
                if len(rubric) != len(decisions) or decision.position is None:
                    n_grades = f"the log has {len(decisions)} grades"
                    raise NotHere(f"{where}: {n_grades}, and the rubric {len(rubric)} criteria")  # noqa: TRY301
                found = rubric[decision.position]
        except NotHere as error:
            if not decision.is_guess:
                yield error
        else:
            yield decision, found


def _of_equal(
    criteria: Criteria, where: str, task_id: str, decision: Decision, decisions: Sequence[Decision]
) -> Wording | None:
    """Return the criterion of a decision on a text that several criteria have, in another order than the rubric.

    It is found by its weight. Decisions with the same weight and value are alike; any others cannot be told apart.
    """
    text = (decision.criterion or "").strip()
    alike = criteria.alike(task_id, text) if decision.is_reordered and text else ()
    if len(alike) < 2:
        return None
    wordings = [wording for wording in alike if wording.weight == decision.weight]
    same = [e for e in decisions if (e.criterion or "").strip() == text and e.weight == decision.weight]
    if len(same) != len(wordings) or len({each.value for each in same}) > 1:
        said = f"{where}: task {task_id} has the criterion {text[:80]!r} several times"
        raise NotHere(f"{said}, and the log does not say which decision is on which")
    return next(wording for each, wording in zip(same, wordings, strict=True) if each is decision)


def _named(
    criteria: Criteria, where: str, task_id: str, decision: Decision, named: Sequence[tuple[str, int]]
) -> Wording | None:
    """Return the criterion of the first known name; None if none is named."""
    lacking: NotHere | None = None
    for name, occurrence in named:
        try:
            found = criteria.of(where, {"task": task_id, "criterion": name, "occurrence": occurrence})
        except NotHere as error:
            lacking = lacking or error
            continue
        if decision.text is not None and criterion_hash(decision.text) != found.content_hash:
            raise NotHere(f"{where}: criterion {name!r} of task {task_id} has other words in this data set")
        return found
    if lacking:
        raise lacking
    return None


def labels_of(path: Path, names: Set[str | None], given: str | None, option: str) -> Mapping[str | None, str]:
    """Return the labels (`--as`, `--by`) of a log's models or judges; `{model}` or `{judge}` stands for the name.

    Raises:
        UsageError: a label is blank, no model has a name or label, or one label is given for several.
    """
    what = {"--as": "model", "--by": "judge"}[option]
    place = f"{{{what}}}"
    if given is not None and is_blank(given):
        raise UsageError(f"{option} {given!r}: a label says something; write a name")
    if any(map(is_blank, names)) and (what == "model" if given is None else place in given):
        raise UsageError(f"{path}: names no {what}; give its label with {option} LABEL, without {place} in it")
    if given is not None and place not in given and len(names) > 1:
        listed = ", ".join(sorted(map(str, names)))
        raise UsageError(f"{option} {given}: {path} has {listed}; write {place} where its name belongs")
    return {name: name or "" if given is None else given.replace(place, name or "") for name in names}


def _add_rows(
    job: Job, key: dict[str, str], made: Made, tasks: Tasks, criteria: Criteria,
    labels: tuple[Mapping[str | None, str], ...],
) -> None:  # fmt: skip
    """Make the rows of a log, whose models and judges have these labels."""
    models, judges = labels
    for answer in made.log.answers:
        try:
            task_id, text = tasks.of(answer)
        except NotHere as error:
            made.unfit.append(str(error))
            continue
        label, conversation = models[answer.model], tasks.conversations[task_id].conversation_id
        cell = response_cell(job, key, task_id, conversation, label, answer.trial or 1, job.vintage)
        response = cell | _present(answer.usage, cell) | _said(answer, text) | {"import_batch": made.batch}
        made.cells["responses"].put(answer.where, response)
        is_read = [
            _add_grading(made, job, answer, grading, response, judges.get(grading.judge) or IMPORTED, criteria)
            for grading in answer.gradings
        ]
        made.n_found["no criteria"] += bool(is_read) and not any(is_read) and response["text"] is not None


def _present(usage: Mapping[str, Any], row: Mapping[str, Any]) -> Row:
    """Return the columns on a call that a log states and the row has."""
    return {name: value for name, value in usage.items() if value is not None and name in row}


def _said(answer: Answer, text: str | None) -> Row:
    """Return the columns of a response, or of the failure in its place."""
    status, error = answer.status, answer.error
    if text is not None and text.strip() in answer.failure_texts:
        status, error = answer.failure_texts[text.strip()], f"the harness stored {text.strip()!r}"
    if status is None and text is not None and shows_nothing(text):
        status = EMPTY
    stored = None if status is not None else as_text(text)
    return answered(stored, status or PROVIDER_ERROR, one_line(error) if error else None)


def _add_grading(
    made: Made, job: Job, answer: Answer, grading: Grading, response: Row, judge: str, criteria: Criteria
) -> bool:
    """Add the verdicts of a grading; False if it names no criterion, so that its scores are of something else."""
    found = list(matched(criteria, answer.where, response["task_id"], grading.decisions))
    if not found:
        return False
    made.unfit += [str(each) for each in found if isinstance(each, NotHere)]
    fitting = [each for each in found if not isinstance(each, NotHere)]
    n_other = sum(decision.weight not in {None, wording.weight} for decision, wording in fitting)
    made.scored.append(Scored(answer, grading, response, judge, n_other))
    made.n_found["other weight"] += n_other
    if response["text"] is None:
        made.n_found["on no response"] += len(fitting)
        return True
    for decision, wording in fitting:
        value = decision.value
        cell = verdict_cell(job, response, wording, judge, grading.judge_trial, made.grading)
        row = cell | {
            "may_hide_failures": grading.may_hide_failures, "import_batch": made.batch, "value": value,
            "status": decision.status if value is None else _STATUS[value],
            "explanation": as_text(decision.explanation),
            "error": one_line(decision.error) if value is None and decision.error else None,
        }  # fmt: skip
        made.cells["verdicts"].put(answer.where, row | _present(decision.usage, cell))
    return True
