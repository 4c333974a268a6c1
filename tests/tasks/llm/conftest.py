"""A gateway with limits and a ledger of its own, talking to the fault server over a real socket."""

import asyncio
import inspect
import itertools
import json
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterator,
    Sequence,
)
from contextlib import ExitStack, asynccontextmanager, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tasks.llm.calls.batches import Batching
from tasks.llm.calls.gateway import Gateway
from tasks.llm.ledger.ledger import Ledger
from tasks.llm.limiter import Budget, Limiter
from tasks.llm.litellm_setup import litellm
from tasks.llm.replies import Reply
from tasks.llm.request import Call, Target
from tasks.rules.verdict import questions_on
from tests.faults import behaviours
from tests.faults.server import FaultServer, HttpResponse

JsonObject = dict[str, Any]

Behaviour = Callable[[JsonObject, int], HttpResponse]
Serve = Callable[[Behaviour | HttpResponse], FaultServer]
failed = behaviours.failed
ROUTES: dict[str, JsonObject] = {
    "vllm": {},
    "openai": {"name": "openai/candidate"},
    "streamed": {"is_streamed": True},
    "openai-streamed": {"name": "openai/candidate", "is_streamed": True},
    "responses": {"name": "openai/candidate", "parameters": {"api": "responses"}},
}
"""Route -> target settings: the routes to a chat model."""
DECIDING: JsonObject = {
    "questions": questions_on(["Cites a case.", "Names a sum."], "binary"),
    "parameters": {"api": "decisions"},
}
DECISION_ROUTES: dict[str, JsonObject] = {
    "decisions": {"name": "openai/candidate", **DECIDING},
    "systemone": {"name": "hosted_vllm/candidate", **DECIDING},
}
"""Route -> target settings: the routes to a decision model."""


@dataclass
class Calling:
    """Makes calls as a run does; each call of this object is another run on the same ledger.

    A run that takes longer than `patience_s` ends with a TimeoutError.
    """

    folder: Path
    attempts: int = 2
    concurrency: int = 4
    deadline_s: float | None = None
    max_usd: float | None = None
    max_tokens: int | None = None
    limits: JsonObject = field(default_factory=dict)
    patience_s: float = 240.0
    limiter: Limiter = field(init=False)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[tuple[Gateway, Ledger]]:
        """A gateway and its ledger, for one run."""
        self.limiter = Limiter(
            self.concurrency,
            Budget(self.max_usd, self.max_tokens),
            **self.limits,
        )
        with closing(Ledger(self.folder)) as ledger:
            async with asyncio.timeout(self.patience_s):
                gateway = Gateway(
                    self.limiter,
                    ledger,
                    "a-run",
                    self.attempts,
                    self.deadline_s,
                )
                yield gateway, ledger

    def run(self, work: Callable[[Gateway, Ledger], Awaitable[Any]]) -> Any:
        """Do some work with a gateway in one run, and return its result."""

        async def do_work():
            async with self.opened() as opened:
                return await work(*opened)

        return asyncio.run(do_work())

    def call_at_once(self, *calls: Call) -> list[Any]:
        """Make calls at the same time, and return the reply or the exception of each."""

        async def complete_all(gateway, _):
            replies = [gateway.complete(call) for call in calls]
            return await asyncio.gather(*replies, return_exceptions=True)

        return self.run(complete_all)

    async def batched(
        self,
        calls: Sequence[Call],
        budget: Budget | None = None,
        wait_s: float = 60.0,
    ) -> Batching:
        """Make calls to one model in provider batches."""
        limiter = Limiter(self.concurrency, budget or Budget(None, None))
        with closing(Ledger(self.folder)) as ledger:
            batching = Batching(calls[0].target, ledger, limiter, "a-run", "judge")
            await batching.submit_and_collect(calls, wait_s)
            return batching

    def mark_spent(self, reply: Reply):
        """Record that a reply has become a failed row on disk."""
        with closing(Ledger(self.folder)) as ledger:
            ledger.mark_spent(list(reply.ledger_keys))

    @property
    def reason_to_stop(self) -> str | None:
        """Why the only model of the last run was stopped."""
        [endpoint] = self.limiter.endpoints.values()
        return endpoint.stopped

    def __call__(self, call: Call) -> Reply:
        return self.run(lambda gateway, _: gateway.complete(call))


def call_to(
    server: FaultServer | str,
    prompt: str = "What is a bond?",
    cell: str = "",
    questions: Any = (),
    **target: Any,
) -> Call:
    """A call to a model at a server; the default cell is the prompt."""
    api_base = server if isinstance(server, str) else server.api_base
    settings = {
        "name": "hosted_vllm/candidate",
        "timeout_s": 30.0,
        "api_base": api_base,
        **target,
    }
    messages = [{"role": "user", "content": prompt}]
    return Call(Target(**settings), messages, cell or prompt, questions=questions)


def calls_to(server: FaultServer | str, n_calls: int, **target: Any) -> list[Call]:
    """Calls with different prompts to a model at a server."""
    return [
        call_to(server, f"Question {number}?", **target) for number in range(n_calls)
    ]


def json_body(body: object, status: int = 200) -> HttpResponse:
    """A response with this body as JSON."""
    return HttpResponse(status=status, raw=json.dumps(body).encode())


async def wait_until(is_so: Callable[[], object]):
    """Wait until something is so."""
    while not is_so():  # noqa: ASYNC110 - nothing notifies of it
        await asyncio.sleep(0.01)


async def first_request_at(server: FaultServer):
    """Wait until a request has arrived at a server."""
    await wait_until(lambda: server.book)


def prompts_at(server: FaultServer) -> list[str]:
    """The prompts that a server has received, in order of arrival."""
    return [behaviours.prompt_of(request) for request in server.book]


def in_turn(rows: Collection[Any], routes: Collection[Any]) -> list[tuple[Any, Any]]:
    """Pair each row with one of the routes, in turn: each row and each route occurs.

    Every row on every route would take minutes, and few differences are both a row's and a route's.
    """
    pairs = zip(itertools.cycle(rows), itertools.cycle(routes), strict=False)
    return list(itertools.islice(pairs, max(len(rows), len(routes))))


def responding_with(*http_responses: HttpResponse) -> Behaviour:
    """Respond with the first of these to a request, and with the next one to each repetition of it;
    the last one is repeated.
    """
    return lambda _request, number: http_responses[
        min(number, len(http_responses) - 1)
    ]


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run an asynchronous test in an event loop of its own, as the program does.

    The plugin of anyio would also raise errors of earlier loops' clients when they are
    garbage-collected.
    """
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    parameters = inspect.signature(pyfuncitem.obj).parameters
    fixtures = {name: pyfuncitem.funcargs[name] for name in parameters}
    asyncio.run(pyfuncitem.obj(**fixtures))
    return True


@pytest.fixture(scope="session", autouse=True)
def _loaded_library():
    """Import the library first: this takes seconds, which must not count towards a call's time
    limit.
    """
    litellm()


@pytest.fixture(autouse=True)
def _provider_key(monkeypatch):
    for provider in ("OPENAI", "MISTRAL", "OPENROUTER"):
        monkeypatch.setenv(f"{provider}_API_KEY", "sk-of-the-tests")


@pytest.fixture
def hurried(monkeypatch):
    """Make the waits between attempts and for batches too short to notice."""
    monkeypatch.setattr("tasks.llm.calls.gateway.FIRST_BACKOFF_S", 0.01)
    monkeypatch.setattr("tasks.llm.calls.batches._FIRST_POLL_S", 0.01)
    monkeypatch.setattr("tasks.llm.endpoint_health.FIRST_PAUSE_S", 0.01)
    monkeypatch.setattr("tasks.llm.endpoint_health.BETWEEN_HARMLESS_S", 0.5)


@pytest.fixture
def calling(tmp_path) -> Calling:
    """Calls on a fresh ledger."""
    return Calling(tmp_path / "ledger")


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start servers that end with the test."""
    with ExitStack() as servers:

        def start(behaviour):
            if isinstance(behaviour, HttpResponse):
                behaviour = responding_with(behaviour)
            return servers.enter_context(FaultServer(behaviour))

        yield start
