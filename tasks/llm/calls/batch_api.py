"""A provider's batch interface, through LiteLLM: OpenAI's files and batches, at any endpoint that supports them."""

import io
import json
import os
import re
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tasks.llm.calls.gateway import chat_arguments
from tasks.llm.environment import filled_in
from tasks.llm.litellm_setup import litellm
from tasks.llm.replies import failure_of
from tasks.llm.request import Messages, Target
from tasks.llm.transport import MOST_BYTES, Exchange, ReplyTooLarge, watched
from tasks.rules.errors import PipelineError

_URL = "/v1/chat/completions"
_SUBMISSION = "submission"


class NotNow(PipelineError):
    """A temporary failure: the provider did not respond, or may accept the same request later."""


class BatchResult(NamedTuple):
    """The result of one request in a batch: an HTTP status and a body, or the error of its line.

    The id is empty if the line does not show it.
    """

    custom_id: str
    status: int
    body: Mapping[str, Any]
    fault: ReplyTooLarge | ValueError | None = None

    @property
    def is_unprocessed(self) -> bool:
        """True if the batch ended before the request's turn."""
        error = self.body.get("error")
        return isinstance(error, Mapping) and error.get("code") in {"batch_expired", "batch_cancelled"}


class BatchApi:
    """The batch interface at a target's endpoint."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._provider, _, self._model = target.name.partition("/")

    def line(self, custom_id: str, messages: Messages, parameters: Mapping[str, Any]) -> str:
        """Return a request as a line of a batch's file, with the parameters as they are sent."""
        beside = {"extra_headers", "api_key"}
        arguments = {name: value for name, value in chat_arguments(parameters).items() if name not in beside}
        extra = arguments.pop("extra_body", {})
        wire = litellm().get_optional_params(model=self._model, custom_llm_provider=self._provider, **arguments)
        wire.pop("stream", None)
        own = wire.pop("extra_body", {})
        body = {"model": self._model, "messages": list(messages), **wire, **own, **extra}
        return json.dumps({"custom_id": custom_id, "method": "POST", "url": _URL, "body": body})

    async def submit(self, submission: str, lines: Iterable[str]) -> str:
        """Upload the requests, start the batch, and return its id."""
        content = ("\n".join(lines) + "\n").encode()
        file = await self._request("acreate_file", file=(f"{submission}.jsonl", content), purpose="batch")
        batch = await self._request(
            "acreate_batch", completion_window="24h", endpoint=_URL, input_file_id=file.id,
            metadata={_SUBMISSION: submission},
        )  # fmt: skip
        return str(batch.id)

    async def find(self, submission: str) -> str | None:
        """Return the id of a submission's batch, which may not be recorded here; None if the provider has none."""
        after = None
        while True:
            page = await self._request("alist_batches", after=after, limit=100)
            for batch in page.data:
                if (batch.metadata or {}).get(_SUBMISSION) == submission:
                    return str(batch.id)
            if not getattr(page, "has_more", False) or not page.data:
                return None
            after = page.data[-1].id

    async def ended(self, batch_id: str) -> Any:
        """Return a batch that has ended, as LiteLLM returns it; None while it is running."""
        batch = await self._request("aretrieve_batch", batch_id=batch_id)
        return None if batch.status in {"validating", "in_progress", "finalizing", "cancelling"} else batch

    async def results(self, batch_id: str, file_id: str, custom_ids: Iterable[str]) -> list[BatchResult]:
        """Return the results in one of a batch's files, for requests with these ids.

        A result beyond the size limit, and all results after it, count as too large.
        """
        left, results = set(custom_ids), []
        exchange = Exchange(n_results=len(left))
        content = await self._request("afile_content", exchange, file_id=file_id)
        is_cut = exchange.body.is_over
        for number, line in enumerate(io.BytesIO(content.content), start=1):
            if len(line) >= MOST_BYTES or (is_cut and not line.endswith(b"\n")):
                result = _unread(line, ReplyTooLarge(MOST_BYTES))
            elif line.strip():
                try:
                    result = _result(json.loads(line))
                except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
                    what = f"batch {batch_id}, {file_id}, line {number}: cannot be read ({type(error).__name__})"
                    result = _unread(line, ValueError(what))
            else:
                continue
            left.discard(result.custom_id)
            results.append(result)
        cut_off = sorted(left) if is_cut else ()
        return [*results, *(BatchResult(custom_id, 200, {}, ReplyTooLarge(MOST_BYTES)) for custom_id in cut_off)]

    async def _request(self, name: str, exchange: Exchange | None = None, **arguments: Any) -> Any:
        """Call a function of LiteLLM for this endpoint."""
        request = getattr(litellm(), name)(**arguments, **self._common)
        with watched(exchange) as under_way:
            try:
                return await request
            except Exception as error:
                failure = failure_of(under_way.fault or error)  # libraries may hide the original error
                kind = NotNow if failure.passes else PipelineError
                raise kind(f"{self._target.endpoint_name}: batches: {failure.error}") from error

    @property
    def _common(self) -> dict[str, Any]:
        # Always OpenAI's route: for some other routes of single calls, LiteLLM runs batches itself, call by call.
        address = {"api_base": filled_in(self._target.api_base)} if self._target.api_base else {}
        key = {"api_key": os.environ.get(f"{self._provider.upper()}_API_KEY") or "none"}
        if "api_key" in self._target.parameters:
            key = {"api_key": filled_in(self._target.parameters["api_key"])}
        elif self._provider == "openai":
            key = {}
        headers = {name: filled_in(value) for name, value in self._target.headers.items()}
        return {
            "custom_llm_provider": "openai", "timeout": self._target.timeout_s, "max_retries": 0,
            **address, **key, **({"extra_headers": headers} if headers else {}),
        }  # fmt: skip


def _unread(line: bytes, fault: ReplyTooLarge | ValueError) -> BatchResult:
    match = re.search(rb'"custom_id"\s*:\s*"(\w+)"', line[:1000])
    return BatchResult("" if match is None else match[1].decode(), 200, {}, fault)


def _result(line: Mapping[str, Any]) -> BatchResult:
    response = line.get("response") or {}
    body = response.get("body") or {"error": line.get("error")}
    body = body if isinstance(body, Mapping) else {"error": body}
    return BatchResult(str(line["custom_id"]), int(response.get("status_code") or 500), body)
