"""Records for the content of a log, the same for all harnesses, and readers of its parts."""

import hashlib
import json
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from tasks.benchmarks.base import RowError
from tasks.benchmarks.rows import (
    as_list,
    as_mapping,
    as_number,
    as_whole_number,
    cell_text,
    message_text,
    text_or_none,
)
from tasks.dataset import foreign_files
from tasks.dataset.source import SourceError, json_rows
from tasks.imports.files import ImportRefused, batch_of
from tasks.imports.verdicts import BINARY_WORDS, as_value
from tasks.llm.failures import failure_of_stored_status
from tasks.llm.replies import CONTEXT_LENGTH, EMPTY, PROVIDER_ERROR, REFUSED, TIMEOUT, TRUNCATED
from tasks.rules.conversation import Message
from tasks.rules.text.characters import is_blank, one_line
from tasks.rules.text.json_text import read_json
from tasks.rules.verdict import PARSE_ERROR, VALUES

LogRow = Mapping[str, Any]

PRIMARY = "score"
"""The score that ranks in benchmarks of this kind: points over positive points."""
MIN_NORMALIZED = "min_normalized"
"""The score of PRBench that is 0 for the worst and 1 for the best possible points."""


class Decision(NamedTuple):
    """A decision on one criterion.

    Attributes:
        criterion: an id or a criterion's exact text.
        value: 1, 0.5 or 0; None if it failed.
        position: the position in the rubric, if the log has neither an id nor a text.
        status: the kind of failure, if `value` is None.
        usage: values for columns of the verdict, such as tokens and cost; also
            `may_hide_failures`, if the log states it for each decision.
        is_guess: true if this entry of the log may be something else; it counts only if
            `criterion` is one of the task.
        text: the criterion's text, if the harness may use ids of its own.
        is_reordered: true if the decisions are not in the order of the rubric.
    """

    criterion: str | None
    value: float | None
    position: int | None = None
    status: str = PARSE_ERROR
    explanation: str | None = None
    error: str | None = None
    weight: float | None = None
    usage: Mapping[str, Any] = {}
    is_guess: bool = False
    text: str | None = None
    is_reordered: bool = False


class Judgement(NamedTuple):
    """The decisions of a judge on a response; not a grading, which is `binary` or `ternary`.

    Attributes:
        may_hide_failures: true if the harness stores a failed judge call as a decision; None if
            unknown.
        own_scores: the scores that the harness computed from the decisions, under our names.
    """

    judge: str | None
    decisions: Sequence[Decision]
    judge_trial: int = 1
    may_hide_failures: bool | None = None
    own_scores: Mapping[str, float] = {}


class LoggedResponse(NamedTuple):
    """A model's response to a conversation, or its failure (`text` None, `status` and `error`).

    Attributes:
        messages: the conversation, unless the log has a `transcript`.
        transcript: one text of `role: content` turns that ends with the response.
        failure_texts: texts that the harness stores instead of a response -> their failures.
        usage: values for columns of the response, such as tokens and cost.
        run: the run of the harness that the response belongs to.
        part: the part of the data set, of those that the harness reports on one by one.
        combined_scores: the scores that the harness computed from all judgements.
    """

    where: str
    model: str | None
    task_id: str | None
    text: str | None
    judgements: Sequence[Judgement] = ()
    trial: int | None = None
    messages: Sequence[Message] | None = None
    transcript: str | None = None
    status: str | None = None
    error: str | None = None
    failure_texts: Mapping[str, str] = {}
    usage: Mapping[str, Any] = {}
    run: str = ""
    part: str = ""
    combined_scores: Mapping[str, float] = {}


class Log(NamedTuple):
    """The content of a log. `title` names the tool that wrote it."""

    title: str
    responses: Sequence[LoggedResponse]
    notes: Sequence[str] = ()


FAILURES = {REFUSED, TRUNCATED, CONTEXT_LENGTH, EMPTY, TIMEOUT, PROVIDER_ERROR}
_STOPPED = {"max_tokens": TRUNCATED, "content_filter": REFUSED, "model_length": CONTEXT_LENGTH}
"""Why a model stopped -> the failure that this is."""
_HTTP_STATUS = re.compile(
    r"\b(?:HTTP|status|code)\w*\W{0,4}([45]\d\d)\b|\b([45]\d\d) (?:Client|Server) Error",
    re.IGNORECASE,
)
"""Finds the HTTP status in the cause of a failed call."""
_NO_REPLY = re.compile(
    r"(?i)connection|overloaded|unavailable|rate[ _-]?limit|quota|too many requests|bad"
    r" ?gateway|(server|api)[ _]?error"
)
"""Finds words of a cause that mean that a call got no reply."""
_WORDS = {
    **BINARY_WORDS,
    "c": 1.0,
    "i": 0.0,
    "p": 0.5,
    "correct": 1.0,
    "incorrect": 0.0,
    "pass": 1.0,
    "fail": 0.0,
    "✓": 1.0,
    "✗": 0.0,
    "not met": 0.0,
    "partially met": 0.5,
    "partly met": 0.5,
    **VALUES,
}


def messages_of(conversation: Any) -> list[Message]:
    """Return the role and text of each message in a list; a single text is a user turn.

    Conversations with images and calls of tools are usual, so only their text is returned.
    """
    if isinstance(conversation, str):
        return [("user", conversation)]
    messages = []
    for message in map(as_mapping, as_list(conversation)):
        role = text_or_none(message.get("role")) or ""
        messages.append((role, message_text(message, skip_unknown=True) or ""))
    return messages


def text_of(output: LogRow) -> str | None:
    """Return a model's text without its reasoning; None if there is no output."""
    if not as_list(output.get("choices")):
        return cell_text(output, "completion") or None
    return judged_text(as_mapping(_first_choice(output).get("message")))


def _first_choice(output: LogRow) -> LogRow:
    choices = as_list(output.get("choices"))
    return as_mapping(choices[0]) if choices else {}


def judged_text(message: LogRow) -> str:
    """Return the text of a message that was judged, without the model's searches.

    Raises:
        RowError: it has another part that is not a text, such as an image (see `message_text`).
    """
    content = message.get("content")
    if isinstance(content, list):
        content = [part for part in content if as_mapping(part).get("type") != "tool_use"]
    return message_text({"content": content}) or ""


def output_failure(
    output: LogRow,
    text: str | None,
    error: Any = None,
) -> tuple[str | None, str | None]:
    """Return the failure of an output and its cause; `(None, None)` if it did not fail.

    An error without a text, no text, and a text that was cut off are failures.
    """
    reason = text_or_none(_first_choice(output).get("stop_reason"))
    if reason in _STOPPED:
        return _STOPPED[reason], f"stopped: {reason}"
    cause = cause_of(error or output.get("error"))
    if not cause and text is None:
        return PROVIDER_ERROR, "the log has no output"
    if not cause or not is_blank(text):
        return None, None
    status = cause.partition(":")[0]
    if status not in FAILURES:
        status = call_failure(cause) or PROVIDER_ERROR
    return status, one_line(cause)


def call_failure(cause: str | None) -> str | None:
    """Return the kind of failed call that a cause describes; None if it describes none."""
    if cause is None:
        return None
    match = _HTTP_STATUS.search(cause)
    if match:
        http_status = int(match[1] or match[2])
        if http_status == 408:
            return TIMEOUT
        return failure_of_stored_status(http_status, cause).status
    if re.search(r"(?i)time[ds]?[ _-]?out", cause):
        return TIMEOUT
    return PROVIDER_ERROR if _NO_REPLY.search(cause) else None


def usage_of(output: LogRow, *, prompt_lacks_cached: bool = False) -> dict[str, Any]:
    """Return the columns that describe a call: served model, tokens, cost and seconds.

    With `prompt_lacks_cached`, the log's input tokens do not include those that the provider read
    from its cache or wrote to it, so they are added.
    """
    usage = as_mapping(output.get("usage"))
    prompt_tokens = as_whole_number(usage.get("input_tokens"))
    cached_tokens = as_whole_number(usage.get("input_tokens_cache_read"))
    if prompt_lacks_cached and prompt_tokens is not None:
        written_tokens = as_whole_number(usage.get("input_tokens_cache_write"))
        prompt_tokens += (cached_tokens or 0) + (written_tokens or 0)
    choice = _first_choice(output)
    return {
        "served_model": text_or_none(output.get("model")) if choice else None,
        "prompt_tokens": prompt_tokens,
        "cached_tokens": cached_tokens,
        "completion_tokens": as_whole_number(usage.get("output_tokens")),
        "reasoning_tokens": as_whole_number(usage.get("reasoning_tokens")),
        "cost_usd": as_number(usage.get("total_cost")),
        "latency_s": as_number(output.get("time")),
        "finish_reason": text_or_none(choice.get("stop_reason")),
    }


value_of_decision = partial(as_value, words=_WORDS)
"""Returns a decision in a log as 1, 0.5 or 0; None for anything else."""


def marked_decisions(
    text: str,
    marks: Mapping[str, float],
    before_reason: str,
    unreadable: Sequence[str] = (),
) -> list[Decision]:
    """Return the decisions in a text that lists criteria with marks, separated by blank lines.

    `before_reason` precedes an explanation. Such texts list unmet criteria first, so the order of
    criteria with the same words is unknown. An explanation that begins with one of `unreadable`
    states that the judge's reply could not be read.
    """
    any_mark = "|".join(re.escape(mark) for mark in marks)
    beginning = re.compile(rf"(?:\A|\n\n)\[({any_mark})\] (?:\[(-?[0-9]+(?:\.[0-9]+)?)\] )?")
    heads = list(beginning.finditer(text))
    bounds = [*(head.start() for head in heads), len(text)]
    decisions = []
    for head, end in zip(heads, bounds[1:], strict=True):
        item = text[head.end() : end]
        title, _, reason = item.partition(before_reason)
        decision = Decision(
            title,
            marks[head[1]],
            weight=float(head[2]) if head[2] else None,
            explanation=reason.strip() or None,
            is_reordered=True,
        )
        if reason.startswith(tuple(unreadable)):
            decision = decision._replace(value=None, explanation=None, error=reason.strip())
        decisions.append(decision)
    return decisions


def first_text(item: LogRow, names: Sequence[str]) -> str | None:
    """Return the text under the first of these keys for which a mapping has a text."""
    for name in names:
        text = text_or_none(item.get(name))
        if text is not None:
            return text
    return None


def cause_of(error: Any) -> str | None:
    """Return an error in a log as text; an object or a list is JSON."""
    if isinstance(error, Mapping | list):
        return json.dumps(error, ensure_ascii=False)
    return text_or_none(error)


@contextmanager
def error_location(where: str) -> Iterator[None]:
    """Turn an error of reading a response into one that names its location, `where`."""
    try:
        yield
    except RowError as error:
        raise ImportRefused(f"{where}: {error}; correct the log") from error


class LogSource:
    """A file or a folder to import, with its content.

    Attributes:
        content: the bytes of a file; empty for a folder.
        files: the JSON and JSON Lines files with results in a folder, by their paths within it;
            empty for a file.
        text: the text of a file; empty if it is not text.
        rows: the objects in a JSON or JSON Lines file; empty for other files.
        document: the object in a JSON file; empty for other files.
    """

    def __init__(self, path: Path) -> None:
        """Read an existing path.

        Raises:
            SourceError: a file begins like JSON and is neither an object nor JSON Lines.
        """
        self.path = path
        self.text = ""
        self.files = _results_in(path) if path.is_dir() else {}
        self.content = b"" if path.is_dir() else foreign_files.read_regular(path)
        self.is_zip = self.content.startswith(b"PK\x03\x04")
        with suppress(UnicodeDecodeError):
            self.text = "" if self.is_zip else self.content.decode("utf-8-sig")
        self.rows: Sequence[LogRow] = []
        self.document: LogRow = {}
        if self.text.lstrip().startswith("{"):
            try:
                self.document = read_json(self.text)
                self.rows = [self.document]
            except (ValueError, RecursionError) as error:
                lines = self.text.split("\n")
                if lines[0].strip() == "{":  # a document over several lines
                    raise SourceError(f"{path}: is not JSON ({error}); copy it again") from error
                self.rows = list(json_rows(path, lines))

    def batch_with(self, *options: str | None) -> str:
        """Return the id of an import batch: a hash of all content and of the given options."""
        listing = ""
        for name, content in self.files.items():
            listing += f"\n{name}\n{hashlib.sha256(content).hexdigest()}"
        return batch_of(self.content + listing.encode(errors="surrogateescape"), *options)


def _results_in(folder: Path) -> Mapping[str, bytes]:
    contents = {}
    n_bytes = 0
    for file in foreign_files.files_inside(folder):
        # EvalScope keeps results in folders of these names.
        is_elsewhere = {"predictions", "reviews", "reports"}.isdisjoint(file.parts)
        if file.suffix not in {".json", ".jsonl"} or is_elsewhere:
            continue
        name = file.relative_to(folder).as_posix()
        with foreign_files.bounded(foreign_files.open_inside(folder, name), file) as opened:
            contents[name] = opened.read()
        n_bytes += len(contents[name])
        if n_bytes > foreign_files.MOST_BYTES:
            raise foreign_files.FileTooLarge(
                f"{folder}: holds more than {foreign_files.MOST_BYTES / 1e9:.1f} GB of results;"
                " split it"
            )
    return contents


READING_ERRORS = (
    *foreign_files.ZIP_ERRORS,
    pa.ArrowException,
    MemoryError,
)
"""The errors of reading a log that is damaged or was made by hand."""


class Archive:
    """A zip file whose members may be compressed with Zstandard."""

    def __init__(self, path: Path, content: bytes) -> None:
        """Read the table of contents.

        Raises:
            FileTooLarge: it would unpack to too much.
            Exception: one of `READING_ERRORS`, if it is damaged.
        """
        self._content = content
        self._opened = zipfile.ZipFile(pa.BufferReader(content))
        foreign_files.refuse_bomb(
            path, len(content), (member.file_size for member in self._opened.infolist())
        )
        self.names = list(dict.fromkeys(self._opened.namelist()))

    def json(self, name: str) -> Any:
        """Return a member as JSON.

        Raises:
            Exception: one of `READING_ERRORS`, if it is damaged or no JSON.
        """
        member = self._opened.getinfo(name)
        if member.file_size > foreign_files.MOST_BYTES:
            raise ValueError("it is too large")
        # The compression method for Zstandard (APPNOTE 4.4.5), which Python reads from 3.14 on.
        if member.compress_type != 93:
            return read_json(b"".join(foreign_files.member_chunks(self._opened, member)))
        start = foreign_files.data_offset(BytesIO(self._content), member)
        packed = pa.BufferReader(self._content[start : start + member.compress_size])
        with pa.input_stream(packed, compression="zstd") as opened:
            content: bytes = opened.read(member.file_size + 1)
        if zlib.crc32(content) != member.CRC:
            raise ValueError("its checksum is wrong")
        return read_json(content)
