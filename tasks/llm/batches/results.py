"""Results of provider batches as replies, and what is said about those that are missing."""

from dataclasses import replace

from tasks.llm.batches.api import BatchState, Result
from tasks.llm.failures import Failure, failure_of, failure_of_status
from tasks.llm.ledger.entries import as_text
from tasks.llm.ledger.submissions import Submission
from tasks.llm.litellm_setup import litellm
from tasks.llm.prices import batch_prices_of, cost_usd
from tasks.llm.replies import Reply, from_chat
from tasks.llm.request import Target
from tasks.llm.transport.bodies import whole


def read_result(target: Target, result: Result) -> tuple[Reply, Failure | None]:
    """The reply that a result is, at the prices of a batch; a failure is a reply too, with its status and cause."""
    if result.fault is not None:
        return _failed(failure_of(result.fault))
    if result.status != 200:
        return _failed(failure_of_status(result.status, as_text(result.body)))
    try:
        content, body = whole(result.body)
        reply = from_chat(litellm().ModelResponse(**content), body)
    except Exception as error:  # noqa: BLE001 - a body that is no completion becomes its state, with the cause
        return _failed(failure_of(error))
    prices = batch_prices_of(target)
    cost = cost_usd(prices, reply.prompt_tokens, reply.cached_tokens, reply.completion_tokens)
    return replace(reply, prices=prices, cost_usd=cost), None


def shortfall(submission: Submission, state: BatchState, missing: int) -> str:
    """A notice of a batch that ended without all of its results."""
    why = f": {state.error}" if state.error else ""
    of = len(submission.calls)
    return f"batch {submission.batch_id} ended as {state.status}, {missing} of {of} calls have no result{why}"


def _failed(failure: Failure) -> tuple[Reply, Failure]:
    return Reply(failure.status, error=failure.error), failure
