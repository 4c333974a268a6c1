"""Plan: the calls that a run would make, and what they would use and cost. It makes none.

Tokens a call are those measured on stored rows of the same configuration; without any, prompts are counted with
LiteLLM's local tokenizers. What is not known stays None, and the plan says why.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tasks.calls import judge_target, target_of
from tasks.conversations import Conversation, conversations_of
from tasks.llm.prices import batch_prices_of, cost_usd, count_tokens, prices_of
from tasks.llm.targets import Prices, Target
from tasks.rules.errors import PipelineError
from tasks.scope import Judging, Scope, judgings, missing_responses, missing_verdicts, open_scope
from tasks.settings import Job
from warehouse import Reader, Warehouse

MEASURED, COUNTED, UNKNOWN = "measured", "counted", "unknown"
_COUNTED_PROMPTS = 40
"""So many prompts are counted where none was measured; tokenizing all of a night's would take longer than is useful."""


@dataclass(frozen=True)
class Planned:
    """The calls of one model or judge: tokens in all, USD, what they rest on, and what is missing to know them."""

    role: str
    label: str
    calls: int
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    basis: str = UNKNOWN
    note: str = ""


@dataclass(frozen=True)
class _PerCall:
    """Tokens of a mean call."""

    prompt: float | None = None
    cached: float | None = None
    completion: float | None = None
    basis: str = UNKNOWN


def plan(job: Job) -> list[Planned]:
    """What `run` would call, by model and judge.

    Raises:
        PipelineError: the data set is not ingested, or its conversations are not assembled.
    """
    with Warehouse(job.warehouse).reader() as reader:
        scope = open_scope(job, reader)
        conversations = conversations_of(reader, scope, scope.task_ids)
        if len(conversations) < len(scope.task_ids):
            raise PipelineError("the conversations are not assembled; run `prbench assemble` first, it makes no call")
        cells = {
            model.label: missing_responses(job, scope, reader, model, target_of(model).config_hash, retry_failed=False)
            for model in job.settings.models
        }
        models = [_samples(job, reader, label, of_model, conversations) for label, of_model in cells.items()]
        to_come = [task_id for of_model in cells.values() for task_id, _ in of_model]
        judges = [
            _verdicts(job, scope, reader, judging, conversations, to_come) for judging in judgings(job, scope.benchmark)
        ]
        control = [
            _control(job, scope, reader, judging)
            for judging in judgings(job, scope.benchmark)
            if job.night is not None and job.settings.drift.verdicts and judging.judge_trial == 1
        ]
    return models + judges + control


def in_all(planned: Sequence[Planned]) -> Planned:
    """The sum; None where a part is not known."""
    return Planned(
        "all", "", sum(each.calls for each in planned), _sum([each.prompt_tokens for each in planned]),
        _sum([each.completion_tokens for each in planned]), _sum([each.cost_usd for each in planned]), basis="",
    )  # fmt: skip


def _samples(
    job: Job, reader: Reader, label: str, cells: Sequence[tuple[str, int]], conversations: Mapping[str, Conversation]
) -> Planned:
    model = next(model for model in job.settings.models if model.label == label)
    target = target_of(model)
    per_call = _measured(reader, "responses", "model = ? and model_config_hash = ?", [label, target.config_hash])
    if per_call.prompt is None and cells:
        texts = ["\n".join(text for _, text in conversations[task_id].messages) for task_id, _ in cells]
        per_call = replace(per_call, prompt=_counted(target, texts), basis=COUNTED)
    return _planned("sample", label, len(cells), per_call, prices_of(target))


def _verdicts(
    job: Job, scope: Scope, reader: Reader, judging: Judging, conversations: Mapping[str, Conversation],
    to_come: Sequence[str],
) -> Planned:  # fmt: skip
    owed = missing_verdicts(job, scope, reader, judging, retry_failed=False)
    n_criteria = _n_criteria(reader, scope)
    calls = sum(each.n_criteria for each in owed) + sum(n_criteria[task_id] for task_id in to_come)
    target = judge_target(judging.judge)
    prices = batch_prices_of(target) if judging.judge.mode == "batch" else prices_of(target)
    condition = "judge = ? and judge_config_hash = ? and template_hash = ?"
    identity = [judging.judge.label, judging.judge_config_hash, judging.template_hash]
    per_call = _measured(reader, "verdicts", condition, identity)
    if per_call.prompt is None and calls:
        answers = _texts_of(reader, [each.response_id for each in owed])
        texts = [
            judging.template + "\n".join(text for _, text in conversations[task_id].messages) + answer
            for task_id, answer in answers
        ]
        if texts:
            per_call = replace(per_call, prompt=_counted(target, texts), basis=COUNTED)
    return _planned("judge", judging.judge.label, calls, per_call, prices)


def _control(job: Job, scope: Scope, reader: Reader, judging: Judging) -> Planned:
    """The control set that a judge is asked again in a night; one still to be chosen has its configured size."""
    key = {**scope.key, **judging.columns}
    where = " and ".join(f"{column} = ?" for column in key)
    n_members = reader.value(f"select count(*) from control_set where {where}", list(key.values()))
    n_done = reader.value(
        f"select count(*) from control_verdicts where {where} and judge_vintage = ? and value is not null",
        [*key.values(), job.night],
    )
    calls = max(0, (n_members or job.settings.drift.verdicts) - n_done)
    identity = [judging.judge.label, judging.judge_config_hash, judging.template_hash]
    measured = _measured(reader, "verdicts", "judge = ? and judge_config_hash = ? and template_hash = ?", identity)
    return _planned("drift", judging.judge.label, calls, measured, prices_of(judge_target(judging.judge)))


def _measured(reader: Reader, table: str, condition: str, identity: list[Any]) -> _PerCall:
    """Mean tokens of the stored calls of a configuration; rows that another row's call answered do not count."""
    row = reader.rows(
        f"select avg(prompt_tokens) as prompt, avg(cached_tokens) as cached, avg(completion_tokens) as completion "
        f"from {table} where {condition} and prompt_tokens > 0",
        identity,
    )[0]
    return _PerCall(**row, basis=MEASURED) if row["prompt"] is not None else _PerCall()


def _counted(target: Target, texts: Sequence[str]) -> float:
    """Mean tokens of some prompts, those counted spread evenly over all."""
    chosen = texts[:: max(1, len(texts) // _COUNTED_PROMPTS)]
    return sum(count_tokens(target, text) for text in chosen) / len(chosen)


def _planned(role: str, label: str, calls: int, per_call: _PerCall, prices: Prices) -> Planned:
    if calls == 0:
        return Planned(role, label, 0, 0, 0, 0.0, MEASURED)
    missing = []
    if per_call.prompt is None:
        missing.append("no answer to judge is there yet")
    if per_call.completion is None:
        missing.append("no answer of it was measured yet")
    if prices.input_usd_per_mtok is None:
        missing.append("its price is not known")
    prompt, completion = _times(calls, per_call.prompt), _times(calls, per_call.completion)
    cost = cost_usd(prices, prompt, _times(calls, per_call.cached), completion)
    return Planned(role, label, calls, prompt, completion, cost, per_call.basis, "; ".join(missing))


def _n_criteria(reader: Reader, scope: Scope) -> dict[str, int]:
    rows = reader.rows(
        "select task_id, n_criteria from tasks where benchmark = ? and dataset_revision = ?", [*scope.key.values()]
    )
    return {row["task_id"]: row["n_criteria"] for row in rows}


def _texts_of(reader: Reader, response_ids: Sequence[str]) -> list[tuple[str, str]]:
    rows = reader.rows("select task_id, text from responses where list_contains(?, response_id)", [list(response_ids)])
    return [(row["task_id"], row["text"]) for row in rows]


def _times(calls: int, mean: float | None) -> int | None:
    return None if mean is None else round(calls * mean)


def _sum(values: Sequence[Any]) -> Any:
    return None if any(value is None for value in values) else sum(values)
