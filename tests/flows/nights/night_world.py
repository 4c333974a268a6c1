"""A configuration with a pinned and a nightly model, their provider, and the receivers of alerts."""

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

from tests.faults.behaviours import criterion_of, prompt_of
from tests.faults.server import Entry, FaultServer, HttpResponse, Request, is_judge_request, meets, well_behaved
from tests.flows.conftest import CONCURRENCY, N_CRITERIA, PROJECT, Command, Done
from tests.tasks.alerts.servers import Hook, Reply, serving_hook

N_CONTROL = 20
"""Control verdicts of a night."""
SAMPLE = PROJECT / "warehouse/samples/prbench.jsonl"
_REPETITION = re.compile(r" Take \d+\.")
_WORSE = " In short, nobody knows."
_MARKER = re.compile(r"\d{16}")


@dataclass
class Weather:
    """The behaviour of the provider: each response is new, and a verdict depends on the prompt and the model."""

    has_regressed: bool = False
    """The nightly model's responses meet half as many criteria."""
    judge_drifts: bool = False
    """The judge decides that nothing is met."""
    delay_s: float = 0.0
    refused: str = ""
    """A model whose key is wrong."""

    def __call__(self, request: Request, number: int) -> HttpResponse:
        if request["model"] == self.refused:
            return HttpResponse(status=401, error={"message": "wrong key", "type": "auth", "code": None})
        return HttpResponse(self._text(request, number), delay_s=self.delay_s)

    def _text(self, request: Request, number: int) -> str:
        if is_judge_request(request):
            return json.dumps({"explanation": "as the test says", "criteria_met": self.is_met(request)})
        worse = _WORSE if self.has_regressed and request["model"] == "fresh" else ""
        return f"{well_behaved(request, number).text} Take {number}.{worse}"

    def is_met(self, request: Request) -> bool:
        """The verdict of a judge's request."""
        prompt = _MARKER.sub("", _REPETITION.sub("", prompt_of(request)))
        if self.judge_drifts or (_WORSE in prompt and meets(f"worse {prompt}")):
            return False
        return meets(prompt.replace(_WORSE, ""))


@dataclass(frozen=True)
class Seen:
    """A night from the outside: the command's output, the calls, the messages to receivers, and the pings."""

    output: Done
    entries: Sequence[Entry]
    messages: Sequence[dict[str, Any]]
    n_pings: int
    weather: Weather

    @property
    def calls(self) -> list[Request]:
        """The requests."""
        return [entry.request for entry in self.entries]

    @property
    def sampled(self) -> list[str]:
        """The models that were sampled, one for each call."""
        return [request["model"] for request in self.calls if not is_judge_request(request)]

    @property
    def n_judged(self) -> int:
        """The calls to judges."""
        return sum(map(is_judge_request, self.calls))

    @property
    def alerts(self) -> dict[str, dict[str, Any]]:
        """The alerts of the one message of the night by their kind, each kind once."""
        if not self.messages:
            return {}
        (message,) = self.messages
        by_kind = {alert["kind"]: alert for alert in message["alerts"]}
        assert len(by_kind) == len(message["alerts"])
        return by_kind

    def values(self, model: str) -> dict[str, Fraction]:
        """The score of each task, from the judge's requests about responses of this night."""
        weights, points, most = _weights(), dict[str, Fraction](), dict[str, Fraction]()
        for task, weight in weights.values():
            most[task] = most.get(task, Fraction(0)) + max(weight, Fraction(0))
        # Repeated requests are the control set.
        first = [entry.request for entry in self.entries if entry.number == 0 and is_judge_request(entry.request)]
        mine = [request for request in first if f" by {model}." in prompt_of(request)]
        for title, is_met in {_title(each): self.weather.is_met(each) for each in mine}.items():
            task, weight = weights[title]
            points[task] = points.get(task, Fraction(0)) + weight * is_met
        return {task: points[task] / most[task] for task in points}


def _title(request: Request) -> str:
    return criterion_of(prompt_of(request)).strip()


def _weights() -> dict[str, tuple[str, Fraction]]:
    """Title of a criterion -> its task and weight, as the file that ships has them."""
    by_kind = {}
    for line in SAMPLE.read_text(encoding="utf-8").splitlines():
        task = json.loads(line)
        for criterion in task["rubric"]:
            notes = criterion["annotations"]
            weight = notes[notes["weight_class"].replace(" ", "_") + "_weight"]
            by_kind[criterion["title"].strip()] = task["task"], Fraction(weight)
    assert N_CRITERIA == len(by_kind)
    return by_kind


def sign_flip_p(differences: Sequence[Fraction]) -> Fraction:
    """The share of all flips of signs whose sum is at least as far from 0 as the observed one."""
    seen = abs(sum(differences))
    sums = [
        abs(sum(sign * each for sign, each in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=len(differences))
    ]
    return Fraction(sum(each >= seen for each in sums), len(sums))


@dataclass
class NightWorld:
    """A folder with a configuration and a warehouse, the provider, and the receivers of alerts."""

    command: Command
    server: FaultServer
    receiver: Hook
    failing: Hook
    switch: Hook
    weather: Weather = field(default_factory=Weather)

    @cached_property
    def settings(self) -> dict[str, Any]:
        """The configuration, to be changed and written again."""
        return {
            "dataset": {"source": "tasks.jsonl"},
            "models": [self.endpoint("pinned"), self.endpoint("fresh", resample="nightly")],
            "judges": [self.endpoint("judge")],
            "limits": {"concurrency": CONCURRENCY, "attempts": 2},
            "drift": {"verdicts": N_CONTROL},
            "retention": {"replies_days": 1},
            "alerts": {
                "to": [{"webhook": self.receiver.address}, {"webhook": self.failing.address}],
                "ping": self.switch.address,
                "attempts": 1,
            },
        }

    def endpoint(self, label: str, **settings: Any) -> dict[str, Any]:
        return {"name": f"hosted_vllm/{label}", "label": label, "api_base": self.server.api_base, **settings}

    def configure(self, **changes: Any) -> None:
        """Write the configuration, with some of it changed from now on."""
        self.settings.update(changes)
        self.command.configure(**self.settings)

    def night(self, label: str, *options: str, code: int = 0, **weather: Any) -> Seen:
        """A night as the command does it."""
        return self.watched("nightly", "--night", label, *options, code=code, **weather)

    def watched(self, *arguments: str, code: int = 0, **weather: Any) -> Seen:
        """A command in this process, with all that it brought about."""
        self.weather = Weather(**weather)
        self.server.behaviour = self.weather
        before = len(self.server.entries), len(self.receiver.calls), len(self.switch.calls)
        output = self.command(*arguments, "--warehouse", "data", code=code)
        return Seen(
            output, self.server.entries[before[0] :], [call.json for call in self.receiver.calls[before[1] :]],
            len(self.switch.calls) - before[2], self.weather,
        )  # fmt: skip


@contextmanager
def night_world(folder: Path) -> Iterator[NightWorld]:
    """A world with a copy of the sample, nothing done yet; one of the two receivers always fails."""
    shutil.copy(SAMPLE, folder / "tasks.jsonl")
    with FaultServer() as server, serving_hook() as receiver, serving_hook() as failing, serving_hook() as switch:
        failing.plan = [Reply(500)] * 1_000
        world = NightWorld(Command(folder), server, receiver, failing, switch)
        world.configure()
        yield world
