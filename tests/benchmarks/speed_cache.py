"""The share of prompt tokens that the embedded model has in its cache: calls in the stage's order, and shuffled.

The stage sends the criteria of one response together, the first alone. Shuffled, the same calls go out in an order that
has nothing to do with their conversations.
"""

import asyncio
import random
import tempfile
import time
from pathlib import Path

from tasks.config.job import Job
from tasks.judge.judge import judge_responses, plan_verdicts
from tasks.llm.embedded import MODEL
from tasks.llm.request import Call
from tasks.rules.verdict import reply_format
from tasks.run.judge_configs import judge_target
from tasks.run.run_context import RunContext, open_run_context
from tests.benchmarks.bench import CRITERIA, in_process_of_its_own, owing_job, prompts, table
from tests.benchmarks.figures import Figure, arguments, report

JUDGE = {"name": MODEL, "label": "embedded", "temperature": 0.0, "max_tokens": 60, "explanation_chars": 40}
_WORDS = 60


def measure(order: str, n_responses: int) -> tuple[int, int, int, float]:
    """Calls, prompt tokens, cached ones among them, and seconds, of one order."""
    with tempfile.TemporaryDirectory(prefix="speed-") as folder:
        job = owing_job(Path(folder), n_responses * CRITERIA, JUDGE, {"concurrency": 4}, _WORDS)
        return asyncio.run(_measured(job, order, n_responses))


async def _measured(job: Job, order: str, n_responses: int) -> tuple[int, int, int, float]:
    async with open_run_context(job) as context:
        began_s = time.monotonic()
        if order == "stage":
            ((judge_config, missing),) = plan_verdicts(job, retry_failed=False)
            ids = [each.response_id for each in missing]
            await judge_responses(job, context, judge_config, ids, retry_failed=False)
        else:
            await _shuffled(job, context, n_responses)
        totals = context.limiters["judge"].totals
        return totals.calls, totals.prompt_tokens, totals.cached_tokens, time.monotonic() - began_s


async def _shuffled(job: Job, context: RunContext, n_responses: int) -> None:
    judge = job.settings.judges[0]
    target, shape = judge_target(judge), reply_format(judge.explanation_chars)
    texts = list(prompts(n_responses * CRITERIA, _WORDS))
    random.Random(0).shuffle(texts)
    calls = [
        Call(target, [{"role": "user", "content": text}], f"cell-{place}", shape, priority=(place,))
        for place, text in enumerate(texts)
    ]
    await asyncio.gather(*map(context.gateway("judge", "a-judge").complete, calls))


def main() -> None:
    """Measure and print."""
    asked = arguments(__doc__, keeps=True, responses=(3, f"responses to judge, {CRITERIA} calls each"))
    rows = []
    not_cached = {}
    for order in ("stage", "shuffled"):
        calls, tokens, cached, seconds = in_process_of_its_own(measure, order, asked.responses)
        not_cached[order] = 1 - cached / tokens
        rows.append((order, calls, tokens, f"{cached / tokens:.3f}", f"{seconds:.0f}"))
    print(table(["order", "calls", "prompt tokens", "cached share", "s"], rows))
    found = Figure("prompt tokens not cached", not_cached["stage"], "shuffled", not_cached["shuffled"], "of all")
    print(report(f"speed_cache, {asked.responses} responses", [found], must_keep=asked.keep))


if __name__ == "__main__":
    main()
