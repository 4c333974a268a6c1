"""A sender that makes no call, to find out how many calls a second the driver can take."""

from collections.abc import Mapping
from typing import Any

from tasks.llm.replies import OK, Reply
from tasks.llm.request import Call
from tasks.llm.senders.process import SenderProcess

_VERDICT = '{"explanation": "as the test says", "criteria_met": true}'


class AnswersByItself(SenderProcess):
    """It answers every attempt at once."""

    async def _make(self, number: int, call: Call, _: Mapping[str, Any]) -> None:
        reply = Reply(OK, _VERDICT, "stop", call.target.name, prompt_tokens=500, completion_tokens=20, latency_s=0.0)
        self._finished.append((number, reply))
        self._has_finished.set()
