"""A configuration with a pinned and a nightly model, their provider, and receivers of alerts."""

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.faults.anything import Plain
from tests.faults.behaviours import prompt_of
from tests.faults.server import (
    FaultServer,
    HttpResponse,
    Request,
    is_judge_request,
    meets,
    well_behaved,
)
from tests.flows.conftest import CONCURRENCY, PROJECT, Command, Done
from tests.kit import endpoint
from tests.tasks.alerts.servers import Hook

N_CONTROL = 20
"""Number of control verdicts in a night."""
SAMPLE = PROJECT / "warehouse/samples/prbench.jsonl"
_REPETITION = re.compile(r" Take \d+\.")
_WORSE = " In short, nobody knows."
_MARKER = re.compile(r"\d{16}")


@dataclass
class Weather:
    """The behaviour of the provider: each response is new, and a verdict depends on the prompt and
    the model.
    """

    has_regressed: bool = False
    """The nightly model's responses meet half as many criteria."""
    judge_drifts: bool = False
    """The judge decides that nothing is met."""
    delay_s: float = 0.0
    refused: str = ""
    """The model whose calls are refused because of a wrong key."""
    silent: tuple[str, ...] = ()
    """The models whose connections are closed without a response."""

    def __call__(self, request, number: int) -> HttpResponse:
        if request["model"] == self.refused:
            error = {
                "message": "wrong key",
                "type": "auth",
                "code": None,
            }
            return HttpResponse(status=401, error=error)
        if request["model"] in self.silent:
            return HttpResponse(cuts_connection=True)
        return HttpResponse(self._text(request, number), delay_s=self.delay_s)

    def _text(self, request, number: int) -> str:
        if "questions" in request:
            return well_behaved(request, number).text or ""
        if is_judge_request(request):
            return json.dumps(
                {
                    "explanation": "as the test says",
                    "criteria_met": self._is_met(request),
                }
            )
        text = f"{well_behaved(request, number).text} Take {number}."
        if self.has_regressed and request["model"] == "fresh":
            text += _WORSE
        return text

    def _is_met(self, request) -> bool:
        prompt = _MARKER.sub("", _REPETITION.sub("", prompt_of(request)))
        if self.judge_drifts or (_WORSE in prompt and meets(f"worse {prompt}")):
            return False
        return meets(prompt.replace(_WORSE, ""))


@dataclass(frozen=True)
class NightRun:
    """The visible effects of a night: the command's output, the calls, the messages to receivers,
    and the pings.
    """

    output: Done
    calls: Sequence[Request]
    messages: Sequence[dict[str, Any]]
    n_pings: int

    @property
    def sampled_models(self) -> list[str]:
        """The models that were sampled, one for each call."""
        return [
            request["model"]
            for request in self.calls
            if not is_judge_request(request)
        ]

    @property
    def n_judge_calls(self) -> int:
        """The number of calls to judges."""
        return sum(map(is_judge_request, self.calls))

    @property
    def alerts(self) -> dict[str, dict[str, Any]]:
        """The alerts in the night's only message, by kind; each kind occurs once."""
        if not self.messages:
            return {}
        [message] = self.messages
        alerts = {alert["kind"]: alert for alert in message["alerts"]}
        assert len(alerts) == len(message["alerts"])
        return alerts

    def lines(self, text: str) -> list[str]:
        """The lines on standard error that contain a text."""
        return [line for line in self.output.stderr.splitlines() if text in line]


@dataclass
class NightWorld:
    """A folder with a configuration and a warehouse, the provider, and the receivers of alerts."""

    command: Command
    server: FaultServer
    receiver: Hook
    failing: Hook
    switch: Hook

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The configuration; `configure` changes and writes it."""
        return {
            "dataset": {"source": "tasks.jsonl"},
            "models": [
                self.endpoint("pinned"),
                self.endpoint("fresh", resample="nightly"),
            ],
            "judges": [self.endpoint("judge")],
            "limits": {"concurrency": CONCURRENCY, "attempts": 2},
            "drift": {"verdicts": N_CONTROL},
            "retention": {"replies_days": 1},
            "alerts": {
                "to": [
                    {"webhook": self.receiver.address},
                    {"webhook": self.failing.address},
                ],
                "ping": self.switch.address,
                "attempts": 1,
            },
        }

    def endpoint(self, label: str, **settings: Any) -> dict[str, Any]:
        return endpoint(label, self.server.api_base, **settings)

    def configure(self, **changes: Any):
        """Write the configuration with these changes, which stay in later ones."""
        self.settings.update(changes)
        self.command.configure(**self.settings)

    def night(
        self,
        label: str,
        *options: str,
        code: int = 0,
        **weather: Any,
    ) -> NightRun:
        """Run a night by the command."""
        return self.watched(
            "nightly",
            "--night",
            label,
            *options,
            code=code,
            **weather,
        )

    def watched(self, *arguments: str, code: int = 0, **weather: Any) -> NightRun:
        """Run a command in this process, and return all that it caused."""
        self.server.behaviour = Weather(**weather)
        n_calls = len(self.server.book)
        n_messages = len(self.receiver.seen)
        n_pings = len(self.switch.seen)
        output = self.command(*arguments, "--warehouse", "data", code=code)
        messages = [call.json for call in self.receiver.seen[n_messages:]]
        return NightRun(
            output,
            calls=self.server.book[n_calls:],
            messages=messages,
            n_pings=len(self.switch.seen) - n_pings,
        )


@contextmanager
def night_world(folder: Path) -> Iterator[NightWorld]:
    """A world with a copy of the sample before any run; one of the two receivers always fails."""
    shutil.copy(SAMPLE, folder / "tasks.jsonl")
    with (
        FaultServer() as server,
        Hook() as receiver,
        Hook() as failing,
        Hook() as switch,
    ):
        failing.plan = [Plain(500)] * 1_000
        world = NightWorld(
            Command(folder),
            server,
            receiver,
            failing,
            switch,
        )
        world.configure()
        yield world
