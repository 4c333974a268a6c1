"""Plan: the calls that a run would make, and what they would use and cost. It makes none.

Tokens a call are those measured on stored rows of the same configuration; without any, prompts are counted with
LiteLLM's local tokenizers, and lengths of answers are assumed, which gives a range of costs. What is not known stays
None, and the plan says why.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple

import sql
from tasks.analyses.annotate import ANNOTATION
from tasks.analyses.phrases import EMBEDDINGS, NAMES, PHRASES
from tasks.analyses.review import REVIEW
from tasks.assemble import assemble
from tasks.benchmarks.base import Benchmark
from tasks.check import check
from tasks.config.job import Job
from tasks.config.models import ORIGINAL, Analyst, Model
from tasks.ingest import ingest
from tasks.judge.context_fit import context_fit_of
from tasks.llm.request import Target, most_answer_tokens, prices_of
from tasks.plan import estimate
from tasks.plan.estimate import Planned
from tasks.prompts import FOLDER, load_template
from tasks.rules.cascades.rules import reasons_to_escalate
from tasks.rules.conversation import missing_placeholders
from tasks.rules.errors import PipelineError
from tasks.rules.variants import AUGMENTED
from tasks.run import missing_work
from tasks.run.asking import Analysis, Item
from tasks.run.judgings import CascadeJudgings, Judging, hash_of_template, judge_target, judgings, target_of
from tasks.run.missing_work import Conversation, MissingVerdicts, WantedTasks
from tasks.run.writing import StageReport
from warehouse import Reader, Warehouse

Cells = Sequence[tuple[str, str, int]]
"""Model, task, and how many calls are missing there."""
_JUDGE_CALLS = f"({sql.read('queries/plan/judge_calls')})"
"""The calls that decided on a criterion, and those that searched the chunks of a long answer."""
ANALYSES = (ANNOTATION, REVIEW, PHRASES, EMBEDDINGS, NAMES)
"""What analysts can be asked."""
UNKNOWN_BEFORE = {
    EMBEDDINGS.table: "vectors of phrases that are not written yet; one call for each different phrase",
    NAMES.table: "names of nodes of a tree that is not made yet; one call for each node, some of them up to three",
}
"""Table -> the calls that follow from calls which are not made yet."""


class Asked(NamedTuple):
    """A judging that is asked for another one's verdicts: how often a criterion, and what that rests on, in words.

    `again` counts, by response, the missing criteria of which it is known how often they are asked: `times_again`.
    """

    judging: Judging
    times: float = 1.0
    note: str = ""
    again: Mapping[str, int] = MappingProxyType({})
    times_again: int = 0

    def calls(self, n_criteria: Mapping[str, int], n_prompts: Mapping[str, int], to_come: int) -> int:
        """Return the number of calls.

        Args:
            n_criteria: missing criteria by response.
            n_prompts: calls for each of them.
            to_come: criteria of responses that are still to come.
        """
        known = {each: self.again.get(each, 0) for each in n_criteria}
        new = sum((n - known[each]) * n_prompts[each] for each, n in n_criteria.items())
        return round((new + to_come) * self.times) + self.times_again * sum(
            n * n_prompts[each] for each, n in known.items()
        )


def plan(job: Job) -> list[Planned]:
    """Return the calls that `run` would make, by model and judge.

    Raises:
        PipelineError: the data set is not ingested, or its conversations are not assembled.
    """
    return [planned for planned, _ in plan_with_cells(job)]


def plan_with_cells(job: Job) -> list[tuple[Planned, Cells]]:
    """Return the same, each with its missing cells, if it is of a model or of a judge on one."""
    with Warehouse(job.warehouse).reader() as reader:
        wanted = missing_work.wanted_tasks(job, reader)
        conversations = missing_work.conversations_of(reader, wanted, wanted.task_ids)
        if len(conversations) < len(wanted.task_ids):
            raise PipelineError("the conversations are not assembled; run `prbench assemble` first, it makes no call")
        rows: list[tuple[Planned, Cells]] = []
        to_come: dict[str, list[str]] = {label: [] for label in missing_work.imported_models(job, wanted, reader)}
        for model in job.settings.models:
            cells = missing_work.missing_responses(job, wanted, reader, model, retry_failed=False)
            to_come[model.label] = [task_id for task_id, _ in cells]
            if not model.is_imported:
                planned = _samples(reader, model, cells, conversations)
                rows.append((planned, [(model.label, task_id, 1) for task_id, _ in cells]))
        writer = job.settings.rubric_writer
        if writer is not None and AUGMENTED in missing_work.wanted_rubrics(job):
            target = target_of(writer)
            n_missing = len(missing_work.unworded_criteria(wanted, reader, AUGMENTED))
            identity = {"model": writer.label, "model_config_hash": target.config_hash}
            measured = estimate.measured_per_call(reader, "criterion_variants", **identity)
            rows.append((estimate.planned_calls("derive", writer.label, n_missing, measured, prices_of(target)), ()))
        judges = [
            _verdicts(wanted, reader, asked, missing, conversations, label, tasks)
            for judging in judgings(job, wanted.benchmark)
            for missing in [missing_work.missing_verdicts(job, wanted, reader, judging, retry_failed=False)]
            for asked in asked_for(reader, wanted, judging, missing)
            for label, tasks in to_come.items()
        ]
        control = [
            (_control(job, wanted, reader, judging, asked), ())
            for judging in judgings(job, wanted.benchmark)
            if job.night is not None and job.settings.drift.verdicts and judging.judge_trial == 1
            for asked in asked_for(reader, wanted, judging)
        ]
    return rows + _by_judge_and_model(judges) + control


def _by_judge_and_model(planned: Sequence[tuple[Planned, Cells]]) -> list[tuple[Planned, Cells]]:
    """Return one row for all trials of a judge."""
    rows: dict[tuple[str, ...], list[tuple[Planned, Cells]]] = {}
    for each, cells in planned:
        rows.setdefault((each.label, each.asked_for, each.model), []).append((each, cells))
    found: list[tuple[Planned, Cells]] = []
    for of_row in rows.values():
        trials = [each for each, _ in of_row]
        # What is said of a judge's calls is that of a trial that has some.
        row = estimate.summed(max(trials, key=lambda trial: trial.calls), trials)
        found.append((row, [cell for _, cells in of_row for cell in cells]))
    return found


def plan_analyses(job: Job) -> list[Planned]:
    """Return the calls of the configured analyses; each has its own command and is not made by `run`.

    Raises:
        PipelineError: the data set is not ingested, or its conversations are not assembled.
    """
    with Warehouse(job.warehouse).reader() as reader:
        missing = {analysis: analysis.missing(job, reader) for analysis in ANALYSES}
        has_phrases = not any(missing[PHRASES].values())
        return [
            _asked(reader, analysis, analyst, items, "" if has_phrases else UNKNOWN_BEFORE.get(analysis.table, ""))
            for analysis, by_analyst in missing.items()
            for analyst, items in zip(analysis.analysts(job), by_analyst.values(), strict=True)
        ]


def _asked(reader: Reader, analysis: Analysis, analyst: Analyst, items: Sequence[Item], note: str) -> Planned:
    """Return the calls of an analyst about items."""
    target, by = target_of(analyst), analysis.by
    prices = prices_of(target, of_batch=analyst.mode == "batch")
    identity = {by: analyst.label, f"{by}_config_hash": target.config_hash}
    prompts = [item.prompt for item in items[:: max(1, len(items) // estimate.COUNTED_PROMPTS)]]
    per_call = estimate.counted_per_call(
        estimate.measured_per_call(reader, analysis.table, **identity), target, prompts
    )
    planned = estimate.planned_calls(analysis.stage, analyst.label, len(items), per_call, prices, _most_answer(target))
    return replace(planned, note=planned.note or note)


def _samples(
    reader: Reader, model: Model, cells: Sequence[tuple[str, int]], conversations: Mapping[str, Conversation]
) -> Planned:
    target = target_of(model)
    measured = estimate.measured_per_call(reader, "responses", model=model.label, model_config_hash=target.config_hash)
    texts = [
        "\n".join(text for _, text in missing_work.messages_to(model, conversations[task_id])) for task_id, _ in cells
    ]
    per_call = estimate.counted_per_call(measured, target, texts)
    return estimate.planned_calls("sample", model.label, len(cells), per_call, prices_of(target), _most_answer(target))


def _verdicts(
    wanted: WantedTasks, reader: Reader, asked: Asked, missing: Sequence[MissingVerdicts],
    conversations: Mapping[str, Conversation], model: str, to_come: Sequence[str],
) -> tuple[Planned, Cells]:  # fmt: skip
    """Return the calls of a judging on the responses of a model.

    `to_come` are the tasks of responses that are not sampled yet.
    """
    missing = [each for each in missing if each.model == model]
    judging = asked.judging
    sizes = {row["task_id"]: row["n_criteria"] for row in reader.select("tasks", "task_id, n_criteria", **wanted.key)}
    to_come_calls = sum(sizes[task_id] for task_id in to_come)
    target = judge_target(judging.judge)
    prices = prices_of(target, of_batch=judging.judge.mode == "batch")
    per_call = estimate.measured_per_call(reader, _JUDGE_CALLS, **_identity(judging))
    fit = context_fit_of(judging, target)
    n_prompts, prompts = {each.response_id: 1 for each in missing}, list[str]()
    has_texts = fit is not None or per_call.prompt is None
    columns = f"response_id, task_id{', text' if has_texts else ''}"
    rows = reader.select("responses", columns, order="response_id", response_id=[each.response_id for each in missing])
    answers = {row["response_id"]: row for row in rows}
    for each in missing if has_texts else ():
        answer = answers[each.response_id]
        conversation, text = conversations[answer["task_id"]], answer["text"]
        # One prompt for each criterion, or one for each part of the answer and the last.
        around = _prompt_around(judging, conversation)
        chunks = [] if fit is None else fit.usual_chunks(conversation.messages, text)
        of_answer = [around + chunk for chunk in chunks] + [around] if len(chunks) > 1 else [around + text]
        n_prompts[each.response_id] = len(of_answer)
        prompts += of_answer
    per_call = estimate.counted_per_call(per_call, target, prompts)
    if per_call.prompt is None and to_come:
        without_text = [_prompt_around(judging, conversations[task_id]) for task_id in to_come]
        per_call = replace(per_call, base_prompt=estimate.counted_per_prompt(target, without_text))
    n_calls = asked.calls({each.response_id: each.n_criteria for each in missing}, n_prompts, to_come_calls)
    planned = estimate.planned_calls("judge", judging.judge.label, n_calls, per_call, prices, _most_answer(target))
    unknown = []
    # An answer that is too long for a judge takes a call for each part, and one.
    if fit is not None and planned.calls and fit.prompt_tokens is None:
        unknown.append("the size of its context (`context_tokens`); responses that are too long for it need more calls")
    elif fit is not None and planned.calls and to_come_calls:
        unknown.append("whether responses are too long for it, which need more calls")
    rubric = judging.judge.rubric
    unworded = 0 if rubric == ORIGINAL else len(missing_work.unworded_criteria(wanted, reader, rubric))
    unknown += [f"verdicts on {unworded} criteria that are not rewritten yet"] if unworded else []
    before = judged_before(reader, wanted, judging) if planned.calls else ""
    note = "; ".join([*filter(None, [planned.note]), *unknown])
    cells = [(model, answers[each.response_id]["task_id"], each.n_criteria) for each in missing]
    cells += [(model, task_id, sizes[task_id]) for task_id in to_come]
    return replace(planned, note=note, judged_before=before, asked_for=asked.note, model=model), cells


def _prompt_around(judging: Judging, conversation: Conversation) -> str:
    """Return the parts of a judge's prompt beside the response."""
    return judging.template + "\n".join(text for _, text in conversation.messages)


def _most_answer(target: Target) -> int | None:
    """Return the most tokens of a response, if the model or its configuration limits them."""
    return most_answer_tokens(target, target.parameters)


def _identity(judging: Judging) -> dict[str, Any]:
    """Return the columns that identify the rows of a judging, over all its repetitions."""
    return {name: judging.columns[name] for name in ("judge", "judge_config_hash", "template_hash")}


def _control(job: Job, wanted: WantedTasks, reader: Reader, judging: Judging, asked: Asked) -> Planned:
    """Return the calls for the control set in a night; a set that is still to be chosen has its configured size."""
    key = {**wanted.key, **judging.columns}
    (members,) = reader.select("control_set", "count(*) as n", **key)
    (done,) = reader.select("control_verdicts", "count(value) as n", judge_vintage=job.night, **key)
    calls = round(max(0, (members["n"] or job.settings.drift.verdicts) - done["n"]) * asked.times)
    judge = asked.judging.judge
    measured = estimate.measured_per_call(reader, _JUDGE_CALLS, **_identity(asked.judging))
    planned = estimate.planned_calls("drift", judge.label, calls, measured, prices_of(judge_target(judge)))
    return replace(planned, asked_for=asked.note)


def asked_for(
    reader: Reader, wanted: WantedTasks, judging: Judging, missing: Sequence[MissingVerdicts] = ()
) -> list[Asked]:
    """Return the judges to call for a judging's verdicts: the judge itself, or both judges of a cascade.

    A missing verdict that is stored as a failure of the second judge takes one call of that judge; the first judge's
    replies are in the ledger. Of the others, the share that goes to the second judge is that of the cascade's stored
    verdicts; without any, what its rule says of the first judge's stored verdicts; without those, all is assumed.
    """
    cascade = judging.cascade
    if cascade is None:
        return [Asked(judging)]
    share, basis = _share(reader, wanted, judging, cascade)
    label = judging.judge.label
    given = {
        **judging.columns, "rubric": judging.judge.rubric, "again": list(missing_work.PASSING),
        "responses": [each.response_id for each in missing],
    }  # fmt: skip
    rows = reader.rows(sql.read("queries/plan/failed_second"), given) if missing else []
    again = {row["response_id"]: row["n_criteria"] for row in rows}
    note = f"second judge of {label}, {share:.0%} of the criteria: {basis}"
    if n_again := sum(again.values()):
        note += f"; and {n_again} that it failed on before"
    return [
        Asked(cascade.first[0], len(cascade.first), f"first judge of {label}", again),
        Asked(cascade.then, share, note, again, 1),
    ]


def _share(reader: Reader, wanted: WantedTasks, judging: Judging, cascade: CascadeJudgings) -> tuple[float, str]:
    """Return the share of criteria that are escalated, and its source."""
    counts = "count(*) as n_verdicts, count(escalated_because) as n_escalated"
    (stored,) = reader.select("verdicts", counts, **wanted.key, **_identity(judging))
    if stored["n_verdicts"]:
        return stored["n_escalated"] / stored["n_verdicts"], "as in its stored verdicts"
    first = cascade.first[0]
    given = {
        **wanted.key, "judge_config_hash": first.judge_config_hash, "template_hash": first.template_hash,
        "n_repetitions": len(cascade.first),
    }  # fmt: skip
    rows = reader.rows(sql.read("queries/plan/first_verdicts"), given)
    if rows:
        names = ("first_values", "weight", "category", "confidence")
        escalated = [bool(reasons_to_escalate(cascade.when, *(row[name] for name in names))) for row in rows]
        return sum(escalated) / len(rows), f"as its rule says of stored verdicts of {first.judge.label}"
    return 1.0, "assumed, since nothing is stored that would say how many"


def judged_before(reader: Reader, wanted: WantedTasks, judging: Judging) -> str:
    """Return a line on the verdicts that a judging makes again because they have another template.

    It is empty if there are none.
    """
    found = reader.rows(sql.read("queries/plan/decided_before"), {**wanted.key, **judging.columns})
    if not found:
        return ""
    name = _names(wanted.benchmark).get(found[0]["template_hash"])
    which = f"template {name} (`template: {name}` goes on with it)" if name else "another template"
    return f"{found[0]['n_verdicts']} verdicts were made with {which}; they are kept together with the new ones"


def former_template_notices(job: Job) -> list[str]:
    """Return a line for each judge whose verdicts are made again because its template has changed."""
    with Warehouse(job.warehouse).reader() as reader:
        wanted = missing_work.wanted_tasks(job, reader)
        of_first_trials = [each for each in judgings(job, wanted.benchmark) if each.judge_trial == 1]
        lines = [(judging.judge.label, judged_before(reader, wanted, judging)) for judging in of_first_trials]
    return [f"{label}: {line}" for label, line in lines if line]


def _names(benchmark: Benchmark) -> dict[str, str]:
    """Return the names of the shipped judge templates, by their identities."""
    found = {}
    for path in sorted(FOLDER.glob("*.txt")):
        if not missing_placeholders(path.read_text(encoding="utf-8")):
            text = load_template(path.stem, path.stem)
            found[hash_of_template(text, benchmark)] = path.stem
    return found


def is_prepared(job: Job) -> bool:
    """Return whether the job's tasks are ingested and their conversations assembled."""
    warehouse = Warehouse(job.warehouse)
    if not warehouse.database.exists():
        return False
    with warehouse.reader() as reader:
        if missing_work.missing_splits(job, reader):
            return False
        wanted = missing_work.wanted_tasks(job, reader)
        return len(missing_work.conversations_of(reader, wanted, wanted.task_ids)) == len(wanted.task_ids)


def prepare(job: Job) -> list[StageReport]:
    """Ingest and check the data set, and assemble its conversations; what is there already stays as it is."""
    report = ingest(job)
    report.adopt(check(job, ("ingest",), reuse=True))
    return [report, assemble(job)]
