"""Batches of one endpoint: OpenAI's files and batches, at any endpoint that supports them, through
LiteLLM.
"""

import io
import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from tasks.llm.bodies import Body, ReplyTooLarge
from tasks.llm.calls.sending import chat_arguments
from tasks.llm.cleaning import cleaned
from tasks.llm.exchange import MOST_BYTES, Exchange
from tasks.llm.failures import failure_of, failure_of_stored_status, status_of_error, with_hints
from tasks.llm.ledger.entries import as_text
from tasks.llm.litellm_setup import litellm
from tasks.llm.reading import from_result
from tasks.llm.redaction import filled_in, safe
from tasks.llm.replies import PROVIDER_ERROR, Failure, Kind, Reply
from tasks.llm.request import Messages, Parameters, Target, prices_of
from tasks.llm.transport import watched
from tasks.llm.usage import JsonObject, is_count
from tasks.llm.variables import variable
from tasks.rules.errors import PipelineError

_URL = "/v1/chat/completions"
_SUBMISSION = "submission"
TOO_LARGE_REPLY = failure_of(ReplyTooLarge(MOST_BYTES)).reply


class NotNow(PipelineError):
    """A temporary failure: the provider did not respond, or may accept the same request later."""


class BatchApi:
    """The batch interface at a target's endpoint."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._provider, _, self._model = target.name.partition("/")

    def line(self, custom_id: str, messages: Messages, parameters: Parameters) -> str:
        """Return a request as a line of a batch's file, with the parameters as they are sent."""
        arguments = chat_arguments(parameters)
        for name in ("extra_headers", "api_key"):  # sent with the file
            arguments.pop(name, None)
        configured_body = arguments.pop("extra_body", {})
        body = litellm().get_optional_params(
            model=self._model, custom_llm_provider=self._provider, **arguments
        )
        body.pop("stream", None)
        body.update(body.pop("extra_body", {}))
        body.update(configured_body)
        body = {"model": self._model, "messages": list(messages), **body}
        return json.dumps(
            {
                "custom_id": custom_id,
                "method": "POST",
                "url": _URL,
                "body": body,
            }
        )

    async def submit(self, submission: str, lines: Iterable[str]) -> str:
        """Upload the requests, start the batch, and return its id."""
        content = ("\n".join(lines) + "\n").encode()
        file = await self._request(
            "acreate_file", file=(f"{submission}.jsonl", content), purpose="batch"
        )
        batch = await self._request(
            "acreate_batch",
            completion_window="24h",
            endpoint=_URL,
            input_file_id=file.id,
            metadata={_SUBMISSION: submission},
        )
        return str(batch.id)

    async def find(self, submission: str) -> str | None:
        """Return the id of a submission's batch, which may not be recorded here; None if the
        provider has none.
        """
        last_id = None
        while True:
            page = await self._request("alist_batches", after=last_id, limit=100)
            for batch in page.data:
                if (batch.metadata or {}).get(_SUBMISSION) == submission:
                    return str(batch.id)
            if not getattr(page, "has_more", False) or not page.data:
                return None
            if page.data[-1].id == last_id:
                raise PipelineError(
                    f"{self._target.endpoint_name}: batches: the list of batches does not advance"
                )
            last_id = page.data[-1].id

    async def ended_batch(self, batch_id: str) -> Any:
        """Return a batch that has ended, as LiteLLM returns it; None while it is running."""
        batch = await self._request("aretrieve_batch", batch_id=batch_id)
        if batch.status in {"validating", "in_progress", "finalizing", "cancelling"}:
            return None
        return batch

    async def replies(
        self,
        batch_id: str,
        file_id: str,
        n_results: int,
    ) -> tuple[list[tuple[str, Reply | None]], bool]:
        """Return the replies in one of a batch's files with the ids of their requests, and whether
        the file was cut, because it is larger than `n_results` replies can be.

        The id is empty if a line does not show it. A line beyond the limit of a reply counts as too
        large, without effect on others. The reply is None for a request whose turn had not come
        when the batch ended.
        """
        replies: list[tuple[str, Reply | None]] = []
        exchange = Exchange(n_results=n_results)
        content = await self._request("afile_content", exchange, file_id=file_id)
        is_cut = exchange.body.is_too_large
        for number, line in enumerate(io.BytesIO(content.content), start=1):
            reply: Reply | None
            if len(line) >= MOST_BYTES or (is_cut and not line.endswith(b"\n")):
                custom_id = _id_in(line)
                reply = TOO_LARGE_REPLY
            elif line.strip():
                custom_id, reply = self._read(line, f"batch {batch_id}, {file_id}, line {number}")
            else:
                continue
            replies.append((custom_id, reply))
        return replies, is_cut

    def _read(self, line: bytes, location: str) -> tuple[str, Reply | None]:
        """Return a request's id and its reply; None if the batch ended before its turn.

        A failure is also a reply, with its status and cause.
        """
        try:
            content = json.loads(line)
            return str(content["custom_id"]), self._reply_in(content)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            cause = f"{location}: cannot be read ({type(error).__name__})"
            return _id_in(line), Failure(PROVIDER_ERROR, Kind.DOWN, safe(cause)).reply

    def _reply_in(self, content: JsonObject) -> Reply | None:
        """Return the reply in a line, with the prices of a batch."""
        response = content.get("response") or {}
        body = response.get("body") or {"error": content.get("error")}
        if not isinstance(body, Mapping):
            body = {"error": body}
        status = 500
        stated_status = response.get("status_code")
        if is_count(stated_status) and 100 <= stated_status < 600:
            status = stated_status
        fault = body.get("error")
        if isinstance(fault, Mapping) and fault.get("code") in {"batch_expired", "batch_cancelled"}:
            return None
        if status == 200 and fault and not body.get("choices"):
            status = status_of_error(fault)
        if status != 200:
            return with_hints(failure_of_stored_status(status, as_text(body)), self._target).reply
        try:
            received = Body()
            received.look_at(body)
            reply = from_result(None, litellm().ModelResponse(**cleaned(body)), received)
            reply = reply.accepted(self._target.ends_ok)
        except Exception as error:  # noqa: BLE001 - no completion; the failure becomes a reply
            return failure_of(error).reply
        return reply.priced(prices_of(self._target, of_batch=True))

    async def _request(self, name: str, exchange: Exchange | None = None, **arguments: Any) -> Any:
        """Call a function of LiteLLM for this endpoint."""
        request = getattr(litellm(), name)(**arguments, **self._shared_arguments)
        with watched(exchange) as current_exchange:
            try:
                return await request
            except Exception as error:
                # Libraries may hide the original error.
                failure = failure_of(current_exchange.fault or error, current_exchange)
                failure = with_hints(failure, self._target)
                message = f"{self._target.endpoint_name}: batches: {failure.error}"
                if failure.may_pass:
                    raise NotNow(message) from error
                raise PipelineError(message) from error

    @property
    def _shared_arguments(self) -> dict[str, Any]:
        # Always OpenAI's route: for some other routes of single calls, LiteLLM runs batches itself,
        # call by call.
        arguments = {
            "custom_llm_provider": "openai",
            "timeout": self._target.timeout_s,
            "max_retries": 0,
        }
        if self._target.api_base:
            arguments["api_base"] = filled_in(self._target.api_base)
        if "api_key" in self._target.parameters:
            arguments["api_key"] = filled_in(self._target.parameters["api_key"])
        elif self._provider == "hosted_vllm":
            arguments["api_key"] = variable("HOSTED_VLLM_API_KEY") or "none"
        return {**arguments, **chat_arguments(self._target.sent_along)}


def _id_in(line: bytes) -> str:
    """Return the id of the request of an unreadable line; empty if its beginning does not show
    it.
    """
    match = re.search(rb'"custom_id"\s*:\s*"(\w+)"', line[:1000])
    return "" if match is None else match[1].decode()
