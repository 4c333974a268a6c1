"""What the provider answers: the answer itself, good behaviour, and faults and latencies that a seed decides."""

import hashlib
import json
import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from statistics import NormalDist
from typing import Any, Literal

from tests.faults.content import Request, digest_of, prompt_of


@dataclass(frozen=True)
class Answer:
    """What the server sends: a completion with this text, or an error with this status and body."""

    text: str | None = ""
    finish_reason: str = "stop"
    status: int = 200
    error: dict[str, Any] | None = None
    headers: dict[str, str] = field(default_factory=dict)
    choices: int = 1
    refusal: str | None = None
    delay_s: float = 0.0
    """How long nothing at all is sent."""
    model: str | None = None
    """The model that says it served; without one, the requested model at a date."""
    cuts_connection: bool = False
    """The connection is closed without an answer."""
    raw: bytes | None = None
    """Sent instead of any body that would be made, whatever the status."""
    body_delay_s: float = 0.0
    """How long the answer stands still after its headers and half of its body."""
    cuts_body: bool = False
    """The connection is reset after the headers and half of the body."""
    fingerprint: str | None = None
    """The `system_fingerprint`; without one, the field is left out."""
    usage: dict[str, Any] | Literal["counted"] | None = "counted"
    """`counted`: from the words; a dict: sent as it is; None: left out."""
    reasoning_tokens: int = 0
    """Tokens that were thought, not said; they count as completion tokens."""
    cached_tokens: int | None = None
    """Prompt tokens that came out of a cache; without a number, half of them."""
    certainty: float = 0.75
    """The probability of each token that is `true` or `false`, where probabilities are requested; others have 0.99."""

    @property
    def is_completion(self) -> bool:
        """Whether this is an answer that a provider would send a bill for."""
        return self.status == 200 and self.error is None and self.raw is None and self.choices > 0


Behaviour = Callable[[Request, int], Answer]
"""(request, how many requests of the same content came before) -> answer. It must not block: see `Answer.delay_s`."""

Latency = Callable[[Request, int], float]
"""(request, how many requests of the same content came before) -> seconds."""


def is_judging(request: Request) -> bool:
    """Whether a request asks for a verdict (the shipped template has these words)."""
    return "item of an expert's grading rubric" in prompt_of(request)


def meets(prompt: str) -> bool:
    """The verdict of the test judge: decided by the prompt alone, true for about half of all prompts."""
    return hashlib.sha256(prompt.encode(errors="surrogatepass")).digest()[0] % 2 == 0


def decision(prompt: str) -> dict[str, Any]:
    """What the test judge decides, in the words that the prompt asks for: one of three, or true or false."""
    if '"partially satisfied"' in prompt:
        words = ("satisfied", "partially satisfied", "not satisfied")
        return {"verdict": words[hashlib.sha256(prompt.encode(errors="surrogatepass")).digest()[0] % 3]}
    return {"criteria_met": meets(prompt)}


def is_reviewing(request: Request) -> bool:
    """Whether a request asks for a review of a criterion (the shipped template has these words)."""
    return "how well one criterion of an expert's grading rubric is written" in prompt_of(request)


def review(prompt: str) -> dict[str, Any]:
    """What the test reviewer says: decided by the prompt alone, about one check in four fails."""
    found = hashlib.sha256(prompt.encode(errors="surrogatepass")).digest()
    names = ("atomic", "objective", "self_contained", "consistent", "not_given_away")
    return {name: {"reason": f"{name}, says the test", "passes": found[i] % 4 > 0} for i, name in enumerate(names)}


def well_behaved(request: Request, _number: int) -> Answer:
    """Answer a conversation with a text of its own, a criterion with a verdict of its own."""
    prompt = prompt_of(request)
    if is_judging(request):
        return Answer(json.dumps({"explanation": "as the test says", **decision(prompt)}))
    if is_reviewing(request):
        return Answer(json.dumps(review(prompt)))
    digest = hashlib.sha256(prompt.encode(errors="surrogatepass")).hexdigest()
    return Answer(f"An answer to {digest[:12]} by {request['model']}.")


def _failed(status: int, kind: str, message: str, **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Answer(status=status, error={"message": message, "type": kind, "param": None, "code": None}, headers=named)


FAULTS: dict[str, Callable[[Answer], Answer]] = {
    "rate_limit": lambda _: _failed(429, "rate_limit_error", "Too many requests.", Retry_After="0"),
    "server_error": lambda _: _failed(500, "server_error", "The server had an error."),
    "overloaded": lambda _: _failed(503, "server_error", "The engine is overloaded.", Retry_After="0"),
    "cut_connection": lambda _: Answer(cuts_connection=True),
    "cut_body": lambda good: replace(good, cuts_body=True),
    "no_choices": lambda good: replace(good, choices=0),
    "empty_text": lambda good: replace(good, text=""),
    "not_json": lambda _: Answer(raw=b"<html><body>502 Bad Gateway</body></html>"),
    "half_json": lambda _: Answer(raw=b'{"id": "chatcmpl-test", "object": "chat.completion", "choi'),
}
"""Kind of fault -> what it makes of a good answer. All are such as may pass when the call is made again."""


def seeded_faults(
    seed: int, rate: float, *, then: Behaviour = well_behaved, kinds: Collection[str] = tuple(FAULTS)
) -> Behaviour:
    """A behaviour that has a fault in about `rate` of all calls and otherwise answers as `then` does.

    Which calls those are and which fault they get depends on the seed, the request and its number alone, so it is the
    same in every run and in whatever order requests arrive. A call that is made again is decided anew.
    """
    chosen = [FAULTS[kind] for kind in kinds]

    def behaviour(request: Request, number: int) -> Answer:
        answer = then(request, number)
        if _drawn("fault", seed, request, number) >= rate:
            return answer
        return chosen[int(_drawn("kind", seed, request, number) * len(chosen))](answer)

    return behaviour


def lognormal_latency(seed: int, mean_s: float, sigma: float) -> Latency:
    """A latency with this mean whose logarithm has the standard deviation `sigma`; the call alone decides it."""
    if mean_s <= 0:
        return lambda _request, _number: 0.0
    median_s = mean_s * math.exp(-(sigma**2) / 2)
    normal = NormalDist()

    def latency(request: Request, number: int) -> float:
        return median_s * math.exp(sigma * normal.inv_cdf(_drawn("latency", seed, request, number)))

    return latency


def slowed(latency: Latency, then: Behaviour = well_behaved) -> Behaviour:
    """A behaviour that answers, or fails, as `then` does, but only after this latency."""

    def behaviour(request: Request, number: int) -> Answer:
        answer = then(request, number)
        return replace(answer, delay_s=answer.delay_s + latency(request, number))

    return behaviour


def _drawn(purpose: str, seed: int, request: Request, number: int) -> float:
    """A number strictly between 0 and 1, even over all calls, always the same for the same call."""
    drawn = hashlib.sha256(f"{purpose}|{seed}|{digest_of(request)}|{number}".encode()).digest()
    return ((int.from_bytes(drawn[:8]) >> 12) + 0.5) / 2**52
