"""Plan: the calls that a run would make, with their tokens and cost, without making any.

The tokens of a call are those measured on stored rows of the same configuration; without any,
prompts are counted with LiteLLM's local tokenizers, and lengths of responses are assumed, which
gives a range of costs. Unknown values are None, and the plan gives the reason.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from types import MappingProxyType
from typing import Any, NamedTuple

import sql
from tasks.analyses.annotate import ANNOTATION
from tasks.analyses.phrases import EMBEDDINGS, NAMES, PHRASES
from tasks.analyses.review import REVIEW
from tasks.assemble import assemble, turns_to_assemble
from tasks.config.job import Job
from tasks.config.models import ORIGINAL, Analyst, Endpoint
from tasks.ingest import ingest_and_check
from tasks.judge import neighbours
from tasks.judge.context_fit import context_fit_of
from tasks.llm.request import Target, most_reply_tokens, prices_of, requested_reply_tokens
from tasks.plan import estimate
from tasks.plan.estimate import PerCall, Planned
from tasks.prompts import FOLDER
from tasks.rules.cascades.rules import When, reasons_to_escalate
from tasks.rules.variants import AUGMENTED
from tasks.run import missing_work
from tasks.run.calls import Analysis, Item
from tasks.run.judge_configs import (
    JudgeConfig,
    hash_of_template,
    judge_configs,
    judge_target,
    target_of,
)
from tasks.run.missing_work import Conversation, MissingVerdicts, WantedTasks
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse

Cells = Sequence[tuple[str, str, int]]
"""Model, task, and number of missing calls."""
_JUDGE_CALLS = f"({sql.read('queries/plan/judge_calls')})"
"""The calls that decided a criterion, and those that searched the chunks of a long response."""
ANALYSES = (ANNOTATION, REVIEW, PHRASES, EMBEDDINGS, NAMES)
"""The analyses that call models."""
UNKNOWN_BEFORE = {
    EMBEDDINGS.table: (
        "vectors of phrases that are not written yet; one call for each different phrase"
    ),
    NAMES.table: (
        "names of nodes of a tree that is not made yet; one call for each node, some of them up to"
        " three"
    ),
}
"""Table -> the calls that depend on the results of other calls."""


class JudgeCalls(NamedTuple):
    """A judge that is called for verdicts: the number of calls per criterion (`times`), and the
    reason as text.

    `again` counts, by response, the missing criteria that are known to need `times_again` calls.
    """

    judge_config: JudgeConfig
    times: float = 1.0
    note: str = ""
    again: Mapping[str, int] = MappingProxyType({})
    times_again: int = 0

    def calls(
        self, n_criteria: Mapping[str, int], n_prompts: Mapping[str, int], to_come: int
    ) -> int:
        """Return the number of calls.

        Args:
            n_criteria: missing criteria by response (pieces, for a judge of groups).
            n_prompts: calls for each of these, by response.
            to_come: the same number for responses that are not sampled yet.
        """
        repeated = sum(self.again.get(each, 0) * n_prompts[each] for each in n_criteria)
        total = sum(n * n_prompts[each] for each, n in n_criteria.items())
        return round((total - repeated + to_come) * self.times) + self.times_again * repeated


def plan(job: Job) -> list[Planned]:
    """Return the calls that `run` would make, by model and judge; the job has to be prepared
    (`prepare`).

    Raises:
        PipelineError: the data set is not ingested.
    """
    return [planned for planned, _ in plan_with_cells(job)]


def plan_with_cells(job: Job) -> list[tuple[Planned, Cells]]:
    """Return the rows of `plan`, each with its missing cells; only rows of a model, or of a judge
    on one, have any.
    """
    with Warehouse(job.warehouse).reader() as reader:
        wanted = missing_work.wanted_tasks(job, reader)
        conversations = missing_work.conversations_of(reader, wanted, wanted.task_ids)
        rows: list[tuple[Planned, Cells]] = []
        to_come: dict[str, list[str]] = {
            label: [] for label in missing_work.imported_models(job, wanted, reader)
        }
        for model in job.settings.models:
            cells = missing_work.missing_responses(job, wanted, reader, model)
            to_come[model.label] = [task_id for task_id, _ in cells]
            if not model.is_imported:
                messages = (
                    missing_work.messages_to(model, conversations[task_id]) for task_id, _ in cells
                )
                texts = ["\n".join(text for _, text in each) for each in messages]
                planned = _calls(reader, "sample", model, len(cells), "responses", prompts=texts)
                rows.append((planned, [(model.label, task_id, 1) for task_id, _ in cells]))
        writer = job.settings.rubric_writer
        if writer is not None and AUGMENTED in missing_work.wanted_rubrics(job):
            n_missing = len(missing_work.unworded_criteria(job, wanted, reader, AUGMENTED))
            rows.append((_calls(reader, "derive", writer, n_missing, "criterion_variants"), ()))
        judges = [
            _verdicts(job, wanted, reader, called, missing, conversations, label, tasks)
            for judge_config in judge_configs(job, wanted.benchmark)
            for missing in [missing_work.missing_verdicts(job, wanted, reader, judge_config)]
            for called in judges_to_call(reader, wanted, judge_config, missing)
            for label, tasks in to_come.items()
        ]
        control = [
            (_control(job, wanted, reader, judge_config, called), ())
            for judge_config in judge_configs(job, wanted.benchmark)
            if job.night is not None
            and job.settings.drift.verdicts
            and judge_config.judge_trial == 1
            for called in judges_to_call(reader, wanted, judge_config)
        ]
    return rows + _by_judge_and_model(judges) + control


def _by_judge_and_model(planned: Sequence[tuple[Planned, Cells]]) -> list[tuple[Planned, Cells]]:
    """Return the rows with all trials of a judge on a model combined into one row."""
    by_judge: dict[tuple[str, ...], list[tuple[Planned, Cells]]] = {}
    for each, cells in planned:
        by_judge.setdefault((each.label, each.cascade, each.model), []).append((each, cells))
    rows: list[tuple[Planned, Cells]] = []
    for of_row in by_judge.values():
        trials, cells_of_trials = zip(*of_row, strict=True)
        # The notes are those of the trial with the most calls.
        row = estimate.summed(max(trials, key=lambda trial: trial.calls), trials)
        rows.append((row, list(chain.from_iterable(cells_of_trials))))
    return rows


def plan_analyses(job: Job) -> list[Planned]:
    """Return the calls of the configured analyses; each has its own command and is not made by
    `run`.

    Raises:
        PipelineError: the data set is not ingested.
    """
    with Warehouse(job.warehouse).reader() as reader:
        missing = {analysis: analysis.missing(job, reader) for analysis in ANALYSES}
        unknown = UNKNOWN_BEFORE if any(missing[PHRASES].values()) else {}
        return [
            _analysis_calls(reader, analysis, analyst, items, unknown.get(analysis.table, ""))
            for analysis, by_analyst in missing.items()
            for analyst, items in zip(analysis.analysts(job), by_analyst.values(), strict=True)
        ]


def plan_neighbours(job: Job) -> list[Planned]:
    """Return the calls that `prbench neighbours` makes at most, by judge and arrangement; those of
    a run are free.
    """
    with Warehouse(job.warehouse).reader() as reader:
        note = "the calls that a run has made already, which are free"
        return [
            replace(
                _of_judge(
                    reader, each.judge_config, neighbours.STAGE, each.n_calls, each.arrangement
                ),
                note=note,
            )
            for each in neighbours.missing(job, reader)
        ]


def _of_judge(
    reader: Reader, judge_config: JudgeConfig, stage: str, n_calls: int, *beside: str
) -> Planned:
    """Return some calls of a judge, with the lengths of its stored ones; `beside` follows its
    label.
    """
    measured = estimate.measured_per_call(reader, _JUDGE_CALLS, **_identity(judge_config))
    label = ", ".join((judge_config.judge.label, *beside))
    return estimate.planned_calls(
        stage, label, n_calls, measured, prices_of(judge_target(judge_config.judge))
    )


def _analysis_calls(
    reader: Reader, analysis: Analysis, analyst: Analyst, items: Sequence[Item], note: str
) -> Planned:
    """Return the calls of an analyst for some items."""
    prompts = [item.prompt() for item in items[:: max(1, len(items) // estimate.COUNTED_PROMPTS)]]
    planned = _calls(
        reader, analysis.stage, analyst, len(items), analysis.table, analysis.by, prompts
    )
    return replace(planned, note=planned.note or note)


def _calls(
    reader: Reader,
    stage: str,
    caller: Endpoint,
    n_calls: int,
    table: str,
    by: str = "model",
    prompts: Sequence[str] = (),
) -> Planned:
    """Return some calls of a model, with the lengths of those in a table, whose column `by` names
    the model.
    """
    target = target_of(caller)
    identity = {by: caller.label, f"{by}_config_hash": target.config_hash}
    per_call = estimate.counted_per_call(
        estimate.measured_per_call(reader, table, **identity), target, prompts
    )
    prices = prices_of(target, of_batch=isinstance(caller, Analyst) and caller.mode == "batch")
    return estimate.planned_calls(
        stage, caller.label, n_calls, per_call, prices, _most_reply(target)
    )


def _verdicts(
    job: Job,
    wanted: WantedTasks,
    reader: Reader,
    called: JudgeCalls,
    missing: Sequence[MissingVerdicts],
    conversations: Mapping[str, Conversation],
    model: str,
    to_come: Sequence[str],
) -> tuple[Planned, Cells]:
    """Return the calls of a judge on the responses of a model.

    `to_come` are the tasks of responses that are not sampled yet.
    """
    missing = [each for each in missing if each.model == model]
    judge_config = called.judge_config
    sizes = {
        row["task_id"]: row["n_criteria"]
        for row in reader.select("tasks", "task_id, n_criteria", **wanted.key)
    }
    piece_size = judge_config.piece_size or 1
    to_come_calls = sum(-(-sizes[task_id] // piece_size) for task_id in to_come)
    target = judge_target(judge_config.judge)
    prices = prices_of(target, of_batch=judge_config.judge.mode == "batch")
    per_call = estimate.measured_per_call(reader, _JUDGE_CALLS, **_identity(judge_config))
    fit = context_fit_of(judge_config, target)
    counts = {
        each.response_id: each.n_criteria if piece_size == 1 else each.n_calls for each in missing
    }
    n_prompts = {each.response_id: 1 for each in missing}
    to_count = missing if fit is not None or per_call.prompt is None else []
    prompts = list[str]()
    rows = reader.select(
        "responses", "response_id, text", response_id=[each.response_id for each in to_count]
    )
    texts = {row["response_id"]: row["text"] for row in rows}
    rubrics = _listed_criteria(wanted, reader, judge_config, {each.task_id for each in to_count})
    for each in to_count:
        conversation = conversations[each.task_id]
        text = texts[each.response_id]
        # One prompt for each criterion, or one for each chunk of the response and a last one.
        around = _prompt_around(judge_config, conversation) + rubrics.get(each.task_id, "")
        if (
            fit is not None and piece_size > 1 and not fit.holds(around + text)
        ):  # then judged one by one
            counts[each.response_id] = each.n_criteria
            around = _prompt_around(judge_config, conversation)
        chunks = [] if fit is None else fit.usual_chunks(conversation.messages, text)
        of_response = (
            [around + chunk for chunk in chunks] + [around] if len(chunks) > 1 else [around + text]
        )
        n_prompts[each.response_id] = len(of_response)
        prompts += of_response
    per_call = estimate.counted_per_call(per_call, target, prompts)
    if per_call.prompt is None and to_come:
        without_text = [_prompt_around(judge_config, conversations[task_id]) for task_id in to_come]
        per_call = replace(per_call, base_prompt=estimate.counted_per_prompt(target, without_text))
    n_calls = called.calls(counts, n_prompts, to_come_calls)
    n_in_call = sum(each.n_criteria for each in missing) + sum(
        sizes[task_id] for task_id in to_come
    )
    per_call = replace(
        per_call, n_in_call=max(1.0, n_in_call / max(1, n_calls)) if piece_size > 1 else 1.0
    )
    most = _most_reply(target, per_call)
    planned = estimate.planned_calls(
        "judge", judge_config.judge.label, n_calls, per_call, prices, most
    )
    unknown = []
    # A response that is too long for a judge needs a call for each chunk, and a last one.
    if fit is not None and planned.calls and (fit.prompt_tokens is None or to_come_calls):
        unknown.append(
            "whether responses are too long for it (`context_tokens`), which need more calls"
        )
    rubric = judge_config.judge.rubric
    unworded = (
        0
        if rubric == ORIGINAL
        else len(missing_work.unworded_criteria(job, wanted, reader, rubric))
    )
    unknown += [f"verdicts on {unworded} criteria that are not rewritten yet"] if unworded else []
    before = judged_before(reader, wanted, judge_config) if planned.calls else ""
    note = "; ".join([*filter(None, [planned.note]), *unknown])
    cells = [(model, each.task_id, each.n_criteria) for each in missing]
    cells += [(model, task_id, sizes[task_id]) for task_id in to_come]
    return (
        replace(
            planned,
            note=note,
            judged_before=before,
            cascade=called.note,
            model=model,
        ),
        cells,
    )


def _listed_criteria(
    wanted: WantedTasks, reader: Reader, judge_config: JudgeConfig, task_ids: Collection[str]
) -> dict[str, str]:
    """Return, by task, about the text of the criteria in one call of a judge of groups; empty for
    other judges.
    """
    if judge_config.piece_size is None or not task_ids:
        return {}
    titles: dict[str, list[str]] = {}
    for row in reader.select("criteria", "task_id, title", **wanted.key, task_id=sorted(task_ids)):
        titles.setdefault(row["task_id"], []).append(row["title"])
    return {
        task_id: "\n".join(texts[: judge_config.piece_size]) for task_id, texts in titles.items()
    }


def _prompt_around(judge_config: JudgeConfig, conversation: Conversation) -> str:
    """Return the parts of a judge's prompt other than the response."""
    return judge_config.template + "\n".join(text for _, text in conversation.messages)


def _most_reply(target: Target, per_call: PerCall | None = None) -> int | None:
    """Return the most tokens of a reply if they are limited; a configured limit is for each
    criterion.
    """
    n = 0 if per_call is None else math.ceil(per_call.n_in_call)
    most = most_reply_tokens(target, {**target.parameters, "questions": range(n)})
    return most * n if n and most and requested_reply_tokens(target.parameters) else most


def _identity(judge_config: JudgeConfig) -> dict[str, Any]:
    """Return the columns that identify the rows of a judge, over all its repetitions."""
    return {
        name: judge_config.columns[name] for name in ("judge", "judge_config_hash", "template_hash")
    }


def _control(
    job: Job, wanted: WantedTasks, reader: Reader, judge_config: JudgeConfig, called: JudgeCalls
) -> Planned:
    """Return the calls for the control set in a night; a set that is not chosen yet has its
    configured size.
    """
    given = {
        **wanted.key,
        **judge_config.columns,
        "night": job.night,
    }
    (chosen,) = reader.rows(sql.read("queries/plan/control_calls"), given)
    n_left = chosen["n_calls"]
    if not chosen["n_members"]:
        n_left = math.ceil(job.settings.drift.verdicts / (called.judge_config.piece_size or 1))
    return replace(
        _of_judge(reader, called.judge_config, "drift", round(n_left * called.times)),
        cascade=called.note,
    )


def judges_to_call(
    reader: Reader,
    wanted: WantedTasks,
    judge_config: JudgeConfig,
    missing: Sequence[MissingVerdicts] = (),
) -> list[JudgeCalls]:
    """Return the judges to call for verdicts: the judge itself, or both judges of a cascade.

    A missing verdict that is stored as a failure of the second judge needs one call of that judge;
    the first judge's replies are in the ledger. For the other criteria, the share that goes to the
    second judge is that of the cascade's stored verdicts; without any, the share that its rule
    escalates of the first judge's stored verdicts; else all are assumed to go there.
    """
    cascade = judge_config.cascade
    if cascade is None:
        return [JudgeCalls(judge_config)]
    share, basis = _share(reader, wanted, judge_config, cascade.first, cascade.when)
    label = judge_config.judge.label
    given = {
        **judge_config.columns,
        "rubric": judge_config.judge.rubric,
        "again": list(missing_work.PASSING),
        "responses": [each.response_id for each in missing],
    }
    rows = reader.rows(sql.read("queries/plan/failed_second"), given) if missing else []
    again = {row["response_id"]: row["n_criteria"] for row in rows}
    # If the second judge failed on all missing criteria, a first judge's call for several of them
    # is in the ledger.
    decided = (
        again
        if cascade.first[0].piece_size is None
        else {
            each.response_id: each.n_calls
            for each in missing
            if again.get(each.response_id) == each.n_criteria
        }
    )
    free = "replies that are stored are free"
    note = f"second judge of {label}, {share:.0%} of the criteria: {basis}"
    n_again = sum(again.values())
    if n_again:
        note += f"; and {n_again} that it failed on before"
    return [
        JudgeCalls(
            cascade.first[0], len(cascade.first), f"first judge of {label}, {free}", decided
        ),
        JudgeCalls(cascade.then, share, f"{note}; {free}", again, 1),
    ]


def _share(
    reader: Reader,
    wanted: WantedTasks,
    judge_config: JudgeConfig,
    repetitions: Sequence[JudgeConfig],
    when: When,
) -> tuple[float, str]:
    """Return the share of criteria that are escalated, and its source."""
    counts = "count(*) as n_verdicts, count(escalated_because) as n_escalated"
    (stored,) = reader.select("verdicts", counts, **wanted.key, **_identity(judge_config))
    if stored["n_verdicts"]:
        return stored["n_escalated"] / stored["n_verdicts"], "as in its stored verdicts"
    first = repetitions[0]
    given = {
        **wanted.key,
        "judge_config_hash": first.judge_config_hash,
        "template_hash": first.template_hash,
        "n_repetitions": len(repetitions),
    }
    rows = reader.rows(sql.read("queries/plan/first_verdicts"), given)
    if rows:
        reasons = [
            reasons_to_escalate(when, row["first_values"], row["confidence"], row) for row in rows
        ]
        return (
            sum(map(bool, reasons)) / len(rows),
            f"by its rule on the stored verdicts of {first.judge.label}",
        )
    return 1.0, "assumed, because no stored verdict shows the share"


def judged_before(reader: Reader, wanted: WantedTasks, judge_config: JudgeConfig) -> str:
    """Return a line on verdicts that are repeated because they have another template; empty if
    there are none.
    """
    rows = reader.rows(
        sql.read("queries/plan/decided_before"), {**wanted.key, **judge_config.columns}
    )
    if not rows:
        return ""
    shipped = {path.stem: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.txt")}
    names = {hash_of_template(text, wanted.benchmark): name for name, text in shipped.items()}
    name = names.get(rows[0]["template_hash"])
    which = f"template {name} (`template: {name}` goes on with it)" if name else "another template"
    return (
        f"{rows[0]['n_verdicts']} verdicts were made with {which}; they are kept together with the"
        " new ones"
    )


def is_prepared(job: Job) -> bool:
    """Return whether the job's tasks are ingested and their conversations assembled."""
    warehouse = Warehouse(job.warehouse)
    if not warehouse.database.exists():
        return False
    with warehouse.reader() as reader:
        has_data = not missing_work.missing_splits(job, reader)
        return has_data and not turns_to_assemble(reader, missing_work.wanted_tasks(job, reader))


def prepare(job: Job) -> list[StageReport]:
    """Ingest and check the data set, and assemble its conversations."""
    return [ingest_and_check(job), assemble(job)]
