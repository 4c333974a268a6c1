"""Replies as the first version of the parser read them, as far as the replies of these tests go."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest


def _judge_s(reply: str, **_: Any) -> str:
    if reply.strip().startswith(("{", "`")):
        return reply.strip()
    return re.split(r"</(?:think|thinking|reasoning|reason)>", reply, maxsplit=1, flags=re.IGNORECASE)[-1].strip()


def _answer(text: str, **_: Any) -> str:
    return re.sub(r"^.*</think>", "", text, flags=re.DOTALL).strip()


@contextmanager
def read_by_version_1() -> Iterator[None]:
    """Whatever is sampled and judged meanwhile is read as it was then."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("tasks.rules.verdict.without_thinking", _judge_s)
        patched.setattr("tasks.sample.sample.final_text", _answer)
        yield
