"""A cascade on the sample: its jobs, the two judges that the test provider plays, and a process of its own that judges.

python -m tests.tasks.judge.cascaded FOLDER API_BASE WHEN
"""

import hashlib
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from tasks.config.job import Job
from tests.faults.answers import prompt_of
from tests.faults.server import Answer, Request, is_judging, meets, well_behaved
from tests.kit import job_on
from tests.tasks.run.runs import judged, prepared, sampled

STRONG: dict[str, Any] = {"name": "hosted_vllm/strong", "label": "strong"}
CHEAP: dict[str, Any] = {"name": "hosted_vllm/cheap", "label": "cheap", "trials": 2, "logprobs": True}
CONCURRENCY = 4


def cascade(**when: Any) -> dict[str, Any]:
    """The configuration of the cascade."""
    return {"label": "careful", "cascade": {"first": "cheap", "then": "strong", "when": when}}


def job_at(api_base: str, folder: Path, *judges: dict[str, Any]) -> Job:
    """A job with one model and some judges."""
    at = {"api_base": api_base}
    return prepared(
        job_on(
            "sample", folder, models=[{"name": "hosted_vllm/a", "label": "a", **at}],
            judges=[judge if "cascade" in judge else judge | at for judge in judges],
            limits={"concurrency": CONCURRENCY, "attempts": 2},
        )
    )  # fmt: skip


def drawn(*parts: object) -> float:
    """A number from 0 to 1 that these decide."""
    return hashlib.sha256("|".join(map(str, parts)).encode()).digest()[0] / 256


def two_judges(request: Request, number: int) -> Answer:
    """A strong judge that is always the same, and a cheap one that errs, wavers, fails and is more or less sure."""
    if is_judging(request) and request["model"] == "cheap" and drawn("fail", prompt_of(request)) < 0.1:
        return Answer("I cannot say.")
    return two_sound_judges(request, number)


def two_sound_judges(request: Request, number: int) -> Answer:
    """The same, but the cheap judge never fails."""
    if not is_judging(request) or request["model"] == "strong":
        return well_behaved(request, number)
    prompt = prompt_of(request)
    # The second repetition sends the same words once more.
    turns = drawn("err", prompt) < 0.2 or (drawn("waver", prompt) < 0.3 and number % 2 == 1)
    text = json.dumps({"explanation": "cheaply", "criteria_met": meets(prompt) != turns})
    return replace(Answer(text), certainty=0.5 + drawn("sure", prompt) / 2)


if __name__ == "__main__":
    job = job_at(sys.argv[2], Path(sys.argv[1]), CHEAP, STRONG, cascade(**json.loads(sys.argv[3])))
    sampled(job)
    judged(job)
