"""Responses of the made-up models and verdicts of the made-up judges, as rows with real ids."""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from tasks.rules.identity import BASE_VINTAGE, IMPORTED, response_id, verdict_id
from tasks.rules.records import Criterion, Task
from tasks.rules.text.characters import count_alphanumeric
from tasks.run.judge_configs import JudgeConfig
from tests.kit import Row, row
from tests.tasks.report.synthetic.attacks import Taint
from tests.tasks.report.synthetic.contenders import (
    CONTENDERS,
    OUTSIDER,
    Contender,
    decides,
    is_met,
    run_of,
    tokens_of,
)
from tests.tasks.report.synthetic.texts import Matter, explanation, response_text

TRIALS = (1, 2)
BASE_RUN = "20260930T200000-base"
IMPORT_RUN = "20260930T230000-import"
LOST_TASKS = {"Finance": (4, 13), "Legal": (30, 41)}
"""Numbers of the tasks with failures; all others are complete for every model."""
CAUSES = {
    "parse_error": "the reply is no JSON object: it begins with 'I think that the answer'",
    "refused": "the provider refused: content policy",
    "truncated": "the reply ends at the limit of 512 tokens",
    "context_length": "the prompt is longer than the context of 32768 tokens",
    "timeout": "no reply within 600 s",
    "provider_error": "HTTP 503: upstream connect error",
}


@dataclass(frozen=True)
class PosedTask:
    """A task with its number and its subject."""

    number: int
    matter: Matter
    task: Task


@dataclass(frozen=True)
class Sampling:
    """A model in one vintage, with the label and configuration under which its rows are stored."""

    contender: Contender
    label: str
    config_hash: str
    vintage: str
    night: str

    @property
    def run_id(self) -> str:
        """The run that sampled it."""
        return run_of(self.night) if self.night else BASE_RUN

    @property
    def at(self) -> datetime:
        """The time of the sampling."""
        day = self.night or "2026-09-30"
        start = datetime.fromisoformat(f"{day}T01:00Z")
        return start if self.night else start + timedelta(hours=19)


def response_rows(
    sampling: Sampling,
    posed_tasks: Sequence[PosedTask],
    revision: str,
    taint: Taint,
) -> Iterator[tuple[PosedTask, Row]]:
    """The responses of a sampling, each with its task; two trials, for the imported model one."""
    is_import = sampling.contender is OUTSIDER
    for posed in posed_tasks:
        for trial in TRIALS[:1] if is_import else TRIALS:
            yield posed, _response(sampling, posed, trial, revision, taint)


def _response(
    sampling: Sampling,
    posed: PosedTask,
    trial: int,
    revision: str,
    taint: Taint,
) -> Row:
    contender = sampling.contender
    task = posed.task
    is_import = sampling.contender is OUTSIDER
    dice = random.Random(
        f"answer {contender.label} {posed.number} {trial} {sampling.night}"
    )
    met = [
        c.title
        for c in task.criteria
        if is_met(contender, posed.number, task.field or "", c, trial, sampling.night)
    ]
    text = taint(response_text(posed.matter, met, contender.style, dice))
    status, error = _fate(contender, posed.number, trial)
    prompt = sum(tokens_of(turn.prompt or "") for turn in task.conversation)
    completion = tokens_of(text)
    prices = contender.usd_per_mtok or (None, None)
    cost = (
        None
        if prices[0] is None
        else (prompt * prices[0] + completion * (prices[1] or 0.0)) / 1e6
    )
    call_columns = (
        {}
        if is_import
        else {
            "prompt_tokens": prompt,
            "cached_tokens": prompt // 3,
            "completion_tokens": completion,
            "cost_usd": cost,
            "reasoning_tokens": 3 * completion if contender.style == 4 else 0,
            "latency_s": 1.5 + completion / 90,
            "input_usd_per_mtok": prices[0],
            "output_usd_per_mtok": prices[1],
            "attempts": 1 + (dice.random() < 0.04),
            "price_table": "configuration" if prices[0] is not None else None,
            "served_model": sampling.label,
            "finish_reason": "length" if status == "truncated" else taint("stop"),
        }
    )
    identity = {
        "benchmark": "prbench",
        "dataset_revision": revision,
        "task_id": task.task_id,
        "conversation_id": task.conversation_id,
        "model": sampling.label,
        "model_config_hash": sampling.config_hash,
        "trial": trial,
        "vintage": sampling.vintage,
    }
    return row(
        "responses",
        response_id=response_id(**identity),
        **identity,
        status=status,
        source="imported" if is_import else "sampled",
        import_batch="batch-of-answers" if is_import else None,
        text=text if status == "ok" else None,
        chars_alnum=count_alphanumeric(text) if status == "ok" else None,
        error=None if error is None else taint(error),
        degraded=dice.random() < 0.01 and not is_import,
        run_id=IMPORT_RUN if is_import else sampling.run_id,
        created_at=sampling.at + timedelta(seconds=40 * posed.number + trial),
        **{"attempts": 0, **call_columns},
    )


def _fate(contender: Contender, number: int, trial: int) -> tuple[str, str | None]:
    """Return the status and error of a response: one is refused, one is truncated."""
    lost = {
        (LOST_TASKS["Legal"][0], 2): "refused",
        (LOST_TASKS["Finance"][0], 1): "truncated",
    }
    status = lost.get((number, trial), "ok") if contender is CONTENDERS[3] else "ok"
    return status, CAUSES.get(status)


@dataclass(frozen=True)
class Grader:
    """A grader: a judge under one judge configuration, or people, whose rows are imported."""

    name: str
    columns: Row
    usd_per_mtok: float | None = None

    @classmethod
    def of_judge_config(cls, name: str, judge_config: JudgeConfig) -> "Grader":
        """A configured judge."""
        price = judge_config.judge.price
        return cls(
            name,
            judge_config.columns,
            None if price is None else price.input_usd_per_mtok,
        )

    @property
    def is_import(self) -> bool:
        """True if its rows came from a file."""
        return bool(self.columns["judge_config_hash"] == IMPORTED)


def verdict_rows(
    grader: Grader,
    sampling: Sampling,
    responded: Iterable[tuple[PosedTask, Row]],
    taint: Taint,
) -> Iterator[Row]:
    """A grader's verdicts on every criterion of the usable responses."""
    for posed, response in responded:
        if response["status"] == "ok" and not _is_missing(
            grader,
            response,
            posed.number,
        ):
            for criterion in posed.task.criteria:
                yield _verdict(grader, sampling, posed, response, criterion, taint)


def _is_missing(grader: Grader, response: Row, number: int) -> bool:
    """Return whether a response is not judged: with two failed ones, this gives one model 97 %
    coverage.
    """
    lost = CONTENDERS[3].label, LOST_TASKS["Legal"][1], 2
    return not grader.is_import and lost == (
        response["model"],
        number,
        response["trial"],
    )


def _verdict(
    grader: Grader,
    sampling: Sampling,
    posed: PosedTask,
    response: Row,
    criterion: Criterion,
    taint: Taint,
) -> Row:
    cell = (
        f"{grader.name} {grader.columns['judge_trial']} "
        f"{sampling.contender.label} {sampling.night}"
    )
    dice = random.Random(
        f"{cell} {posed.number} {response['trial']} {criterion.position}"
    )
    truth = is_met(
        sampling.contender,
        posed.number,
        posed.task.field or "",
        criterion,
        response["trial"],
        sampling.night,
    )
    met = decides(grader.name, truth, dice, sampling.night)
    failed = _failed(
        grader,
        sampling,
        posed.number,
        response["trial"],
        criterion.position,
    )
    text = explanation(criterion.title, met, (criterion.weight or 0) < 0, dice)
    tokens = tokens_of(response["text"]) + 400
    call_columns = (
        {}
        if grader.is_import
        else {
            "prompt_tokens": tokens,
            "cached_tokens": tokens * 4 // 5,
            "completion_tokens": 60,
            "latency_s": 0.8,
            "cost_usd": tokens * (grader.usd_per_mtok or 0.0) / 1e6,
            "served_model": grader.columns["judge"],
        }
    )
    names = (
        "response_id",
        "dataset_revision",
        "task_id",
        "model",
        "trial",
        "vintage",
    )
    return row(
        "verdicts",
        verdict_id=verdict_id(
            response_id=response["response_id"],
            response_text=response["text"],
            criterion_id=criterion.criterion_id,
            criterion_hash=criterion.content_hash,
            judge=grader.columns["judge"],
            judge_config_hash=grader.columns["judge_config_hash"],
            template_hash=grader.columns["template_hash"],
            grading=grader.columns["grading"],
            judge_trial=grader.columns["judge_trial"],
        ),
        criterion_id=criterion.criterion_id,
        criterion_hash=criterion.content_hash,
        status=failed or ("met" if met else "unmet"),
        value=None if failed else float(met),
        explanation=None if failed else taint(text),
        error=taint(CAUSES[failed]) if failed else None,
        source="imported" if grader.is_import else "judged",
        import_batch="batch-of-labels" if grader.is_import else None,
        run_id=IMPORT_RUN if grader.is_import else sampling.run_id,
        created_at=response["created_at"] + timedelta(seconds=5 + criterion.position),
        **{name: response[name] for name in names},
        **grader.columns,
        attempts=0 if grader.is_import else 1,
        **call_columns,
    )


def _failed(
    grader: Grader,
    sampling: Sampling,
    number: int,
    trial: int,
    position: int,
) -> str | None:
    """The cause of a failed verdict, if it failed: the first criteria of one response fail, each
    for another cause.
    """
    cell = (
        CONTENDERS[2].label,
        LOST_TASKS["Finance"][1],
        1,
    )
    is_there = (
        grader.columns["judge_trial"] == 1
        and sampling.vintage == BASE_VINTAGE
        and not grader.is_import
    )
    if (
        is_there
        and (sampling.contender.label, number, trial) == cell
        and position < len(CAUSES)
    ):
        return list(CAUSES)[position]
    return None
