"""The lines of a batch: reading the requests of an input file, writing the results of an output file."""

import json
from dataclasses import dataclass
from typing import Any

from tests.faults.answers import Answer, Behaviour
from tests.faults.bodies import CONVERSATION, error_json, json_of
from tests.faults.book import Entry
from tests.faults.content import Request, flaw_of

Flaw = dict[str, Any]

_LOST = {"code": "request_timeout", "message": "The request could not be completed in time."}
_UNANSWERED = {
    "expired": {"code": "batch_expired", "message": "This request could not be executed before the batch expired."},
    "cancelled": {"code": "batch_cancelled", "message": "This request was not executed: the batch was cancelled."},
}


def read_lines(content: bytes, endpoint: str) -> tuple[dict[str, Request], list[Flaw]]:
    """The requests of an input file by custom id, and what is wrong with the file."""
    requests: dict[str, Request] = {}
    flaws: list[Flaw] = []
    for number, text in enumerate(content.splitlines(), start=1):
        line = _parsed(text)
        if line is None:
            flaws.append(_flaw("invalid_json_line", "This line is not a request.", number))
        elif line["custom_id"] in requests:
            flaws.append(_flaw("duplicate_custom_id", "The custom_id was used before.", number))
        elif line.get("method") != "POST" or line.get("url") != endpoint:
            flaws.append(_flaw("invalid_url", "The line is not for the endpoint of the batch.", number))
        else:
            requests[line["custom_id"]] = line["body"]
    if not requests and not flaws:
        flaws.append(_flaw("empty_file", "The input file is empty.", None))
    if len({request.get("model") for request in requests.values()}) > 1:
        flaws.append(_flaw("mismatched_model", "A batch is for one model.", None))
    return requests, flaws


def _parsed(text: bytes) -> dict[str, Any] | None:
    try:
        line = json.loads(text)
    except ValueError:
        return None
    if not isinstance(line, dict) or not isinstance(line.get("custom_id"), str):
        return None
    return line if isinstance(line.get("body"), dict) else None


def _flaw(code: str, message: str, line: int | None) -> Flaw:
    return {"code": code, "message": message, "param": None, "line": line}


@dataclass(frozen=True)
class Result:
    """What became of one request of a batch, and how the result file tells it."""

    entry: Entry
    is_good: bool
    line: bytes


def answered(custom_id: str, entry: Entry, endpoint: str, behaviour: Behaviour) -> Result:
    """The result of a request that is answered. An answer that would be cut is none; delays do not count."""
    flaw = flaw_of(entry.request, CONVERSATION[endpoint])
    if flaw is None:
        answer = behaviour(entry.request, entry.number)
    else:
        answer = Answer(status=400, error=error_json(flaw)["error"])
    if answer.cuts_connection or answer.cuts_body:
        return _result(custom_id, entry, None, _LOST)
    entry.status, entry.is_paid = answer.status, answer.is_completion
    body = json_of(endpoint, entry.request, answer) if answer.raw is None else _value_of(answer.raw)
    request_id = f"req_{entry.digest[:24]}"
    return _result(custom_id, entry, {"status_code": answer.status, "request_id": request_id, "body": body}, None)


def unanswered(custom_id: str, entry: Entry, end: str) -> Result:
    """The result of a request that was not answered before the batch came to this end."""
    return _result(custom_id, entry, None, _UNANSWERED.get(end))


def _result(custom_id: str, entry: Entry, response: dict[str, Any] | None, error: dict[str, str] | None) -> Result:
    line = {"id": f"batch_req_{entry.digest[:24]}", "custom_id": custom_id, "response": response, "error": error}
    is_good = response is not None and response["status_code"] == 200
    return Result(entry, is_good, json.dumps(line).encode() + b"\n")


def _value_of(raw: bytes) -> Any:
    """The JSON value that bytes stand for; text that is none becomes a string, so that the line stays readable."""
    try:
        return json.loads(raw)
    except ValueError:
        return raw.decode(errors="replace")
