"""A run's context: the models that it calls, its ledger, limits and budget, and the gateways of its
stages.
"""

import asyncio
import json
import resource
from collections import defaultdict
from collections.abc import AsyncIterator, Collection, Iterator, Sequence
from contextlib import asynccontextmanager, suppress
from datetime import UTC, date
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from tasks.config.job import Job
from tasks.console import notice
from tasks.llm.calls.batches import Batching
from tasks.llm.calls.gateway import Gateway
from tasks.llm.calls.sending import send
from tasks.llm.embedded import weights_path
from tasks.llm.ledger.ledger import Ledger
from tasks.llm.limiter import Budget, Limiter
from tasks.llm.litellm_setup import warm_up
from tasks.llm.providers import missing_variables
from tasks.llm.request import Call, Target, most_reply_tokens, prices_of
from tasks.llm.retirement import retirement_date, retirement_notice
from tasks.llm.senders.cluster import refuse_without_ray
from tasks.llm.senders.pool import SenderPool
from tasks.llm.variables import refuse_unusable_network
from tasks.rules.errors import UsageError
from tasks.rules.text.numbers import counted
from tasks.rules.variants import AUGMENTED
from tasks.run import missing_work
from tasks.run.judge_configs import judge_configs, judge_target, target_of
from tasks.run.unadopted import lines_on_unadopted
from tasks.run.writing import (
    ANALYST_KINDS,
    AT_BUDGET,
    CALLED_KINDS,
    JUDGE,
    MODEL,
    RUBRIC_WRITER,
    STAGES,
    StageReport,
)
from warehouse import Reader, Warehouse, WarehouseError, why_lost, write_atomically


class Callee(NamedTuple):
    """A model that a job may call; `cascade` is the label of the cascade that calls it as a judge,
    if any.
    """

    kind: str
    label: str
    target: Target
    is_batched: bool = False
    cascade: str | None = None

    def __str__(self) -> str:
        return self.kind if self.kind == RUBRIC_WRITER else f"{self.kind} {self.label}"


def callees(
    job: Job,
    kinds: Collection[str] = (*CALLED_KINDS, *ANALYST_KINDS),
) -> Iterator[Callee]:
    """Yield the models of these kinds that a job may call; the rubric writer only if a judge needs
    one.
    """
    return (callee for callee in _all_callees(job) if callee.kind in kinds)


def _all_callees(job: Job) -> Iterator[Callee]:
    for model in job.settings.models:
        if not model.is_imported:
            yield Callee(MODEL, model.label, target_of(model))
    for judge in job.settings.judges:
        cascade = judge.label if judge.cascade else None
        for member in judge.members:
            yield Callee(JUDGE, member.label, judge_target(member), member.mode == "batch", cascade)
    writer = job.settings.rubric_writer
    if writer is not None and AUGMENTED in missing_work.wanted_rubrics(job):
        yield Callee(RUBRIC_WRITER, writer.label, target_of(writer))
    for kind in ANALYST_KINDS:
        for analyst in getattr(job.settings, kind):
            yield Callee(kind, analyst.label, target_of(analyst), analyst.mode == "batch")


def _with_calls(job: Job, candidates: Sequence[Callee], kinds: Collection[str]) -> list[Callee]:
    """Return the candidates with calls to make; before the data set is ingested, all of them."""
    warehouse = Warehouse(job.warehouse)
    if not warehouse.database.exists():
        return list(candidates)
    with warehouse.reader() as reader:
        if missing_work.missing_splits(job, reader):
            return list(candidates)
        labels = _labels_with_calls(job, reader, {callee.kind for callee in candidates})
    if any(labels[kind] for kind in {MODEL, RUBRIC_WRITER}.intersection(kinds)):
        # Every judge judges what these models write.
        labels[JUDGE] = set(job.settings.judge_labels)
    # Analysts are checked only when some of their items are missing, so all of them are kept.
    return [
        callee
        for callee in candidates
        if callee.kind not in labels or (callee.cascade or callee.label) in labels[callee.kind]
    ]


def _labels_with_calls(
    job: Job,
    reader: Reader,
    called_kinds: Collection[str],
) -> dict[str, set[str]]:
    """Return the labels of the models, judges and rubric writers with missing work, by kind."""
    job_tasks = missing_work.wanted_tasks(job, reader)
    labels: dict[str, set[str]] = {MODEL: set(), JUDGE: set(), RUBRIC_WRITER: set()}
    for model in job.settings.models:
        if missing_work.missing_responses(job, job_tasks, reader, model):
            labels[MODEL].add(model.label)
    writer = job.settings.rubric_writer
    for rubric in missing_work.wanted_rubrics(job):
        if writer is not None and missing_work.criteria_to_rewrite(job, job_tasks, reader, rubric):
            labels[RUBRIC_WRITER].add(writer.label)
    if JUDGE in called_kinds:
        for judge_config in judge_configs(job, job_tasks.benchmark):
            if missing_work.missing_verdicts(job, job_tasks, reader, judge_config):
                labels[JUDGE].add(judge_config.judge.label)
    return labels


def sender_states(warehouse: Warehouse) -> list[dict[str, Any]]:
    """Return the senders of all runs in progress: `run_id`, and what `SenderPool.on_look` gets."""
    rows = []
    for run_id in warehouse.living_runs():
        with suppress(FileNotFoundError):  # a run without senders, or one that ends at this instant
            states = json.loads(_states_file(warehouse.root, run_id).read_text(encoding="utf-8"))
            rows += [{"run_id": run_id, **state} for state in states]
    return rows


def _states_file(folder: Path, run_id: str) -> Path:
    return folder / "living" / f"{quote(run_id, safe='')}.senders.json"


LEDGER = "ledger"
"""The folder of the ledger in the warehouse."""
_OTHER_FILES = 128
"""A run has fewer files open than this beside those of its calls."""


def _calls_at_once(concurrency: int) -> int:
    """Return how many calls this process can make at once with the files that it may open; print a
    line if these are fewer than configured.

    The limit was raised as far as possible when the process started (`flows/cli/main.py`).
    """
    n_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    # A call needs one file; half of them are for calls to models, half for calls to judges.
    n_calls = max(1, (n_files - _OTHER_FILES) // 2)
    if n_calls < concurrency:
        needed = _OTHER_FILES + 2 * concurrency
        notice(
            f"at most {counted(n_calls, 'call')} at once instead of {concurrency} (`concurrency`):"
            f" this process may open only {n_files} files; raise that limit (`ulimit -n {needed}`;"
            f" in a systemd unit: LimitNOFILE={needed})"
        )
    return n_calls


class RunContext:
    """The context of a run's calls: its ledger, its limits and budget, and the gateways of its
    stages.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self.budget = Budget(job.settings.limits.max_usd, job.settings.limits.max_tokens)
        self.limiters = self._limiters()
        """By stage."""
        self.warehouse = Warehouse(job.warehouse)
        self._held_back = self._labels_of_lost_rows()
        """The stage and label of models whose rows may be lost; None: all models of the stage."""
        self.ledger = Ledger(job.warehouse / LEDGER, why_lost)
        self.senders: SenderPool | None = None
        """The processes that make the attempts; None if this process makes them."""
        calls = job.settings.calls
        if calls.where == "ray":
            n_senders = None if calls.senders == "auto" else calls.senders
            targets = [callee.target for callee in callees(job)]
            self.senders = SenderPool(calls.address, n_senders, targets, self._write_states)
        self._noticed: set[str] = set()
        self._remarks: dict[str, list[str]] = defaultdict(list)

    def _limiters(self) -> dict[str, Limiter]:
        """Return the limiter of each stage: one for samples, and one for all others."""
        limits = self._job.settings.limits
        rates_by_purpose = {purpose: limits.rates(purpose) for purpose in ("sample", "judge")}
        most_calls = _calls_at_once(
            max(rates.concurrency or 1 for rates in rates_by_purpose.values())
        )
        stop_at = self._job.stop_at
        limiters = {}
        for purpose, rates in rates_by_purpose.items():
            limiters[purpose] = Limiter(
                min(most_calls, rates.concurrency or 1),
                self.budget,
                rates.rpm,
                rates.tpm,
                limits.outage_s,
                stop_at_s=None if stop_at is None else stop_at.timestamp(),
            )
        return {stage: limiters.get(stage, limiters["judge"]) for stage in STAGES}

    def _labels_of_lost_rows(self) -> set[tuple[str, str | None]]:
        """Return the stages and labels of rows that damage destroyed."""
        lost = set[tuple[str, str | None]]()
        for loss in self.warehouse.losses():
            if loss.benchmark not in {None, self._job.benchmark}:
                continue
            for stage_name, stage in STAGES.items():
                if loss.table in stage.tables:
                    column = stage.tables[loss.table]
                    lost.add((stage_name, getattr(loss, column) if column else None))
        return lost

    def gateway(self, stage: str, label: str) -> Gateway:
        """Return the gateway of a stage to the model or judge with a label."""
        limits = self._job.settings.limits
        return Gateway(
            self.limiters[stage],
            self.ledger,
            self._job.run_id,
            attempts=limits.attempts,
            deadline_s=limits.deadline_s,
            purpose=stage,
            sender=self.senders or send,
            reads_only_ledger=self.is_held_back(stage, label),
        )

    def is_held_back(self, stage: str, label: str) -> bool:
        """Return whether a stage's calls to a model are held back (only replies in the ledger
        count): damage may have destroyed their rows, and --replace-lost was not given.
        """
        return bool({(stage, label), (stage, None)} & self._held_back)

    def remark(self, stage: str, line: str) -> None:
        """Keep a line for the report of a stage, which shows equal lines once."""
        self._remarks[stage].append(line)

    def add_notices(self, report: StageReport) -> None:
        """Add to a stage's report what users should know about its calls."""
        limiter = self.limiters[report.stage]
        for endpoint in limiter.endpoints.values():
            if endpoint.stopped:
                report.stopped.append(f"{endpoint.name}: {endpoint.stopped}")
        if self.budget.is_spent:
            report.is_at_budget = True
            report.warnings.append(f"{AT_BUDGET}: {self.budget.line}; finished work is kept")
        held_back = [
            label or "all models" for stage, label in self._held_back if stage == report.stage
        ]
        if held_back and report.skipped:
            report.warnings.append(
                f"{', '.join(sorted(held_back))}: calls not made, because damage"
                " destroyed such rows and their replies are not in the ledger; `prbench run"
                " --replace-lost` makes these calls"
            )
        # Stages share endpoints; only the first one warns of what concerns them all.
        for line in self._lines_on_calls(report.stage):
            if line not in self._noticed:
                report.warnings.append(line)
        self._noticed.update(report.warnings)
        limiter.n_instead_of_batch = 0  # they are reported now
        if limiter.n_too_late and self._job.stop_at is not None:
            report.is_at_stop_time = True
            report.warnings.append(
                f"stopped at {self._job.stop_at.astimezone(UTC):%H:%M} UTC, the stop time; finished"
                " work is kept"
            )

    def _lines_on_calls(self, stage: str) -> list[str]:
        """Return lines on stopped endpoints, the stage's remarks, and live calls in place of
        batches.
        """
        limiter = self.limiters[stage]
        lines = []
        for endpoint in limiter.endpoints.values():
            if endpoint.stopped:
                lines.append(f"{endpoint.name}: stopped for this run: {endpoint.stopped}")
        lines += dict.fromkeys(self._remarks[stage])
        if limiter.n_instead_of_batch:
            lines.append(
                f"{limiter.n_instead_of_batch} calls of `mode: batch` were made live, at the live"
                " price (`allow_live`)"
            )
        return lines

    async def submit_and_collect(
        self,
        target: Target,
        calls: Sequence[Call],
        report: StageReport,
    ) -> None:
        """Submit the calls that are in no batch yet, and collect the batches that have ended, for a
        report's stage.

        The collected replies are then in the ledger. Calls of a batch that is still running when
        the wait ends stay missing until a later run.
        """
        batching = Batching(
            target,
            self.ledger,
            self.limiters[report.stage],
            self._job.run_id,
            report.stage,
        )
        await batching.submit_and_collect(calls, self._job.settings.limits.batch_wait_s)
        report.warnings += batching.notes
        n_failed = sum(not reply.is_final for reply in batching.replies)
        if n_failed:
            follow_up = "the next run submits them again"
            if any(call.allows_live for call in calls):
                follow_up = "live calls follow"
            report.warnings.append(f"{n_failed} calls failed in a batch; {follow_up}")
        if batching.n_submitted:
            report.notes.append(f"{batching.n_submitted} calls submitted as batches")

    def _write_states(self, states: list[dict[str, Any]]) -> None:
        file = _states_file(self._job.warehouse, self._job.run_id)
        with suppress(OSError):  # `prbench status` then does not show the senders
            write_atomically(file, json.dumps(states).encode())

    async def get_ready(self) -> None:
        """Load and start everything that the first calls would wait for."""
        starts = [asyncio.to_thread(warm_up)]
        if self.senders is not None:
            starts.append(self.senders.ready())
        await asyncio.gather(*starts)

    async def close(self) -> None:
        """End the attempts in flight, make everything durable, close the ledger, and end the
        senders.
        """
        await self.ledger.cancel_attempts()
        self.ledger.close()
        if self.senders is not None:
            await self.senders.close()
            _states_file(self._job.warehouse, self._job.run_id).unlink(missing_ok=True)


_open: dict[str, RunContext] = {}
"""The open contexts by run id, for the stages of a run: a Prefect flow cannot get such an object as
a parameter.
"""


@asynccontextmanager
async def open_run_context(
    job: Job,
    kinds: Collection[str] = CALLED_KINDS,
) -> AsyncIterator[RunContext]:
    """Open the context of a run until the block ends; an inner block shares the outer one's.

    `kinds` are the kinds of models that are called in the block.

    Raises:
        UsageError: calls cannot be made, or the cap cannot be enforced (see `refuse_unready`).
        PipelineError: the ledger cannot be written.
    """
    if job.run_id in _open:
        yield _open[job.run_id]
        return
    await asyncio.to_thread(refuse_unready, job, kinds)
    for line in await asyncio.to_thread(lines_on_unadopted, job):
        notice(line)
    # The event loop runs on while the ledger is checked, or while another process uses it.
    context = await asyncio.to_thread(RunContext, job)
    _open[job.run_id] = context
    try:
        yield context
    except Exception:
        # Calls of other models are under way, and paid for: the next run takes their replies from
        # the ledger.
        await context.ledger.wait_for_attempts()
        raise
    finally:
        del _open[job.run_id]
        await context.close()


def refuse_unready(job: Job, kinds: Collection[str] = CALLED_KINDS) -> None:
    """Refuse a job whose calls to models of `kinds` cannot be made, or whose cap cannot be
    enforced.

    Raises:
        UsageError: the key of a model that is to be called, or a variable that its settings refer
            to, is not set; or there is a cap, and the highest cost of a call is not known for a
            model; or LiteLLM cannot ask a model for decisions; or certificates or proxies of the
            environment cannot be used.
    """
    refuse_unusable_network()
    calls = job.settings.calls
    if calls.where == "ray":
        refuse_without_ray()
    callees_of_kinds = list(callees(job, kinds))
    # Senders of a cluster have their keys there, but batches start here.
    without_key = [
        callee
        for callee in callees_of_kinds
        if (calls.are_local or callee.is_batched) and missing_variables(callee.target)
    ]
    # A database that cannot be read yet does not show the missing calls; the run makes it readable,
    # and checks again.
    with suppress(WarehouseError):
        needed = _with_calls(job, without_key, kinds) if without_key else []
        if needed:
            names = ", ".join(missing_variables(needed[0].target))
            raise UsageError(f"{needed[0]}: {names} is not set; export it")
    for callee in callees_of_kinds:
        if callee.target.why_refused:
            raise UsageError(f"{callee}: {callee.target.why_refused}")
    limits = job.settings.limits
    if limits.max_usd is not None or limits.max_tokens is not None:
        problem = next(unbounded(job, kinds, in_usd=limits.max_usd is not None), None)
        if problem is not None:
            raise UsageError(problem)


def unbounded(
    job: Job,
    kinds: Collection[str] = CALLED_KINDS,
    *,
    in_usd: bool = True,
) -> Iterator[str]:
    """Yield the reasons why a cap cannot be enforced: one or two lines on each such model.

    A cap `in_usd` needs prices and limited lengths, one on tokens alone only the latter.
    """
    for callee in callees(job, kinds):
        target = callee.target
        if in_usd and prices_of(target).input_usd_per_mtok is None:
            yield f"{callee}: has no known price, so --max-usd cannot be enforced; set its `price`"
        requests = (target.parameters, target.last_resort or target.parameters)
        if any(most_reply_tokens(target, parameters) is None for parameters in requests):
            yield (
                f"{callee}: the length of its responses is not limited, so no cap can be enforced;"
                " set `max_tokens`"
            )


class Retirement(NamedTuple):
    """The day on which a configured model is switched off, and a line that says what to do."""

    callee: Callee
    retires_on: date
    line: str

    def __str__(self) -> str:
        return f"{self.callee}: {self.line}"


def retirements(job: Job, today: date) -> Iterator[Retirement]:
    """Yield the end of each configured model that was switched off, or will be soon."""
    for callee in callees(job):
        retires_on = retirement_date(callee.target)
        end_line = retirement_notice(callee.target, today)
        if retires_on and end_line:
            advice = _retirement_advice(callee, is_over=retires_on <= today)
            yield Retirement(callee, retires_on, f"{end_line}; {advice}")


def _retirement_advice(callee: Callee, *, is_over: bool) -> str:
    if callee.kind == JUDGE:
        return f"choose its successor: `prbench succeed {callee.label} NEW` shows what changes"
    if is_over:
        return "configure another one (stored results stay)"
    return "make the calls that are still needed before that day, and choose its successor"


def refuse_uninstalled(job: Job) -> None:
    """Refuse an embedded model that is not installed: this project's package does not include it.

    It is needed even if it is not called: its weights are part of the identity of its responses and
    verdicts.

    Raises:
        UsageError: one is configured, and its packages are missing.
    """
    if any(callee.target.is_embedded for callee in callees(job, CALLED_KINDS)):
        weights_path()  # raises if they are missing
