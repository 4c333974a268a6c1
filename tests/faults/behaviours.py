"""Requests of clients, responses of the provider, seeded faults, and the book of all requests."""

import hashlib
import json
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

JsonObject = dict[str, Any]

Request = dict[str, Any]

_CANONICAL = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


class BookedRequest(Request):
    """A request as it arrived, with the digest of its content computed once."""

    __slots__ = ("digest",)

    def __init__(self, request):
        super().__init__(request)
        self.digest = _content_digest(request)


def digest_of(request) -> str:
    """A hash of a request's content; the order of its keys does not count."""
    if isinstance(request, BookedRequest):
        return request.digest
    return _content_digest(request)


def _content_digest(request) -> str:
    return hashlib.sha256(_CANONICAL.encode(request).encode()).hexdigest()


def messages_of(request) -> list[JsonObject]:
    """The conversation of a request: `messages` of a chat completion, `input` of a response,
    `state` of decisions.
    """
    if "messages" in request:
        return request["messages"]
    items = request.get("input") or request.get("state") or []
    if isinstance(items, str):
        items = [items]
    return [
        {"role": "user", "content": item} if isinstance(item, str) else item
        for item in items
    ]


def text_of(message: JsonObject) -> str:
    """The text of a message, whose content may be a string, a list of parts or missing."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "".join(part.get("text") or "" for part in content or ())


def prompt_of(request) -> str:
    """The text of a request's first message."""
    messages = messages_of(request)
    return text_of(messages[0]) if messages else ""


def prompt_tokens_of(request) -> int:
    """The number of words of all messages: a word is a token of this provider."""
    return sum(len(text_of(message).split()) for message in messages_of(request))


def flaw_of(request, field: str) -> str | None:
    """Return why no provider would accept a request, or None; `field` must hold the
    conversation.
    """
    if not isinstance(request, dict):
        return "The body is not a JSON object."
    if not isinstance(request.get("model"), str):
        return "You must provide a model parameter."
    kinds = {
        "messages": list,
        "input": list | str,
        "questions": list | dict,
    }
    if not isinstance(request.get(field), kinds[field]):
        return f"Missing or malformed parameter: '{field}'."
    return None


def criterion_of(prompt: str) -> str:
    """The criterion that a judge's prompt of the shipped templates quotes."""
    return re.findall(
        r"\n\[(\d{16}) criterion\]\n(.*)\n\[\1 end of the criterion\]",
        prompt,
        re.DOTALL,
    )[0][1]


@dataclass(frozen=True)
class HttpResponse:
    """A response of the server: a completion with this text, or an error with this status and
    body.
    """

    text: str | None = ""
    finish_reason: str = "stop"
    status: int = 200
    error: JsonObject | None = None
    headers: dict[str, str] = field(default_factory=dict)
    choices: int = 1
    refusal: str | None = None
    delay_s: float = 0.0
    """How long nothing is sent."""
    model: str | None = None
    """The name of the model that served; if None, the requested model with a date."""
    cuts_connection: bool = False
    """The connection is closed without a response."""
    raw: bytes | None = None
    """Sent as the body instead of any other, whatever the status."""
    body_delay_s: float = 0.0
    """How long the response pauses after its headers and half of its body."""
    cuts_body: bool = False
    """The connection is reset after the headers and half of the body."""
    fingerprint: str | None = None
    """The `system_fingerprint`; without one, the field is left out."""
    usage: JsonObject | Literal["counted"] | None = "counted"
    """`counted`: count the words; a dict: send it as it is; None: leave it out."""
    reasoning_tokens: int = 0
    """Tokens of hidden reasoning; they count as completion tokens."""
    cached_tokens: int | None = None
    """Prompt tokens that came from a cache; if None, half of the prompt tokens."""
    certainty: float = 0.75
    """The probability of each token `true` or `false`, if probabilities are requested; other tokens
    have 0.99.
    """

    @property
    def is_completion(self) -> bool:
        """True if a provider would bill this response."""
        return (
            self.status == 200
            and self.error is None
            and self.raw is None
            and self.choices > 0
        )


Behaviour = Callable[[Request, int], HttpResponse]
"""(request, number of earlier requests with the same content) -> response. Must not block:
`HttpResponse.delay_s`.
"""


def is_judge_request(request) -> bool:
    """Return whether a request asks for verdicts (the shipped templates have these words)."""
    return "questions" in request or bool(
        re.search("items? of an expert's grading rubric", prompt_of(request))
    )


def meets(prompt: str) -> bool:
    """The test judge's verdict: it depends on the prompt alone, and is true for about half of all
    prompts.
    """
    return _bytes_of(prompt)[0] % 2 == 0


def _bytes_of(text: str) -> bytes:
    """Bytes that depend on a text alone."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).digest()


def decision(prompt: str) -> JsonObject:
    """Return the test judge's decision, in the words that the prompt asks for: one of three, or
    true or false.
    """
    if '"partially satisfied"' in prompt:
        words = ("satisfied", "partially satisfied", "not satisfied")
        return {"verdict": words[_bytes_of(prompt)[0] % 3]}
    return {"criteria_met": meets(prompt)}


def probability_of(text: str, wording: str) -> float:
    """The test decision model's probability: it depends on the text and the wording alone, in steps
    of 1/63.
    """
    return _bytes_of(f"{text}|{wording}")[0] // 4 / 63


def decisions(request) -> list[JsonObject]:
    """Return the test decision model's decisions in the form of `/v1/decisions`."""
    questions = request["questions"]
    if not isinstance(questions, dict):
        questions = {spec["name"]: spec for spec in questions}
    text = prompt_of(request)
    results = []
    for name, spec in questions.items():
        words = [choice["value"] for choice in spec.get("choices") or ()]
        words = words or list(spec.get("criteria") or ())
        results.append(_decision_on(text, name, spec["instructions"], words))
    return results


def _decision_on(
    text: str,
    name: str,
    instructions: str,
    words: list[str],
) -> JsonObject:
    """Return a choice of one of the words, or a yes or no without words."""
    if not words:
        probability = probability_of(text, instructions)
        return {
            "type": "predicate",
            "name": name,
            "probability": probability,
        }
    odds = [probability_of(text, f"{instructions}{word}") + 1 for word in words]
    probabilities = []
    for word, odd in zip(words, odds, strict=True):
        probabilities.append({"value": word, "probability": odd / sum(odds)})
    best = max(probabilities, key=lambda row: row["probability"])
    return {
        "type": "choice",
        "name": name,
        "choice": best["value"],
        "probabilities": probabilities,
        "confidence": best["probability"],
    }


def criteria_of(prompt: str) -> list[str]:
    """The criteria that a judge's prompt for a group lists."""
    markers = re.findall(r"\n\[(\d{16}) criterion 1 of \d+\]\n", prompt)
    if not markers:
        return []
    border = rf"\[{markers[-1]} (?:criterion \d+ of \d+|end of the criteria)\]\n?"
    return re.split(border, prompt)[1:-1]


def entries(prompt: str) -> list[JsonObject]:
    """Return the test judge's entries on the criteria of a group."""
    criteria = criteria_of(prompt)
    beginning = prompt.partition(criteria[0])[0]
    entries = []
    for number, criterion in enumerate(criteria, start=1):
        verdict = decision(beginning + criterion)
        entries.append(
            {
                "number": number,
                "explanation": "as the test says",
                **verdict,
            }
        )
    return entries


def is_reviewing(request) -> bool:
    """Return whether a request asks for a review of a criterion (the shipped template has these
    words).
    """
    words = "how well one criterion of an expert's grading rubric is written"
    return words in prompt_of(request)


def review(prompt: str) -> JsonObject:
    """Return the test reviewer's findings: they depend on the prompt alone, and about one check in
    four fails.
    """
    digest = _bytes_of(prompt)
    names = ("atomic", "objective", "self_contained", "consistent", "not_given_away")
    return {
        name: {"reason": f"{name}, says the test", "passes": digest[i] % 4 > 0}
        for i, name in enumerate(names)
    }


def well_behaved(request, _number: int) -> HttpResponse:
    """Return a text for each conversation, and a verdict for each criterion, that depends on the
    prompt alone.
    """
    prompt = prompt_of(request)
    if "questions" in request:
        return HttpResponse(json.dumps(decisions(request)))
    if is_judge_request(request) and criteria_of(prompt):
        return HttpResponse(json.dumps(entries(prompt)))
    if is_judge_request(request):
        return HttpResponse(
            json.dumps({"explanation": "as the test says", **decision(prompt)})
        )
    if is_reviewing(request):
        return HttpResponse(json.dumps(review(prompt)))
    return HttpResponse(
        f"An answer to {_bytes_of(prompt).hex()[:12]} by {request['model']}."
    )


def failed(
    status: int,
    message: str = "no",
    code: str | None = None,
    kind: str = "",
    **headers: str,
) -> HttpResponse:
    """An error in OpenAI's format; names of headers are given with underscores."""
    error = {
        "message": message,
        "type": kind or f"error_{status}",
        "param": None,
        "code": code,
    }
    header_lines = {name.replace("_", "-"): value for name, value in headers.items()}
    return HttpResponse(status=status, error=error, headers=header_lines)


ELSEWHERE = HttpResponse(
    status=307,
    raw=b"",
    headers={"Location": "http://elsewhere.example/v1"},
)
"""A redirect to another host."""
FAULTS: dict[str, Callable[[HttpResponse], HttpResponse]] = {
    "rate_limit": lambda _: failed(
        429,
        "Too many requests.",
        kind="rate_limit_error",
        Retry_After="0",
    ),
    "server_error": lambda _: failed(
        500,
        "The server had an error.",
        kind="server_error",
    ),
    "overloaded": lambda _: failed(
        503,
        "The engine is overloaded.",
        kind="server_error",
        Retry_After="0",
    ),
    "cut_connection": lambda _: HttpResponse(cuts_connection=True),
    "cut_body": lambda good: replace(good, cuts_body=True),
    "no_choices": lambda good: replace(good, choices=0),
    "empty_text": lambda good: replace(good, text=""),
    "not_json": lambda _: HttpResponse(
        raw=b"<html><body>502 Bad Gateway</body></html>"
    ),
    "half_json": lambda _: HttpResponse(
        raw=b'{"id": "chatcmpl-test", "object": "chat.completion", "choi'
    ),
}
"""Kind of fault -> what replaces a good response. A retry may get past each of them."""


def seeded_faults(
    seed: int,
    rate: float,
    *,
    base: Behaviour = well_behaved,
) -> Behaviour:
    """A behaviour that has a fault in about `rate` of all calls and otherwise responds as `base`
    does.

    Which calls have which fault depends on the seed, the request and its number alone, so it is the
    same in every run, in whatever order requests arrive. A repeated call has another number, so its
    fault may differ.
    """
    faults = list(FAULTS.values())

    def behaviour(request, number):
        reply = base(request, number)
        if _pseudorandom("fault", seed, request, number) >= rate:
            return reply
        fault = faults[
            int(_pseudorandom("kind", seed, request, number) * len(faults))
        ]
        return fault(reply)

    return behaviour


def slowed(delay_s: float, base: Behaviour) -> Behaviour:
    """A behaviour that responds, or fails, as `base` does, but only after a delay."""

    def behaviour(request, number):
        reply = base(request, number)
        return replace(reply, delay_s=reply.delay_s + delay_s)

    return behaviour


def _pseudorandom(purpose: str, seed: int, request, number: int) -> float:
    """A number between 0 and 1 (exclusive), uniform over all calls, and always the same for the
    same call.
    """
    digest = _bytes_of(f"{purpose}|{seed}|{digest_of(request)}|{number}")
    return ((int.from_bytes(digest[:8]) >> 12) + 0.5) / 2**52


@dataclass
class Entry:
    """A request and its outcome; the server's thread writes it, any thread may read it."""

    number: int
    """How many earlier requests had the same content."""
    path: str
    request: Request
    headers: dict[str, str]
    """By lower-case name."""
    digest: str
    arrived_at_s: float
    """When the whole request had arrived, in seconds of the monotonic clock, which all processes of
    a machine share.
    """
    responded_at_s: float | None = None
    """When the server finished the request, successfully or not; None until then."""
    status: int | None = None
    """The status that was sent; None when nothing was sent."""
    is_paid: bool = False
    """True if a completion was made, so that it is billed even if nobody received it."""


@dataclass(eq=False)
class Book:
    """All entries in order of arrival."""

    entries: list[Entry] = field(default_factory=list)
    in_hand: int = 0
    most_in_hand: int = 0
    _seen: dict[str, int] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def enter(
        self,
        path: str,
        content: Request,
        headers: dict[str, str],
        *,
        in_batch: bool = False,
    ) -> Entry:
        """Add a request that just arrived.

        One in a batch is not counted as in hand: nobody waits for its response.
        """
        request = BookedRequest(content)
        with self._lock:
            number = self._seen.get(request.digest, 0)
            self._seen[request.digest] = number + 1
            entry = Entry(
                number,
                path,
                request,
                headers,
                request.digest,
                time.monotonic(),
            )
            self.entries.append(entry)
            if not in_batch:
                self.in_hand += 1
                self.most_in_hand = max(self.most_in_hand, self.in_hand)
        return entry

    def close(self, entry: Entry, *, in_batch: bool = False):
        """Record that the server has finished a request."""
        entry.responded_at_s = time.monotonic()
        with self._lock:
            if not in_batch:
                self.in_hand -= 1
