"""The missing work of a run: what it wants minus what is stored, which decides which calls are
made.

Tasks that no comparison of a model needs are left out (`tasks/stopping`).
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from itertools import chain, product
from typing import Any, NamedTuple

from tasks.benchmarks import load_benchmark
from tasks.benchmarks.base import Benchmark
from tasks.config.job import Job
from tasks.config.models import ORIGINAL, Endpoint, Model
from tasks.rules.conversation import Message
from tasks.rules.ends import end_message
from tasks.rules.errors import PipelineError, UsageError
from tasks.rules.identity import IMPORTED
from tasks.run.judge_configs import JudgeConfig, judge_configs, model_hash
from tasks.stopping import NO_COMPARISONS, JobComparisons, comparisons_of
from warehouse import DECIDED_STATUSES, Reader, Row, Warehouse, advice_if_writable

TEMPORARY_FAILURES = ("timeout", "provider_error", "parse_error", "empty")
"""The statuses of failures with a temporary cause: the next run tries them again."""
SETTLED = "unreadable in two runs; --retry-failed asks again"
"""The end of the error of a verdict that is settled as a failure: the criterion's entry in the
reply on its group could not be read in two runs. Later runs try again only with the option.
"""


class WantedTasks(NamedTuple):
    """The part of a data set that a job is about: `task_ids` are the wanted tasks, in order.

    `comparisons` decide how many of them are wanted of each model.
    """

    benchmark: Benchmark
    dataset_revision: str
    splits: tuple[str, ...]
    task_ids: tuple[str, ...]
    comparisons: JobComparisons

    def of_model(self, label: str) -> list[str]:
        """Return the wanted tasks of a model, in order."""
        left_out = self.comparisons.left_out.get(label, ())
        return [task_id for task_id in self.task_ids if task_id not in left_out]

    @property
    def key(self) -> dict[str, str]:
        """The columns that every row about these tasks carries."""
        return {"benchmark": self.benchmark.name, "dataset_revision": self.dataset_revision}


def wanted_tasks(job: Job, reader: Reader) -> WantedTasks:
    """Return the admitted tasks of the chosen splits; with a limit, only so many, drawn from the
    splits in turn.

    Raises:
        PipelineError: the data set is not ingested.
        UsageError: a named task is not among them.
    """
    benchmark = load_benchmark(job.benchmark)
    data = job.data
    missing = missing_splits(job, reader)
    if missing:
        advice = advice_if_writable(job.warehouse, "run `prbench ingest` first")
        raise PipelineError(
            f"{data.name}: split {missing[0]!r} of revision {data.revision[:12]} is not in the"
            f" warehouse; {advice}"
        )
    task_ids = tuple(_task_ids(job, reader))
    comparisons = _comparisons(job, benchmark, task_ids, reader)
    return WantedTasks(benchmark, data.revision, data.splits, task_ids, comparisons)


def _task_ids(job: Job, reader: Reader) -> list[str]:
    """Return the wanted tasks in order; a task in several splits keeps its place in the first."""
    parameters = {**job.key, "splits": list(job.data.splits)}
    members = reader.query("queries/run/tasks_of_splits", parameters)
    if job.named_tasks is not None:
        admitted_tasks = {row["task_id"] for row in members}
        unknown = set(job.named_tasks) - admitted_tasks
        if unknown:
            raise UsageError(
                f"--task {min(unknown)}: not an admitted task of the chosen splits; see the table"
                " `tasks`"
            )
        members = [row for row in members if row["task_id"] in job.named_tasks]
    task_ids = list(dict.fromkeys(row["task_id"] for row in members))
    if job.limit is None:
        return task_ids
    tasks_by_split = defaultdict(list)
    for row in members:
        tasks_by_split[row["split"]].append(row["task_id"])
    drawn = drawn_in_turn(tasks_by_split.values(), job.limit)
    return [task_id for task_id in task_ids if task_id in drawn]


def _comparisons(
    job: Job,
    benchmark: Benchmark,
    task_ids: Sequence[str],
    reader: Reader,
) -> JobComparisons:
    """Return the comparisons of a job under its first judge."""
    judges = judge_configs(job, benchmark)
    stopping = job.settings.stopping
    if stopping is None or not judges or not task_ids:
        return NO_COMPARISONS
    models = job.compared_models or job.settings.models
    return comparisons_of(
        job,
        reader,
        stopping=stopping,
        task_ids=task_ids,
        judge=judges[0].columns,
        score_name=benchmark.primary_score.score_name,
        config_hashes={model.label: model_hash(model) for model in models},
    )


def stored_comparisons(job: Job) -> JobComparisons:
    """Return the comparisons of a job with their stored progress."""
    with Warehouse(job.warehouse).reader() as reader:
        return wanted_tasks(job, reader).comparisons


def drawn_in_turn(splits: Iterable[Sequence[str]], limit: int) -> set[str]:
    """Return at most `limit` tasks, drawn from the splits in turn: each time the first one that is
    not drawn yet.
    """
    drawn = set[str]()
    queues = [deque(tasks) for tasks in splits]
    while any(queues) and len(drawn) < limit:
        for queue in queues:
            while queue and queue[0] in drawn:
                queue.popleft()
            if queue and len(drawn) < limit:
                drawn.add(queue.popleft())
    return drawn


def missing_splits(job: Job, reader: Reader) -> list[str]:
    """Return the chosen splits that are not ingested."""
    rows = reader.select("split_members", "distinct split", **job.key)
    stored_splits = {row["split"] for row in rows}
    return [split for split in job.data.splits if split not in stored_splits]


Cell = tuple[str, int]
"""(task id, trial)"""


def missing_responses(job: Job, job_tasks: WantedTasks, reader: Reader, model: Model) -> list[Cell]:
    """Return the cells of a model that have no response, or a failed one that is to be tried again.

    Cells without a response come first, then the failed ones, the earliest failure first, so that
    what fails in every run does not delay the others. An imported response of the same label,
    trial and vintage fills its cell. A model that is only imported has no missing cells.
    """
    if model.is_imported:
        return []
    parameters = {
        **job_tasks.key,
        **_retry_parameters(job, model),
        "model": model.label,
        "vintage": job.vintage_of(model),
        "model_config_hash": model_hash(model),
    }
    filled_cells = set()
    failed_at = {}
    for row in reader.query("queries/run/tried_cells", parameters):
        cell = (row["task_id"], row["trial"])
        if row["is_filled"]:
            filled_cells.add(cell)
        else:
            failed_at[cell] = row["failed_at_s"]
    cells = [
        (task_id, trial)
        for trial, task_id in product(sorted(job.trials), job_tasks.of_model(model.label))
        if (task_id, trial) not in filled_cells
    ]
    return sorted(cells, key=lambda cell: failed_at.get(cell, 0.0))


class MissingVerdicts(NamedTuple):
    """A response that lacks verdicts under a judge configuration: `n_criteria` is the number of
    these, `n_calls` that of the calls for them.
    """

    response_id: str
    model: str
    task_id: str
    n_criteria: int
    n_calls: int


def missing_verdicts(
    job: Job,
    job_tasks: WantedTasks,
    reader: Reader,
    judge_config: JudgeConfig,
) -> list[MissingVerdicts]:
    """Return the responses that lack verdicts under a judge configuration.

    Responses that were not judged yet come first, then those with failed verdicts, the earliest
    failure first. Among the first, responses to one task follow each other, so that the common part
    of their prompts is in the provider's cache; equal ones are neighbours, since they are judged by
    the same calls.

    Imported responses are judged too if their model is configured or named, or if no model is.
    """
    models = job.settings.models
    configured = []
    for model in models:
        for config_hash in (model_hash(model), IMPORTED):
            configured.append(responses_key(job.vintage_of(model), config_hash, model.label))
    left_out = []
    for label, task_ids in job_tasks.comparisons.left_out.items():
        left_out += [[label, task_id] for task_id in sorted(task_ids)]
    parameters = {
        **job_tasks.key,
        **undecided_parameters(job, judge_config),
        "tasks": list(job_tasks.task_ids),
        "trials": list(job.trials),
        "vintage": job.vintage,
        "is_any_import": job.named_models is None and not models,
        "imported": list(job.named_models or ()),
        "configured": configured,
        "left_out": left_out,
    }
    rows = reader.query("queries/run/responses_missing_verdicts", parameters)
    return [MissingVerdicts(**row) for row in rows]


def undecided_parameters(job: Job, judge_config: JudgeConfig) -> dict[str, Any]:
    """Return the query parameters that define which criteria are undecided under a judge
    configuration.
    """
    judge = judge_config.judge
    return {
        **judge_config.columns,
        **_retry_parameters(job, *judge.members),
        "rubric": judge.rubric,
        "piece_size": judge_config.piece_size,
        "settled": SETTLED,
    }


def accepted_ends(*endpoints: Endpoint) -> list[str]:
    """Return texts in lower case: a failed row whose error contains one of them ended in a way that
    `ends_ok` of these models accepts now, so it is made again.
    """
    words = chain.from_iterable(endpoint.ends_ok for endpoint in endpoints)
    return [end_message(word).lower() for word in words]


def _retry_parameters(job: Job, *endpoints: Endpoint) -> dict[str, Any]:
    """Return the query parameters that define which failed rows of some models are missing work."""
    return {
        "temporary_failures": list(TEMPORARY_FAILURES),
        "retry_failed": job.retry_failed,
        "accepted": accepted_ends(*endpoints),
    }


def is_repeated(job: Job, row: Row, accepted: Sequence[str]) -> bool:
    """Return whether a stored row that a call made is to be made again: the rule of the query
    `done`.

    `accepted` are the texts of `accepted_ends`.
    """
    if row["status"] in DECIDED_STATUSES:
        return False
    error = row["error"] or ""
    if job.retry_failed or any(text in error.lower() for text in accepted):
        return True
    return row["status"] in TEMPORARY_FAILURES and not error.endswith(SETTLED)


def wanted_rubrics(job: Job) -> list[str]:
    """Return the rubric variants that the job's judges need, beside the rubric itself."""
    return sorted({judge.rubric for judge in job.settings.judges} - {ORIGINAL})


class CriterionToRewrite(NamedTuple):
    """A criterion without a wording in a rubric variant."""

    task_id: str
    criterion_id: str
    criterion_hash: str
    criterion_text: str


def criteria_to_rewrite(
    job: Job,
    job_tasks: WantedTasks,
    reader: Reader,
    rubric: str,
) -> list[CriterionToRewrite]:
    """Return the criteria of the wanted tasks without a wording in a rubric variant, in the
    rubric's order.
    """
    writer = job.settings.rubric_writer
    writers = [writer] if writer else []
    parameters = {
        **job_tasks.key,
        **_retry_parameters(job, *writers),
        "rubric": rubric,
        "tasks": list(job_tasks.task_ids),
    }
    rows = reader.query("queries/run/missing_variants", parameters)
    return [CriterionToRewrite(**row) for row in rows]


def responses_key(vintage: str, config_hash: str, label: str) -> str:
    """Return the text by which queries find a model's responses: these columns, joined by
    spaces.
    """
    return f"{vintage} {config_hash} {label}"


def imported_models(job: Job, job_tasks: WantedTasks, reader: Reader) -> list[str]:
    """Return the labels of imported responses that belong to the job without being configured.

    They are the labels that the job names, or all if it neither names nor configures a model.
    """
    if job.named_models is None and job.settings.models:
        return []
    rows = reader.select(
        "responses",
        "distinct model",
        **job_tasks.key,
        vintage=job.vintage,
        source=IMPORTED,
    )
    named_labels = job.named_models
    return [row["model"] for row in rows if named_labels is None or row["model"] in named_labels]


def response_texts(reader: Reader, response_ids: Iterable[str]) -> dict[str, str]:
    """Return the texts of responses, by their ids."""
    rows = reader.select("responses", "response_id, text", response_id=list(response_ids))
    return {row["response_id"]: row["text"] for row in rows}


class Conversation(NamedTuple):
    """A task's conversation: its identity and its messages in order."""

    conversation_id: str
    messages: tuple[Message, ...]


def conversations_of(
    reader: Reader,
    job_tasks: WantedTasks,
    task_ids: Iterable[str],
) -> dict[str, Conversation]:
    """Return the conversations of some tasks, by task id; tasks that are not assembled are left
    out.
    """
    parameters = {**job_tasks.key, "tasks": sorted(set(task_ids))}
    rows = reader.query("queries/run/conversations", parameters)
    return {
        row["task_id"]: Conversation(row["conversation_id"], tuple(row["messages"])) for row in rows
    }


def assembled_conversations(
    reader: Reader,
    job_tasks: WantedTasks,
    task_ids: Iterable[str],
) -> dict[str, Conversation]:
    """Return the conversations of some tasks, by task id.

    Raises:
        PipelineError: one of them is not assembled.
    """
    wanted_ids = set(task_ids)
    conversations = conversations_of(reader, job_tasks, wanted_ids)
    if len(conversations) < len(wanted_ids):
        raise PipelineError(
            "the conversations are not assembled; run `prbench assemble` first, it makes no call"
        )
    return conversations


def removal_times(reader: Reader) -> dict[str, float]:
    """Return the time (wall clock) at which each removed response was removed, by its id."""
    removals = reader.rows("from removals")
    return {row["response_id"]: row["created_at"].timestamp() for row in removals}


def messages_to(model: Model, conversation: Conversation) -> tuple[Message, ...]:
    """Return the messages to a model: the conversation, with the model's system prompt in front if
    it has one.
    """
    if model.system_prompt is None:
        return conversation.messages
    return (("system", model.system_prompt), *conversation.messages)
