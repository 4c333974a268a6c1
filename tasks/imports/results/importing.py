"""Import of other harnesses' logs: responses and verdicts in one step, and a comparison of the
means with ours.

Tasks of responses and criteria of decisions are found by content; an id is used if the text under
it agrees.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import dropwhile, groupby, product
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from tasks.assemble import conversations_of_turns
from tasks.benchmarks import load_benchmark
from tasks.config.job import Job
from tasks.imports.files import (
    CONTENT,
    Cells,
    ImportRefused,
    NotHere,
    StoredRow,
    refuse_nothing,
    store,
    stored_cells,
)
from tasks.imports.matching import Criteria, Wording
from tasks.imports.responses import content_columns, response_cell
from tasks.imports.results.formats import AUTO, format_of
from tasks.imports.results.records import (
    UNREADABLE,
    Decision,
    Grading,
    Log,
    LoggedResponse,
    LogSource,
)
from tasks.imports.verdicts import STATUS, verdict_cell
from tasks.llm.replies import EMPTY, PROVIDER_ERROR
from tasks.rules.conversation import Message
from tasks.rules.errors import UsageError
from tasks.rules.identity import IMPORTED, conversation_id, criterion_hash
from tasks.rules.text.characters import is_blank, one_line, shows_nothing
from tasks.rules.text.numbers import counted, some
from tasks.rules.verdict import BINARY, TERNARY, VALUES
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse


class Compared(NamedTuple):
    """A response with the scores that the harness computed from the decisions of some judges
    (label, judge trial).

    `n_other_weights` may explain other scores here.
    """

    response: StoredRow
    judges: tuple[tuple[str, int], ...]
    scores: Mapping[str, float]
    n_other_weights: int


def import_results(
    job: Job,
    files: Sequence[Path],
    *,
    format_name: str = AUTO,
    model: str | None = None,
    judge: str | None = None,
    skip_unknown: bool = False,
) -> list[StageReport]:
    """Import the responses and verdicts of other harnesses' logs, and compare the means in the logs
    with those here.

    `model` and `judge` replace the names in the logs; `{model}` and `{judge}` in them stand for
    these names. All logs are checked before the first row is stored. With `skip_unknown`, responses
    and decisions on tasks or criteria that the data set lacks are left out.

    Raises:
        ImportRefused: an entry of a log does not fit the data set, or a different row is stored for
            it.
        UsageError: a file is in no known format, or a label is missing or is given for several
            models.
    """
    with Warehouse(job.warehouse).reader() as reader:
        tasks = Tasks(reader, job.key)
        criteria = Criteria(job, reader)
        known = {kind: stored_cells(reader, kind) for kind in ("responses", "verdicts")}
    logs: list[LogImport] = []
    for source in map(LogSource, files):
        try:
            log = format_of(source, format_name).read(source)
        except UNREADABLE as error:
            cause = f"{type(error).__name__}: {one_line(str(error))}"
            raise ImportRefused(
                f"{source.path}: cannot be read ({cause}); copy it again"
            ) from error
        judged_by = {
            each.judge for logged in log.responses for each in logged.gradings if each.decisions
        }
        models = labels_of(source.path, {logged.model for logged in log.responses}, model, "--as")
        judges = labels_of(source.path, judged_by, judge, "--by")
        batch = source.batch_with(model, judge)
        cells = {kind: Cells(kind, rows, batch, gives_way=True) for kind, rows in known.items()}
        logs.append(LogImport(job, log, batch, cells, tasks, criteria, models, judges))
        logs[-1].add_rows()
        if logs[-1].unfit and not skip_unknown:
            raise ImportRefused(f"{some(logs[-1].unfit, 1)} (--skip-unknown skips such rows)")
        if not logs[-1].cells["responses"].ids:
            unfit = logs[-1].unfit
            skipped = [f"{len(unfit)} rows skipped: {some(unfit, 3, '; ')}"] if unfit else []
            refuse_nothing(source.path, [*log.notes, *skipped])
    return [report for each in logs for report in each.stored()]


@dataclass
class LogImport:
    """The import of a log: its rows by table, entries that do not fit the data set (`unfit`), and
    scores to compare.

    `models` and `judges` have the labels of the names in the log.
    """

    job: Job
    log: Log
    batch: str
    cells: Mapping[str, Cells]
    tasks: "Tasks"
    criteria: Criteria
    models: Mapping[str | None, str]
    judges: Mapping[str | None, str]
    unfit: list[str] = field(default_factory=list)
    compared: list[Compared] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    @cached_property
    def grading(self) -> str:
        """The grading of the log: ternary if any decision is 0.5."""
        given = (
            each
            for logged in self.log.responses
            for grading in logged.gradings
            for each in grading.decisions
        )
        return TERNARY if any(each.value == VALUES["partial"] for each in given) else BINARY

    def add_rows(self) -> None:
        """Add the rows of the log."""
        for logged in self.log.responses:
            try:
                task_id, text = self.tasks.of(logged)
            except NotHere as error:
                self.unfit.append(str(error))
                continue
            label = self.models[logged.model]
            conversation = self.tasks.conversations[task_id].conversation_id
            key = self.job.key
            vintage = self.job.vintage
            cell = response_cell(
                self.job, key, task_id, conversation, label, logged.trial or 1, vintage
            )
            response = (
                cell
                | _present(logged.usage, cell)
                | _content_of(logged, text)
                | {"import_batch": self.batch}
            )
            self.cells["responses"].put(logged.where, response)
            compared = [
                each
                for grading in logged.gradings
                for each in self._graded(logged.where, grading, response)
            ]
            # Scores that name no criterion are not about a rubric.
            self.counts["no criteria"] += (
                bool(logged.gradings) and not compared and response["text"] is not None
            )
            if compared and logged.combined_scores:
                judges = tuple(each.judges[0] for each in compared)
                n_other = max(each.n_other_weights for each in compared)
                compared = [Compared(response, judges, logged.combined_scores, n_other)]
            self.compared += compared

    def _graded(self, where: str, grading: Grading, response: StoredRow) -> Iterator[Compared]:
        """Add the verdicts of a grading, and yield its scores; a grading that names no criterion
        has none.
        """
        matches = list(matched(self.criteria, where, response["task_id"], grading.decisions))
        self.unfit += [str(each) for each in matches if isinstance(each, NotHere)]
        fitting = [each for each in matches if not isinstance(each, NotHere)]
        judge = self.judges.get(grading.judge) or IMPORTED
        n_other = sum(
            decision.weight not in {None, wording.weight} for decision, wording in fitting
        )
        self.counts["other weight"] += n_other
        graded = [] if response["text"] is None else fitting
        self.counts["on no response"] += len(fitting) - len(graded)
        for decision, wording in graded:
            value = decision.value
            cell = verdict_cell(
                self.job, response, wording, judge, grading.judge_trial, self.grading
            )
            row = cell | {
                "may_hide_failures": grading.may_hide_failures,
                "import_batch": self.batch,
                "value": value,
                "status": decision.status if value is None else STATUS[value],
                "explanation": decision.explanation,
                "error": one_line(decision.error) if value is None and decision.error else None,
            }
            stored = self.cells["verdicts"].put(where, row | _present(decision.usage, cell))
            self.counts["may hide failures"] += bool(stored["may_hide_failures"])
        if matches:
            yield Compared(response, ((judge, grading.judge_trial),), grading.own_scores, n_other)

    def stored(self) -> Iterator[StageReport]:
        """Write the new rows as one batch; yield a report that counts them, and then one for each
        note.
        """
        report = store(self.job, self.batch, self.cells)
        report.notes[0] = f"{report.notes[0]}, from {self.log.title}"
        for kind, cells in self.cells.items():
            failed = Counter(
                row["status"] for row in cells.new.values() if row[CONTENT[kind].columns[0]] is None
            )
            if failed:
                listed = ", ".join(f"{n} {status}" for status, n in sorted(failed.items()))
                report.notes.append(f"failed {kind}: {listed}")
        yield report
        for note in (*self._notes(), *self._comparison()):
            yield StageReport("import", notes=[note])

    def _notes(self) -> Iterator[str]:
        if self.counts["may hide failures"]:
            yield (
                f"{self.log.title} may store a failed judge call as a decision, so its verdicts are"
                " marked"
            )
        for n, text in (
            (
                self.cells["verdicts"].n_hidden,
                (
                    "decisions left out, because a failure of the call is stored and the tool may"
                    " hide failures"
                ),
            ),
            (self.counts["on no response"], "grades of failed responses left out"),
            (self.counts["other weight"], "weights in the log differ from those of this revision"),
            (self.counts["no criteria"], "responses have scores but no criteria that can be read"),
        ):
            if n:
                yield f"{n} {text}"
        yield from self.log.notes
        if self.unfit:
            yield f"{len(self.unfit)} rows skipped: {some(self.unfit, 3, '; ')}"

    def _comparison(self) -> Iterator[str]:
        """Yield a line for each model, judge and score: the mean in the log, the mean here, and
        what differs.
        """
        response_ids = sorted({each.response["response_id"] for each in self.compared})
        key: dict[str, Any] = {
            "judge_config_hash": IMPORTED,
            "grading": self.grading,
            "response_id": response_ids,
        }
        with Warehouse(self.job.warehouse).reader() as reader:
            rows = reader.select("scores", **key)
        ours = {
            (r["response_id"], r["score_name"], r["judge"], r["judge_trial"]): r["value"]
            for r in rows
        }
        by_owner: dict[str, list[Compared]] = defaultdict(list)
        # A line names the judge if scores of several are compared, unless the harness combined
        # them.
        has_several = len({each.judges for each in self.compared}) > 1
        for each in self.compared:
            (judge, n), *others = each.judges
            named = (
                f" by {judge}{f', judged {n}' if n > 1 else ''}"
                if has_several and not others
                else ""
            )
            by_owner[f"{each.response['model']}{named}"].append(each)
        for (owner, of_owner), score in product(
            by_owner.items(), load_benchmark(self.job.settings.benchmark).scores
        ):
            pairs = [_pair(each, score.score_name, ours) for each in of_owner]
            if any(theirs is not None for _, theirs, _, _ in pairs):
                yield (
                    f"{owner}: mean {score.score_name}"
                    f" {_outcome(pairs, is_clipped=score.clips_mean)}"
                )


ScorePair = tuple[str, float | None, float | None, str | None]
"""The task of a response, its score in the log and here (None without a score), and a text if they
differ.
"""


def _pair(
    compared: Compared, name: str, scores: Mapping[tuple[str, str, str, int], float | None]
) -> ScorePair:
    response = compared.response
    theirs = compared.scores.get(name)
    keys = [(response["response_id"], name, *judge) for judge in compared.judges]
    values = [value for key in keys if (value := scores.get(key)) is not None]
    ours = fmean(values) if len(values) == len(keys) else None
    why = f": {compared.n_other_weights} other weights" if compared.n_other_weights else ""
    if response["text"] is None:
        why = ": the response failed"
    elif not all(key in scores for key in keys):
        why = ": the checks have not admitted the task here"
    elif ours is None:
        why = ": not all criteria are decided here"
    elif theirs == 0 > ours:
        why = ": clipped for each response there"
    is_same = theirs is ours if theirs is None or ours is None else abs(theirs - ours) <= 1e-9
    text = (
        f"{response['task_id']} trial {response['trial']} ({_number(theirs)} and"
        f" {_number(ours)}{why})"
    )
    return response["task_id"], theirs, ours, None if is_same else text


def _outcome(pairs: Sequence[ScorePair], *, is_clipped: bool) -> str:
    theirs, ours = (_by_task((pair[0], pair[index]) for pair in pairs) for index in (1, 2))
    mean = fmean(ours) if ours else None
    outcome = f"equal on {counted(len(ours), 'task')}"
    differing = [difference for *_, difference in pairs if difference]
    if differing:
        # The mean is clipped for display only; scores were compared before clipping.
        mean = max(mean, 0.0) if is_clipped and mean is not None else mean
        outcome = f"differs on {some(differing, 5)}"
    return f"{_number(fmean(theirs))} in the log, {_number(mean)} here: {outcome}"


def _by_task(scores: Iterable[tuple[str, Any]]) -> list[float]:
    """Return the mean score of each task over its responses with a score."""
    known = sorted(score for score in scores if score[1] is not None)
    return [fmean(score for _, score in of) for _, of in groupby(known, key=itemgetter(0))]


def _number(value: float | None) -> str:
    return "no score" if value is None else f"{value:.4f}"


class Tasks:
    """The tasks of a data set, including refused ones, by id and by conversation."""

    def __init__(self, reader: Reader, key: dict[str, str]) -> None:
        """Read the tasks; `key` is the data set's key."""
        self._revision = key["dataset_revision"]
        columns = "task_id, prompt, reference_texts, response"
        rows = reader.select("conversation_turns", columns, order="task_id, position", **key)
        self.conversations = conversations_of_turns(rows)
        self._by_conversation: dict[str, list[str]] = defaultdict(list)
        for task_id, conversation in self.conversations.items():
            self._by_conversation[conversation.conversation_id].append(task_id)

    def of(self, logged: LoggedResponse) -> tuple[str, str | None]:
        """Return the id of the task that a response belongs to, and the text of the response.

        Raises:
            NotHere: the task does not exist, or has another conversation than the log.
        """
        named = logged.task_id if logged.task_id in self.conversations else None
        text = logged.text
        is_other = False
        if named is not None and logged.transcript is not None:
            text = after(self.conversations[named].messages, logged.transcript)
            is_other = text is None
        elif logged.transcript is None and logged.messages is not None:
            # Harnesses may put a system prompt before the conversation.
            conversation = tuple(dropwhile(lambda message: message[0] == "system", logged.messages))
            candidates = self._by_conversation.get(conversation_id(conversation), [])
            is_other = named is not None and named not in candidates
            named = named or (candidates[0] if len(candidates) == 1 else None)
        if named is None:
            subject = (
                f"task {logged.task_id!r}" if logged.task_id else "a task with this conversation"
            )
            raise NotHere(f"{logged.where}: {subject} is not in revision {self._revision[:12]}")
        if is_other:
            raise NotHere(
                f"{logged.where}: task {named} has another conversation in this data set than in"
                " the log"
            )
        return named, text


def after(messages: Sequence[Message], transcript: str) -> str | None:
    """Return the text after a conversation in a transcript of `role: content` turns; None if that
    begins otherwise.
    """
    before = "".join(f"{role}: {content}\n" for role, content in messages) + "assistant: "
    if transcript == before.rstrip():
        return ""
    return transcript[len(before) :] if transcript.startswith(before) else None


def matched(
    criteria: Criteria, where: str, task_id: str, decisions: Sequence[Decision]
) -> Iterator[tuple[Decision, Wording] | NotHere]:
    """Yield decisions with their criteria, or the reason why a criterion is not found.

    Criteria with equal texts are distinguished by their order, or by weight.
    """
    seen: Counter[str | None] = Counter()
    for decision in decisions:
        seen.update({decision.criterion, decision.text} - {None})
        try:
            yield decision, _wording(criteria, where, task_id, decision, decisions, seen)
        except NotHere as error:
            if not decision.is_guess:
                yield error


def _wording(
    criteria: Criteria,
    where: str,
    task_id: str,
    decision: Decision,
    decisions: Sequence[Decision],
    seen: Mapping[str | None, int],
) -> Wording:
    """Return the criterion of a decision; `seen` has the number of decisions so far with each
    name.
    """
    names = [name for name in (decision.criterion, decision.text) if name]
    if not names:
        rubric = criteria.originals[task_id]
        if len(rubric) != len(decisions) or decision.position is None:
            raise NotHere(
                f"{where}: the log has {len(decisions)} grades, and the rubric {len(rubric)}"
                " criteria"
            )
        return rubric[decision.position]
    name = next((name for name in names if criteria.named(task_id, name)), names[0])
    alike = criteria.named(task_id, name)
    if len(alike) > 1:
        n = seen[name]
        alike = (
            [_of_equal(where, decision, decisions, alike)]
            if decision.is_reordered
            else alike[n - 1 : n]
        )
    if not alike:
        raise NotHere(f"{where}: task {task_id} has no criterion {name[:80]!r}")
    if decision.text is not None and criterion_hash(decision.text) != alike[0].content_hash:
        raise NotHere(
            f"{where}: criterion {name!r} of task {task_id} has other words in this data set"
        )
    return alike[0]


def _of_equal(
    where: str, decision: Decision, decisions: Sequence[Decision], alike: Sequence[Wording]
) -> Wording:
    """Return the criterion of a decision whose text several criteria share, if decisions are not in
    the rubric's order.

    The weight tells the criteria apart. If several have the same weight too, their decisions must
    be equal.
    """
    wordings = [wording for wording in alike if wording.weight == decision.weight]
    same = [
        e for e in decisions if (e.criterion, e.weight) == (decision.criterion, decision.weight)
    ]
    if len(same) != len(wordings) or len({each.value for each in same}) > 1:
        problem = (
            f"{where}: task {alike[0].task_id} has the criterion {alike[0].title[:80]!r} several"
            " times"
        )
        raise NotHere(f"{problem}, and the log does not say which decision is on which")
    return next(wording for each, wording in zip(same, wordings, strict=True) if each is decision)


def labels_of(
    path: Path, names: Set[str | None], given: str | None, option: str
) -> Mapping[str | None, str]:
    """Return a label for each model or judge of a log; `{model}` or `{judge}` in `given` stands for
    its name.

    Raises:
        UsageError: a label is blank, a model has neither name nor label, or several would get one
            label.
    """
    what = {"--as": "model", "--by": "judge"}[option]
    placeholder = f"{{{what}}}"
    is_name_used = what == "model" if given is None else placeholder in given
    if (given is not None and is_blank(given)) or (is_name_used and any(map(is_blank, names))):
        how = (
            f"give its label, which is not blank, with {option} LABEL, without {placeholder} in it"
        )
        raise UsageError(f"{path}: names no {what}; {how}")
    if given is not None and placeholder not in given and len(names) > 1:
        listed = ", ".join(sorted(map(str, names)))
        raise UsageError(
            f"{option} {given}: {path} has {listed}; write {placeholder} where its name belongs"
        )
    return {
        name: name or "" if given is None else given.replace(placeholder, name or "")
        for name in names
    }


def _present(usage: Mapping[str, Any], row: Mapping[str, Any]) -> StoredRow:
    """Return the known values of a call, for the columns that a row has."""
    return {name: value for name, value in usage.items() if value is not None and name in row}


def _content_of(logged: LoggedResponse, text: str | None) -> StoredRow:
    """Return the columns with the text of a response, or with its failure."""
    status = logged.status
    error = logged.error
    if text is not None and text.strip() in logged.failure_texts:
        status = logged.failure_texts[text.strip()]
        error = f"the harness stored {text.strip()!r}"
    if status is None and text is not None and shows_nothing(text):
        status = EMPTY
    stored = None if status is not None else text
    return content_columns(stored, status or PROVIDER_ERROR, one_line(error) if error else None)
