"""A model provider for tests: OpenAI's chat completions over a real socket, faults on demand, a book of every call.

What it answers is a function of the request, so a test knows the right result without asking the pipeline.
"""

import hashlib
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

Request = dict[str, Any]


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
    model: str | None = None
    cuts_connection: bool = False
    raw: bytes | None = None


def is_judging(request: Request) -> bool:
    """Whether a request asks for a verdict (the shipped template has these words)."""
    return "item of an expert's grading rubric" in request["messages"][0]["content"]


def meets(prompt: str) -> bool:
    """The verdict of the test judge: decided by the prompt alone, true for about half of all prompts."""
    return hashlib.sha256(prompt.encode()).digest()[0] % 2 == 0


def well_behaved(request: Request, _number: int) -> Answer:
    """Answer a conversation with a text of its own, a criterion with a verdict of its own."""
    prompt = request["messages"][0]["content"]
    if is_judging(request):
        return Answer(json.dumps({"explanation": "as the test says", "criteria_met": meets(prompt)}))
    return Answer(f"An answer to {hashlib.sha256(prompt.encode()).hexdigest()[:12]} by {request['model']}.")


class FaultServer:
    """The server; `behaviour` answers a request, given how many requests of the same content came before."""

    def __init__(self, behaviour: Callable[[Request, int], Answer] = well_behaved) -> None:
        self.behaviour = behaviour
        self.book: list[Request] = []
        self._seen: dict[str, int] = {}
        self._lock = threading.Lock()
        self.in_hand = self.most_in_hand = 0
        handler = type("Handler", (_Handler,), {"faults": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True

    @property
    def api_base(self) -> str:
        """The base URL to configure."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def take(self, request: Request) -> Answer:
        """Enter a request into the book and give its answer."""
        key = json.dumps(request, sort_keys=True)
        with self._lock:
            number = self._seen.get(key, 0)
            self._seen[key] = number + 1
            self.book.append(request)
            self.in_hand += 1
            self.most_in_hand = max(self.most_in_hand, self.in_hand)
        return self.behaviour(request, number)

    def done(self) -> None:
        """Tell that an answer was sent."""
        with self._lock:
            self.in_hand -= 1

    @property
    def samples(self) -> list[Request]:
        """The requests for answers to conversations."""
        return [request for request in self.book if not is_judging(request)]

    @property
    def judgings(self) -> list[Request]:
        """The requests for verdicts."""
        return [request for request in self.book if is_judging(request)]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    faults: FaultServer

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        answer = self.faults.take(request)
        try:
            time.sleep(answer.delay_s)
            if answer.cuts_connection:
                self.close_connection = True
                self.connection.close()
                return
            body = answer.raw if answer.raw is not None else json.dumps(_body(request, answer)).encode()
            self.send_response(answer.status)
            for name, value in {"Content-Type": "application/json", **answer.headers}.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # the client gave up, as it does on a time-out
        finally:
            self.faults.done()

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that the base class gives it
        """Say nothing: the book has it all."""


def _body(request: Request, answer: Answer) -> dict[str, Any]:
    if answer.error is not None:
        return {"error": answer.error}
    message = {"role": "assistant", "content": answer.text, "refusal": answer.refusal}
    choice = {"index": 0, "message": message, "finish_reason": answer.finish_reason}
    prompt_tokens = sum(len(message["content"].split()) for message in request["messages"])
    completion_tokens = len((answer.text or "").split())
    return {
        "id": "chatcmpl-test",
        "object": "chat.completion",
        "created": 1,
        "model": answer.model or f"{request['model']}-2026-11-01",
        "choices": [choice] * answer.choices,
        "usage": {
            "prompt_tokens": prompt_tokens,
            "completion_tokens": completion_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
            "prompt_tokens_details": {"cached_tokens": prompt_tokens // 2},
        },
    }
