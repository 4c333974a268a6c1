"""Import of other harnesses' logs: their responses and verdicts, and their means beside ours.

Tasks of responses and criteria of decisions are found by content; an id is used if the text under
it agrees.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import dropwhile
from operator import itemgetter
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple

from tasks.assemble import conversations_of_turns
from tasks.benchmarks import load_benchmark
from tasks.config.job import Job
from tasks.imports.files import (
    ImportRefused,
    NotInDataSet,
    RowsToImport,
    StoredRow,
    count_notes,
    imported_rows,
    raise_nothing_to_import,
    store_batch,
)
from tasks.imports.matching import Criteria, Wording
from tasks.imports.responses import content_columns, response_columns
from tasks.imports.results.formats import AUTO, format_of
from tasks.imports.results.records import (
    READING_ERRORS,
    Decision,
    Judgement,
    Log,
    LoggedResponse,
    LogSource,
)
from tasks.imports.verdicts import verdict_columns
from tasks.llm.replies import EMPTY, PROVIDER_ERROR
from tasks.rules.conversation import Message
from tasks.rules.errors import UsageError
from tasks.rules.identity import IMPORTED, conversation_id, criterion_hash
from tasks.rules.text.characters import is_blank, one_line, shows_nothing
from tasks.rules.text.numbers import counted, list_text
from tasks.rules.verdict import BINARY, STATUSES, TERNARY, VALUES
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse

ScoresHere = Mapping[tuple[str, str, str, int], float | None]
"""Response id, score, judge and judge trial -> the score that we computed."""


class HarnessScores(NamedTuple):
    """The scores of a response that the harness computed from the decisions of some judges.

    Attributes:
        response: the imported response.
        judges: label and judge trial of each judge.
        scores: name -> score.
        n_other_weights: number of weights in the log that differ from the data set's, which may
            explain other scores here.
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
    """Import the responses and verdicts of other harnesses' logs; compare their means with ours.

    `model` and `judge` are labels instead of the names in the logs; in a label, `{model}` or
    `{judge}` stands for the name in the log. All logs are checked before the first row is stored.
    With `skip_unknown`, responses and decisions on tasks or criteria that the data set lacks are
    left out.

    Raises:
        ImportRefused: an entry of a log does not fit the data set, or a different row is stored for
            it.
        UsageError: a file is in no known format, or a label is missing or is given for several
            models.
    """
    with Warehouse(job.warehouse).reader() as reader:
        tasks = Tasks(reader, job.key)
        criteria = Criteria(job, reader)
        stored_rows = {kind: imported_rows(reader, kind) for kind in ("responses", "verdicts")}
    imports = []
    for file in files:
        source = LogSource(file)
        log = _read_log(source, format_name)
        models = {logged.model for logged in log.responses}
        batch = source.batch_with(model, judge)
        # All logs share the stored rows, so that each is compared with those before it too.
        rows_by_kind = {
            kind: RowsToImport(kind, rows, batch, ignores_failures=True)
            for kind, rows in stored_rows.items()
        }
        log_import = LogImport(
            job,
            log,
            rows_by_kind,
            tasks,
            criteria,
            models=labels_by_name(source.path, models, model, "model"),
            judges=labels_by_name(source.path, _judges_in(log), judge, "judge"),
        )
        log_import.add_rows()
        if log_import.misfits and not skip_unknown:
            raise ImportRefused(
                f"{list_text(log_import.misfits, 1)} (--skip-unknown skips such rows)"
            )
        if not rows_by_kind["responses"].ids:
            raise_nothing_to_import(source.path, log_import.remarks())
        imports.append(log_import)
    reports: list[StageReport] = []
    for log_import in imports:
        reports += log_import.write()
    return reports


def _read_log(source: LogSource, format_name: str) -> Log:
    try:
        return format_of(source, format_name).read(source)
    except READING_ERRORS as error:
        cause = f"{type(error).__name__}: {one_line(str(error))}"
        raise ImportRefused(f"{source.path}: cannot be read ({cause}); copy it again") from error


def _judges_in(log: Log) -> set[str | None]:
    """Return the names of the judges that decided anything."""
    judges: set[str | None] = set()
    for logged in log.responses:
        judges.update(judgement.judge for judgement in logged.judgements if judgement.decisions)
    return judges


@dataclass
class LogImport:
    """The import of a log.

    Attributes:
        rows_by_kind: its responses and verdicts.
        models: name of a model in the log -> its label.
        judges: name of a judge in the log -> its label.
        misfits: messages about entries that do not fit the data set.
        harness_scores: scores to compare with ours.
        n_unreadable: number of responses whose scores name no criterion.
        n_without_response: number of decisions on failed responses, which are left out.
        n_other_weights: number of weights that differ from those of the data set.
        may_hide_failures: true if a verdict may be a failed call.
    """

    job: Job
    log: Log
    rows_by_kind: Mapping[str, RowsToImport]
    tasks: "Tasks"
    criteria: Criteria
    models: Mapping[str | None, str]
    judges: Mapping[str | None, str]
    misfits: list[str] = field(default_factory=list)
    harness_scores: list[HarnessScores] = field(default_factory=list)
    n_unreadable: int = 0
    n_without_response: int = 0
    n_other_weights: int = 0
    may_hide_failures: bool = False

    @cached_property
    def grading(self) -> str:
        """The grading of the log: ternary if any decision is 0.5."""
        for logged in self.log.responses:
            for judgement in logged.judgements:
                if any(decision.value == VALUES["partial"] for decision in judgement.decisions):
                    return TERNARY
        return BINARY

    def add_rows(self) -> None:
        """Add the rows of the log."""
        for logged in self.log.responses:
            try:
                task_id, text = self.tasks.match(logged)
            except NotInDataSet as error:
                self.misfits.append(str(error))
            else:
                response = self._add_response(logged, task_id, text)
                self._add_judgements(logged, response)

    def _add_response(self, logged: LoggedResponse, task_id: str, text: str | None) -> StoredRow:
        """Add the response of an entry, and return it as the log has it, stored or not."""
        row = response_columns(
            self.job,
            task_id,
            self.tasks.conversations[task_id].conversation_id,
            model=self.models[logged.model],
            trial=logged.trial or 1,
            vintage=self.job.vintage,
        )
        row |= _known_columns(logged.usage, row)
        row |= _content_of(logged, text)
        self.rows_by_kind["responses"].put(logged.where, row)
        return row

    def _add_judgements(self, logged: LoggedResponse, response: StoredRow) -> None:
        """Add the verdicts on a response, and the scores to compare."""
        graded = []
        for judgement in logged.judgements:
            scores = self._add_verdicts(logged.where, judgement, response)
            if scores is not None:
                graded.append(scores)
        if not graded:
            # Scores that name no criterion are not about a rubric.
            if logged.judgements and response["text"] is not None:
                self.n_unreadable += 1
        elif logged.combined_scores:
            judges = tuple(scores.judges[0] for scores in graded)
            n_other_weights = max(scores.n_other_weights for scores in graded)
            self.harness_scores.append(
                HarnessScores(response, judges, logged.combined_scores, n_other_weights)
            )
        else:
            self.harness_scores += graded

    def _add_verdicts(
        self, where: str, judgement: Judgement, response: StoredRow
    ) -> HarnessScores | None:
        """Add the verdicts of a judgement and return its scores; None if it names no criterion."""
        decisions = judgement.decisions
        matches, misfits = match_all(self.criteria, where, response["task_id"], decisions)
        if not matches and not misfits:
            return None
        self.misfits += map(str, misfits)
        judge = self.judges[judgement.judge]
        n_other_weights = 0
        for decision, wording in matches:
            if decision.weight not in {None, wording.weight}:
                n_other_weights += 1
            if response["text"] is None:
                self.n_without_response += 1
            else:
                self._add_verdict(where, judge, judgement, response, decision, wording)
        self.n_other_weights += n_other_weights
        judges = ((judge, judgement.judge_trial),)
        return HarnessScores(response, judges, judgement.own_scores, n_other_weights)

    def _add_verdict(
        self,
        where: str,
        judge: str,
        judgement: Judgement,
        response: StoredRow,
        decision: Decision,
        wording: Wording,
    ) -> None:
        row = verdict_columns(
            self.job, response, wording, judge, judgement.judge_trial, self.grading
        )
        row["may_hide_failures"] = judgement.may_hide_failures
        # What the log states for the decision itself counts, also on hidden failures.
        row |= _known_columns(decision.usage, row)
        row["value"] = decision.value
        row["explanation"] = decision.explanation
        if decision.value is None:
            row["status"] = decision.status
            row["error"] = _one_line(decision.error)
        else:
            row["status"] = STATUSES[decision.value]
        row_to_store = self.rows_by_kind["verdicts"].put(where, row)
        if row_to_store["may_hide_failures"]:
            self.may_hide_failures = True

    def write(self) -> list[StageReport]:
        """Write the new rows; return a report of their numbers, and one for each note."""
        report = store_batch(self.job, list(self.rows_by_kind.values()))
        report.notes[0] += f", from {self.log.title}"
        for kind, rows in self.rows_by_kind.items():
            failures = Counter(row["status"] for row in filter(rows.is_failure, rows.new.values()))
            if failures:
                counts = ", ".join(f"{n} {status}" for status, n in sorted(failures.items()))
                report.notes.append(f"failed {kind}: {counts}")
        notes = (*self._notes(), *self._comparison())
        return [report, *(StageReport("import", notes=[note]) for note in notes)]

    def _notes(self) -> Iterator[str]:
        if self.may_hide_failures:
            yield (
                f"{self.log.title} may store a failed judge call as a decision, so its verdicts are"
                " marked"
            )
        counts = {
            "decisions left out, because a failure of the call is stored and the tool may hide"
            " failures": self.rows_by_kind["verdicts"].n_left_out,
            "grades of failed responses left out": self.n_without_response,
            "weights in the log differ from those of this revision": self.n_other_weights,
            "responses have scores but no criteria that can be read": self.n_unreadable,
        }
        yield from count_notes(counts)
        yield from self.remarks()

    def remarks(self) -> Iterator[str]:
        """Yield the notes of the log, and one on entries that do not fit the data set."""
        yield from self.log.notes
        if self.misfits:
            yield f"{len(self.misfits)} rows skipped: {list_text(self.misfits, 3, '; ')}"

    def _comparison(self) -> Iterator[str]:
        """Yield a line for each model, judge and score: the mean in the log and here."""
        scores_here = self._scores_here()
        # A line names the judge if scores of several are compared, unless the harness combined
        # them.
        has_several_judges = len({scores.judges for scores in self.harness_scores}) > 1
        scores_by_heading = defaultdict(list)
        for scores in self.harness_scores:
            heading = scores.response["model"]
            if has_several_judges and len(scores.judges) == 1:
                judge, judge_trial = scores.judges[0]
                heading += f" by {judge}"
                if judge_trial > 1:
                    heading += f", judged {judge_trial}"  # the number of the repetition
            scores_by_heading[heading].append(scores)
        for heading, scores_of_line in scores_by_heading.items():
            for score in load_benchmark(self.job.benchmark).scores:
                pairs = [
                    _score_pair(scores, score.score_name, scores_here) for scores in scores_of_line
                ]
                if any(pair.in_log is not None for pair in pairs):
                    outcome = _outcome(pairs, is_clipped=score.clips_mean)
                    yield f"{heading}: mean {score.score_name} {outcome}"

    def _scores_here(self) -> ScoresHere:
        response_ids = {scores.response["response_id"] for scores in self.harness_scores}
        with Warehouse(self.job.warehouse).reader() as reader:
            rows = reader.select(
                "scores",
                judge_config_hash=IMPORTED,
                grading=self.grading,
                response_id=sorted(response_ids),
            )
        key = itemgetter("response_id", "score_name", "judge", "judge_trial")
        return {key(row): row["value"] for row in rows}


class ScorePair(NamedTuple):
    """The scores of a response in the log and here; `difference` is a text if they differ."""

    task_id: str
    in_log: float | None
    here: float | None
    difference: str = ""


def _score_pair(
    harness_scores: HarnessScores, score_name: str, scores_here: ScoresHere
) -> ScorePair:
    """Return the scores of a response in the log and here, with the likely reason if they differ.

    The score here is the mean over the judges, and None if one of them has none.
    """
    response = harness_scores.response
    in_log = harness_scores.scores.get(score_name)
    # Of `scores_here`: each judge is a label and a judge trial.
    keys = [(response["response_id"], score_name, *judge) for judge in harness_scores.judges]
    values = [scores_here.get(key) for key in keys]
    decided = [value for value in values if value is not None]
    here = fmean(decided) if len(decided) == len(keys) else None
    pair = ScorePair(response["task_id"], in_log, here)
    is_same = in_log == here
    if in_log is not None and here is not None:
        is_same = abs(in_log - here) <= 1e-9
    if is_same:
        return pair
    reason = ""
    if response["text"] is None:
        reason = ": the response failed"
    elif any(key not in scores_here for key in keys):
        reason = ": the checks have not admitted the task here"
    elif here is None:
        reason = ": not all criteria are decided here"
    elif in_log == 0 and here < 0:
        reason = ": clipped for each response there"
    elif harness_scores.n_other_weights:
        reason = f": {harness_scores.n_other_weights} other weights"
    scores = f"{_number(in_log)} and {_number(here)}"
    return pair._replace(difference=f"{pair.task_id} trial {response['trial']} ({scores}{reason})")


def _outcome(pairs: Sequence[ScorePair], *, is_clipped: bool) -> str:
    task_means_here = _task_means((pair.task_id, pair.here) for pair in pairs)
    mean_here = fmean(task_means_here) if task_means_here else None
    outcome = f"equal on {counted(len(task_means_here), 'task')}"
    differences = [pair.difference for pair in pairs if pair.difference]
    if differences:
        # As on the leaderboard. If all scores are equal, the mean here is that in the log.
        if is_clipped and mean_here is not None:
            mean_here = max(mean_here, 0.0)
        outcome = f"differs on {list_text(differences, 5)}"
    mean_in_log = fmean(_task_means((pair.task_id, pair.in_log) for pair in pairs))
    return f"{_number(mean_in_log)} in the log, {_number(mean_here)} here: {outcome}"


def _task_means(scores: Iterable[tuple[str, float | None]]) -> list[float]:
    """Return the mean score of each task over its responses with a score."""
    scores_by_task = defaultdict(list)
    for task_id, score in scores:
        if score is not None:
            scores_by_task[task_id].append(score)
    return list(map(fmean, scores_by_task.values()))


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

    def match(self, logged: LoggedResponse) -> tuple[str, str | None]:
        """Return the id of the task that a response belongs to, and the text of the response.

        The task is the one with the id in the log, if its conversation is that of the log; without
        a known id, the only one with this conversation.

        Raises:
            NotInDataSet: the task does not exist, or has another conversation than the log, or
                several have this conversation.
        """
        task_id = logged.task_id
        text = logged.text
        if task_id not in self.conversations:
            return self._only_task_for(logged), text
        has_other_conversation = False
        if logged.transcript is not None:
            text = text_after(self.conversations[task_id].messages, logged.transcript)
            has_other_conversation = text is None
        elif logged.messages is not None:
            has_other_conversation = task_id not in self._with_conversation_of(logged)
        if has_other_conversation:
            raise NotInDataSet(
                f"{logged.where}: task {task_id} has another conversation in this data set than in"
                " the log"
            )
        return task_id, text

    def _only_task_for(self, logged: LoggedResponse) -> str:
        """Return the only task with the conversation of a response whose id is not known."""
        tasks = self._with_conversation_of(logged)
        if len(tasks) == 1:
            return tasks[0]
        problem = "a task with this conversation is not in"
        if logged.task_id:
            problem = f"task {logged.task_id!r} is not in"
        elif tasks:
            problem = f"{len(tasks)} tasks with this conversation, none named by the log, are in"
        raise NotInDataSet(f"{logged.where}: {problem} revision {self._revision[:12]}")

    def _with_conversation_of(self, logged: LoggedResponse) -> list[str]:
        """Return the tasks with the conversation of a response; none if the log lacks it."""
        if logged.messages is None:
            return []
        # Harnesses may put a system prompt before the conversation.
        conversation = tuple(dropwhile(lambda message: message[0] == "system", logged.messages))
        return self._by_conversation.get(conversation_id(conversation), [])


def text_after(messages: Sequence[Message], transcript: str) -> str | None:
    """Return the text after a conversation in a transcript of `role: content` turns.

    None if the transcript does not begin with the conversation.
    """
    turns = [f"{role}: {content}\n" for role, content in messages]
    beginning = "".join(turns) + "assistant: "
    # An empty response may have been stripped, with the space before it.
    if transcript == beginning.rstrip():
        return ""
    return transcript.removeprefix(beginning) if transcript.startswith(beginning) else None


def match_all(
    criteria: Criteria, where: str, task_id: str, decisions: Sequence[Decision]
) -> tuple[list[tuple[Decision, Wording]], list[NotInDataSet]]:
    """Return decisions with their criteria, and for each other decision the reason why its
    criterion is not found.

    Criteria with equal texts are distinguished by their order, or by weight.
    """
    matches = []
    misfits = []
    seen = Counter[str | None]()
    for decision in decisions:
        # A set, so that a decision counts once if its criterion is given by the text.
        seen.update({decision.criterion, decision.text} - {None})
        try:
            wording = _wording(criteria, where, task_id, decision, decisions, seen)
        except NotInDataSet as error:
            if not decision.is_guess:
                misfits.append(error)
        else:
            matches.append((decision, wording))
    return matches, misfits


def _wording(
    criteria: Criteria,
    where: str,
    task_id: str,
    decision: Decision,
    decisions: Sequence[Decision],
    seen: Mapping[str | None, int],
) -> Wording:
    """Return the criterion of a decision; `seen` counts the decisions so far with each name.

    A name is the id or the text of a criterion. A decision without any is on the criterion in its
    position, if the log has as many decisions as the rubric has criteria.
    """
    names = list(filter(None, (decision.criterion, decision.text)))
    if not names:
        if decision.position is None:
            raise NotInDataSet(f"{where}: a decision names no criterion")
        rubric = criteria.originals.get(task_id, [])
        if len(rubric) != len(decisions):
            raise NotInDataSet(
                f"{where}: the log has {len(decisions)} grades, and the rubric {len(rubric)}"
                " criteria"
            )
        return rubric[decision.position]
    # The id, if the data set has it, else the text.
    name = next((name for name in names if criteria.find(task_id, name)), names[0])
    wordings = criteria.find(task_id, name)
    if len(wordings) > 1 and decision.is_reordered:
        wordings = [_by_weight(where, decision, decisions, wordings)]
    elif len(wordings) > 1:
        # The next one with this text; none if the log has more of them than the rubric.
        wordings = wordings[seen[name] - 1 : seen[name]]
    if not wordings:
        raise NotInDataSet(f"{where}: task {task_id} has no criterion {name[:80]!r}")
    wording = wordings[0]
    if decision.text is not None and criterion_hash(decision.text) != wording.content_hash:
        raise NotInDataSet(
            f"{where}: criterion {name!r} of task {task_id} has other words in this data set"
        )
    return wording


def _by_weight(
    where: str, decision: Decision, decisions: Sequence[Decision], wordings: Sequence[Wording]
) -> Wording:
    """Return the criterion, of several with one text, that has the weight of a decision.

    If several have this weight too, they are matched in order; any order gives the same verdicts,
    because decisions on them that are not equal are refused.
    """
    twin_wordings = [wording for wording in wordings if wording.weight == decision.weight]
    twins = [
        twin
        for twin in decisions
        if twin.criterion == decision.criterion and twin.weight == decision.weight
    ]
    if len(twins) != len(twin_wordings) or len({twin.value for twin in twins}) > 1:
        raise NotInDataSet(
            f"{where}: task {wordings[0].task_id} has the criterion {wordings[0].title[:80]!r}"
            " several times, and the log does not say which decision is on which"
        )
    # By identity, because twins may be equal.
    position = next(number for number, twin in enumerate(twins) if twin is decision)
    return twin_wordings[position]


def labels_by_name(
    path: Path, names: Set[str | None], label: str | None, kind: str
) -> Mapping[str | None, str]:
    """Return a label for each model or judge of a log; `kind` says which of the two.

    `{model}` or `{judge}` in the given `label` stands for its name; without one, the name is the
    label.

    Raises:
        UsageError: a label is blank, a model has neither name nor label, or several would get one
            label.
    """
    option = {"model": "--as", "judge": "--by"}[kind]
    placeholder = f"{{{kind}}}"
    pattern = placeholder if label is None else label
    has_placeholder = placeholder in pattern
    # Not for judges without a given label: one without a name is then called `imported`.
    needs_names = has_placeholder and (label is not None or kind == "model")
    if is_blank(pattern):
        raise UsageError(f"{option}: the label is blank; give another one")
    if needs_names and any(map(is_blank, names)):
        raise UsageError(
            f"{path}: names no {kind}; give its label with {option} LABEL, without {placeholder} in"
            " it"
        )
    if not has_placeholder and len(names) > 1:
        all_names = ", ".join(sorted(map(str, names)))
        raise UsageError(
            f"{option} {label}: {path} has {all_names}; write {placeholder} where its name belongs"
        )
    return {name: pattern.replace(placeholder, name or "") or IMPORTED for name in names}


def _known_columns(usage: Mapping[str, Any], row: StoredRow) -> StoredRow:
    """Return the known values of a call, for the columns that a row has."""
    return {name: value for name, value in usage.items() if value is not None and name in row}


def _content_of(logged: LoggedResponse, text: str | None) -> StoredRow:
    """Return the columns with the text of a response, or with its failure."""
    status = logged.status
    error = logged.error
    stripped_text = (text or "").strip()
    if stripped_text in logged.failure_texts:
        status = logged.failure_texts[stripped_text]
        error = f"the harness stored {stripped_text!r}"
    elif status is None and text is not None and shows_nothing(text):
        status = EMPTY
    stored_text = text if status is None else None
    # The status counts only without a text.
    return content_columns(stored_text, status or PROVIDER_ERROR, _one_line(error))


def _one_line(error: str | None) -> str | None:
    return one_line(error) if error else None
