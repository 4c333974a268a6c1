"""Helpers of the speed modules: a warehouse with missing verdicts, the judge stage without Prefect,
bare clients.
"""

import asyncio
import itertools
import os
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TypeVar

from tasks.config.job import Job
from tasks.judge.judge import judge_responses, missing_by_judge
from tasks.llm.litellm_setup import collect_seldom
from tasks.prompts import load_template
from tasks.rules.conversation import judge_prompt
from tasks.run.judge_configs import JudgeConfig
from tasks.run.run_context import RunContext, open_run_context
from tasks.run.writing import StageReport
from tests.kit import admitted, criterion, job_on, response, row, written

T = TypeVar("T")
CRITERIA = 17
"""Criteria of a task, as many as the benchmark has on average."""
VERDICTS_A_BATCH = 1_000
BATCHES_IN_HAND = 4
"""As in `flows/stages.py`."""
SENDERS = {
    "1 sender": 1,
    "2 senders": 2,
    "4 senders": 4,
}
"""Clients: the judge stage with this many Ray senders on this machine."""
WARM_UP = 4 * CRITERIA
"""Calls before the clock starts: imports and connections are not measured."""
_WORDS = [f"word{number}" for number in range(26)]


def words(seed: object, number: int) -> str:
    """This many words, always the same for a seed."""
    return " ".join(random.Random(str(seed)).choices(_WORDS, k=number))


def texts_of(number: int) -> tuple[str, str, list[str]]:
    """The prompt, the response and the criteria of a task."""
    titles = [
        f"Point {position} of task {number}: {words((number, position), 20)}."
        for position in range(CRITERIA)
    ]
    return words((number, "prompt"), 300), words((number, "response"), 300), titles


def owing_job(
    folder: Path,
    n_verdicts: int,
    judge: dict[str, Any],
    limits: dict[str, Any],
    **settings: Any,
) -> Job:
    """A job on a fresh warehouse that lacks about `n_verdicts` verdicts of one judge."""
    (folder / "speed.jsonl").write_text(f"{n_verdicts} verdicts\n", encoding="utf-8")
    job = job_on(
        folder / "speed.jsonl",
        folder / "warehouse",
        judges=[dict(judge)],
        limits=dict(limits),
        **settings,
    )
    # The memory for filling it is not the stage's.
    in_process_of_its_own(
        _fill,
        job.warehouse,
        -(-n_verdicts // CRITERIA),
        job.data.revision,
    )
    return job


def _fill(folder: Path, n_tasks: int, revision: str):
    written(folder, _tables(n_tasks), revision).publish()


def _tables(n_tasks: int) -> dict[str, list[dict[str, Any]]]:
    ids = [f"task-{number:05d}" for number in range(n_tasks)]
    tables = admitted(
        ids,
        split="speed",
        conversation_id="a-conversation",
        n_criteria=CRITERIA,
    )
    tables |= {
        "criteria": [],
        "message_rows": [],
        "responses": [],
    }
    for number, task_id in enumerate(ids):
        prompt, response_text, titles = texts_of(number)
        tables["criteria"] += [
            criterion(task_id, i, 5.0) | {"title": title}
            for i, title in enumerate(titles)
        ]
        tables["message_rows"].append(
            row(
                "message_rows",
                task_id=task_id,
                position=0,
                role="user",
                content=prompt,
            )
        )
        tables["responses"].append(
            response(task_id) | {"source": "imported", "text": response_text}
        )
    return tables


def prompts(n_calls: int) -> Iterator[str]:
    """The prompts that the judge stage sends for the same number of verdicts."""
    template = load_template("default", "binary_v2")
    for number in range(-(-n_calls // CRITERIA)):
        prompt, response_text, titles = texts_of(number)
        yield from (
            judge_prompt(template, [("user", prompt)], response_text, title)
            for title in titles
        )


@dataclass(frozen=True)
class Figures:
    """The cost of a number of calls: seconds, and CPU seconds and peak memory of the process."""

    calls: int
    seconds: float
    cpu_s: float
    peak_mb: float
    failures: int = 0
    senders_cpu_s: float = 0.0

    @property
    def calls_a_second(self) -> float:
        """The number of calls per second."""
        return self.calls / self.seconds

    @property
    def cpu_ms_a_call(self) -> float:
        """CPU milliseconds a call, which are CPU seconds per 1,000 calls."""
        return 1000 * self.cpu_s / self.calls


class Clock:
    """Measures this process and the CPU of its senders, from the clock's creation on."""

    def __init__(self, senders: Sequence[int] = ()):
        self._senders = senders
        self._senders_cpu_s = sum(map(_cpu_s, senders))
        self._cpu_s = time.process_time()
        self._began_s = time.monotonic()

    def figures(self, calls: int, failures: int = 0) -> Figures:
        """Return the figures up to now."""
        seconds = time.monotonic() - self._began_s
        cpu_s = time.process_time() - self._cpu_s
        senders_cpu_s = sum(map(_cpu_s, self._senders)) - self._senders_cpu_s
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
        peak_mb = next(
            int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM")
        )
        return Figures(calls, seconds, cpu_s, peak_mb, failures, senders_cpu_s)


def _cpu_s(pid: int) -> float:
    """Return the CPU seconds of another process."""
    fields = (
        Path(f"/proc/{pid}/stat")
        .read_text(encoding="utf-8")
        .rpartition(")")[2]
        .split()
    )
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def judge_all(job: Job) -> Figures:
    """The judge stage as the command runs it, without Prefect; the first calls only warm it up."""
    collect_seldom()
    ((judge_config, missing),) = missing_by_judge(job)
    ids = [response.response_id for response in missing]
    n_warm_up = WARM_UP // CRITERIA
    warm_up = ids[:n_warm_up]
    ids = ids[n_warm_up:]
    async with open_run_context(job) as context:
        await context.get_ready()
        pool = context.senders
        # Nothing tells when all senders have started.
        while pool is not None and len(pool.senders) != job.settings.calls.senders:  # noqa: ASYNC110
            await asyncio.sleep(0.1)
        await _judged(
            job,
            context,
            judge_config,
            [[response_id] for response_id in warm_up],
        )
        clock = Clock(
            [sender.equipment.pid for sender in pool.senders] if pool else []
        )
        size = VERDICTS_A_BATCH // CRITERIA
        batches = [ids[start : start + size] for start in range(0, len(ids), size)]
        report = await _judged(
            job,
            context,
            judge_config,
            batches,
            first_index=len(warm_up),
        )
        return clock.figures(report.rows, sum(report.failures.values()))


def judge_stage(
    api_base: str, n_calls: int, at_once: int, **settings: Any
) -> Figures:
    """Run the judge stage with about `n_calls` calls, on a warehouse of its own."""
    judge = {"name": "hosted_vllm/judge", "api_base": api_base}
    with tempfile.TemporaryDirectory(prefix="speed-") as folder:
        job = owing_job(
            Path(folder),
            n_calls,
            judge,
            {"concurrency": at_once},
            **settings,
        )
        return asyncio.run(judge_all(job))


def client_figures(client: str, api_base: str, n_calls: int, at_once: int) -> Figures:
    """The figures of one client: the `stage`, the stage with Ray senders, or a bare loop of
    `litellm` or `openai`.
    """
    if client in SENDERS:
        calls = {
            "where": "ray",
            "address": "local",
            "senders": SENDERS[client],
        }
        return judge_stage(api_base, n_calls, at_once, calls=calls)
    if client == "stage":
        return judge_stage(api_base, n_calls, at_once)
    send_all = {"litellm": bare_litellm, "openai": bare_openai}[client]
    return asyncio.run(send_all(api_base, prompts(n_calls), at_once))


async def _judged(
    job: Job,
    context: RunContext,
    judge_config: JudgeConfig,
    batches: Sequence[list[str]],
    first_index: int = 0,
) -> StageReport:
    report = StageReport("judge")
    in_hand = asyncio.Semaphore(BATCHES_IN_HAND)

    async def one(position, ids):
        async with in_hand:
            report.add(
                await judge_responses(
                    job,
                    context,
                    judge_config,
                    ids,
                    batch_index=position,
                )
            )

    async with asyncio.TaskGroup() as group:
        for position, ids in enumerate(batches, start=first_index):
            group.create_task(one(position, ids))
    return report


async def loop(
    send: Callable[[str], Awaitable[object]],
    texts: Iterable[str],
    at_once: int,
) -> Figures:
    """Make bare calls, `at_once` at a time; the first ones only warm up."""
    remaining = iter(texts)

    async def send_all(part):
        n_sent = 0
        for text in part:
            await send(text)
            n_sent += 1
        return n_sent

    await send_all(itertools.islice(remaining, WARM_UP))
    clock = Clock()
    clients = [send_all(remaining) for _ in range(at_once)]
    return clock.figures(sum(await asyncio.gather(*clients)))


async def bare_litellm(api_base: str, texts: Iterable[str], at_once: int) -> Figures:
    """A loop of `litellm.acompletion`."""
    from tasks.llm.litellm_setup import litellm

    library = litellm()

    async def send(text):
        return await library.acompletion(
            model="hosted_vllm/judge",
            api_base=api_base,
            api_key="none",
            messages=[{"role": "user", "content": text}],
            timeout=600,
            max_retries=0,
            num_retries=0,
        )

    return await loop(send, texts, at_once)


async def bare_openai(api_base: str, texts: Iterable[str], at_once: int) -> Figures:
    """A loop of the `openai` package, without LiteLLM."""
    from openai import AsyncOpenAI

    async with AsyncOpenAI(
        base_url=api_base, api_key="none", max_retries=0
    ) as client:

        async def send(text):
            return await client.chat.completions.create(
                model="judge",
                messages=[{"role": "user", "content": text}],
                timeout=600,
            )

        return await loop(send, texts, at_once)


def in_process_of_its_own(measure: Callable[..., T], *arguments: Any) -> T:
    """Return the result of a function in a new process, so that no measurement inherits another's
    memory.
    """
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as executor:
        return executor.submit(measure, *arguments).result()
